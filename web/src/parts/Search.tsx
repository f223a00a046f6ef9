import { useEffect, useState } from "react";
import { INPUT } from "./Field";
import { Icon } from "./Icon";

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
    <span className="relative inline-block w-72 max-md:w-full">
      <span className="pointer-events-none absolute inset-y-0 left-2.5 grid place-items-center text-soft">
        <Icon name="search" size={14} />
      </span>
      <input
        type="search"
        aria-label={label}
        placeholder={placeholder}
        maxLength={200}
        value={text}
        onChange={(event) => setText(event.target.value)}
        className={`${INPUT} pl-8`}
      />
    </span>
  );
}

interface SearchProps {
  label: string;
  placeholder: string;
  value: string;
  change: (text: string) => void;
}
