import type { ReactNode } from "react";

/** A recorded text, as it is: never HTML, never a link. */
export function TextBlock({ title, text, aside }: TextProps) {
  return (
    <section className="mt-4">
      <h3 className="m-0 mb-1 text-sm font-medium text-soft">
        {title} {aside}
      </h3>
      <pre
        tabIndex={0}
        className="m-0 max-h-80 overflow-auto rounded-md bg-sunk px-3 py-2 whitespace-pre-wrap wrap-anywhere"
      >
        {text === "" ? "(empty)" : text}
      </pre>
    </section>
  );
}

interface TextProps {
  title: string;
  text: string;
  aside?: ReactNode;
}
