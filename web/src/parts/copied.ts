import { useState } from "react";

/** Copies a text, and tells for a moment that it did. */
export function useCopied(): [boolean, (text: string) => void] {
  const [isCopied, setCopied] = useState(false);
  const copy = (text: string) => {
    navigator.clipboard?.writeText(text).then(() => {
      setCopied(true);
      window.setTimeout(() => setCopied(false), 2_000);
    });
  };
  return [isCopied, copy];
}
