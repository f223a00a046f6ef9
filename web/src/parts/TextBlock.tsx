import type { ReactNode } from "react";
import "./parts.css";

/** A recorded text, as it is: never HTML, never a link. */
export function TextBlock({ title, text, aside }: TextProps) {
  return (
    <section className="text-block">
      <h3>
        {title} {aside}
      </h3>
      <pre tabIndex={0}>{text === "" ? "(empty)" : text}</pre>
    </section>
  );
}

interface TextProps {
  title: string;
  text: string;
  aside?: ReactNode;
}
