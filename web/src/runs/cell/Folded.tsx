import { createContext, useContext, useState } from "react";
import type { Schemas } from "../../api/client";
import { Button } from "../../parts/Button";
import { whole } from "../../parts/figures";

/** Gives the whole of a folded text; a report in one file has none. */
export const WholeText = createContext<((ref: string) => Promise<string>) | null>(null);

/** Characters that are laid out at once: a million of them in one line take a browser seconds. */
const STRETCH = 100_000;

/** A text as it is; of a long one a part, and the rest when it is asked for. */
export function Folded({ text }: { text: Schemas["FoldedText"] }) {
  const ask = useContext(WholeText);
  const [all, setAll] = useState<{ ref: string; text: string } | null>(null);
  const [said, setSaid] = useState("");
  const [most, setMost] = useState(STRETCH);
  const every = all && all.ref === text.ref ? all.text : null;
  const shown = every && (text.is_end ? every.slice(-most) : every.slice(0, most));
  const left = every === null || shown === null ? text.more : every.length - shown.length;
  const more = `${whole(left)} more characters`;
  const unfold = () => {
    if (every !== null) {
      setMost(most + STRETCH);
      return;
    }
    setSaid("loading …");
    ask?.(text.ref).then(
      (found) => {
        setAll({ ref: text.ref, text: found });
        setSaid("");
      },
      (error: Error) => setSaid(error.message),
    );
  };
  const rest = left > 0 && (
    <div className="my-1 text-soft">
      {ask ? (
        <Button onPress={unfold}>
          {text.is_end ? `Show what is before: ${more}` : `Show the rest: ${more}`}
        </Button>
      ) : (
        `${more} are not in this file`
      )}{" "}
      {said}
    </div>
  );
  return (
    <div>
      {text.is_end && rest}
      {/* What is high scrolls, and is reached by keyboard for that. */}
      <pre
        dir="auto"
        tabIndex={isHigh(shown ?? text.text) ? 0 : undefined}
        className="m-0 max-h-140 overflow-y-auto whitespace-pre-wrap wrap-anywhere print:max-h-none"
      >
        {shown ?? text.text}
      </pre>
      {!text.is_end && rest}
    </div>
  );
}

function isHigh(text: string): boolean {
  return text.length > 800 || text.split("\n").length > 12;
}
