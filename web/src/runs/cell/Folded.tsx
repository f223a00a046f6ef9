import { createContext, useContext, useState } from "react";
import type { Schemas } from "../../api/client";
import { whole } from "../../parts/figures";

/** Gives the whole of a folded text; a report in one file has none. */
export const WholeText = createContext<((ref: string) => Promise<string>) | null>(null);

/** A text as it is; of a long one a part, and the rest when it is asked for. */
export function Folded({ text, tone }: { text: Schemas["FoldedText"]; tone?: "error" }) {
  const ask = useContext(WholeText);
  const [all, setAll] = useState<{ ref: string; text: string } | null>(null);
  const [said, setSaid] = useState("");
  const shown = all && all.ref === text.ref ? all.text : null;
  const more = `${whole(text.more)} more characters`;
  const unfold = () => {
    setSaid("loading …");
    ask?.(text.ref).then(
      (found) => {
        setAll({ ref: text.ref, text: found });
        setSaid("");
      },
      (error: Error) => setSaid(error.message),
    );
  };
  const rest = text.more > 0 && shown === null && (
    <p className="rest">
      {ask ? (
        <button type="button" className="quiet" onClick={unfold}>
          {text.is_end ? `Show what is before: ${more}` : `Show the rest: ${more}`}
        </button>
      ) : (
        <span className="soft">{more} are not in this file</span>
      )}
      {said && <span className="soft"> {said}</span>}
    </p>
  );
  return (
    <div className={tone ? `folded ${tone}` : "folded"}>
      {text.is_end && rest}
      {/* What is high scrolls, and is reached by keyboard for that. */}
      <pre dir="auto" tabIndex={isHigh(shown ?? text.text) ? 0 : undefined}>
        {shown ?? text.text}
      </pre>
      {!text.is_end && rest}
    </div>
  );
}

function isHigh(text: string): boolean {
  return text.length > 800 || text.split("\n").length > 12;
}
