import { useEffect, useState } from "react";

/** Looks for a text once the person stops writing; the text that counts is in the address. */
export function Search({ label, placeholder, value, change }: SearchProps) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = window.setTimeout(() => change(text), 200);
    return () => window.clearTimeout(timer);
  });
  return (
    <input
      type="search"
      aria-label={label}
      placeholder={placeholder}
      maxLength={200}
      value={text}
      onChange={(event) => setText(event.target.value)}
    />
  );
}

interface SearchProps {
  label: string;
  placeholder: string;
  value: string;
  change: (text: string) => void;
}
