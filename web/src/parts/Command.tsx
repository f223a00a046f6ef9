import { useCopied } from "./copied";
import "./parts.css";

/** A command to copy. */
export function Command({ text }: { text: string }) {
  const [isCopied, copy] = useCopied();
  return (
    <span className="command">
      <code>{text}</code>
      <button
        type="button"
        className="quiet"
        onClick={() => copy(text)}
        aria-label={`Copy ${text}`}
      >
        {isCopied ? "Copied" : "Copy"}
      </button>
    </span>
  );
}
