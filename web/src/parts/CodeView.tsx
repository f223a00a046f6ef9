import { Suspense } from "react";
import { later } from "./later";

export type Language = "python" | "json" | "text";

export const CODE = "max-h-140 overflow-auto rounded-md border border-line bg-sunk";

const Highlighted = later(() => import("./CodeMirrorView"));

/** Code to read; its colours come when the editor was loaded. */
export function CodeView({ text, language, label }: CodeProps) {
  const plain = (
    <section className={CODE} aria-label={label}>
      <pre className="m-0 px-3 py-2.5 leading-5 whitespace-pre-wrap wrap-anywhere">{text}</pre>
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
