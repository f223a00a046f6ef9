import { useState } from "react";

/** A button that copies a text which is not shown, such as a table as Markdown. */
export function CopyText({ name, text }: { name: string; text: () => string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = () => {
    navigator.clipboard?.writeText(text()).then(() => {
      setCopied(true);
      window.setTimeout(() => setCopied(false), 2_000);
    });
  };
  return (
    <button type="button" onClick={copy}>
      {isCopied ? "Copied" : name}
    </button>
  );
}
