import { Suspense } from "react";
import { later } from "./later";

export type Language = "python" | "json" | "text";

const Highlighted = later(() => import("./CodeMirrorView"));

/** Code to read; its colours come when the editor was loaded. */
export function CodeView({ text, language, label }: CodeProps) {
  const plain = (
    <section className="code" aria-label={label}>
      <pre>{text}</pre>
    </section>
  );
  if (language === "text" || text.length > 200_000) return plain;
  return (
    <Suspense fallback={plain}>
      <Highlighted text={text} language={language} label={label} />
    </Suspense>
  );
}

export interface CodeProps {
  text: string;
  language: Language;
  label: string;
}
