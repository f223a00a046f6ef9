import { IconButton } from "./Button";
import { useCopied } from "./copied";

/** A command to copy. */
export function Command({ text }: { text: string }) {
  const [isCopied, copy] = useCopied();
  return (
    <span className="inline-flex max-w-full items-center gap-1 rounded-md bg-fill py-0.5 pr-0.5 pl-3 text-ink">
      <code className="wrap-anywhere">{text}</code>
      <IconButton
        icon={isCopied ? "pass" : "copy"}
        label={`Copy ${text}`}
        onPress={() => copy(text)}
      />
    </span>
  );
}
