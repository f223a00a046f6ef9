import { useState } from "react";
import "./parts.css";

/** A command to copy. */
export function Command({ text }: { text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = () => {
    navigator.clipboard?.writeText(text).then(() => {
      setCopied(true);
      window.setTimeout(() => setCopied(false), 2_000);
    });
  };
  return (
    <span className="command">
      <code>{text}</code>
      <button type="button" className="quiet" onClick={copy} aria-label={`Copy ${text}`}>
        {isCopied ? "Copied" : "Copy"}
      </button>
    </span>
  );
}
