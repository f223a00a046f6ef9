import { Button } from "./Button";
import { useCopied } from "./copied";

/** A button that copies a text which is not shown, such as a table as Markdown. */
export function CopyText({ name, text }: { name: string; text: () => string }) {
  const [isCopied, copy] = useCopied();
  return (
    <Button icon={isCopied ? "pass" : "copy"} onPress={() => copy(text())}>
      {isCopied ? "Copied" : name}
    </Button>
  );
}
