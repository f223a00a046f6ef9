import { useState } from "react";
import { Button } from "../../parts/Button";
import { count } from "../../parts/figures";
import { IN_FILE } from "../../parts/file";
import { Flag } from "../../parts/Outcome";
import type { CellView } from "./asking";
import { numbered } from "./numbered";

const FIRST = 5;

/** Signs that the work manipulates its grading: where, what, and why that is one. */
export function Flags({ cell }: { cell: CellView }) {
  const [isWhole, setWhole] = useState(IN_FILE);
  if (cell.flags.length === 0 && cell.signs.length === 0) return null;
  const others =
    cell.signs.length > 0 ? cell.flags.filter((f) => !f.startsWith("audit: ")) : cell.flags;
  const signs = numbered(cell.signs).slice(0, isWhole ? undefined : FIRST);
  const rest = others.slice(0, isWhole ? undefined : FIRST);
  const hidden = cell.signs.length + others.length - signs.length - rest.length;
  return (
    <section
      aria-label="Signs of tampering"
      className="rounded-lg bg-flag-soft px-4 py-3 wrap-anywhere"
    >
      <h2 className="m-0 text-base">
        <Flag
          text={`${count(Math.max(cell.flags.length, cell.signs.length), "sign")} of tampering`}
        />
      </h2>
      <ul className="mt-1.5 mb-0 grid list-none gap-1.5 p-0 pl-6">
        {signs.map(({ place, one: sign }) => (
          <li key={place}>
            <b className="font-semibold">{sign.sign}</b>{" "}
            <code>{sign.line === null ? sign.file : `${sign.file}:${sign.line}`}</code> {sign.what}:{" "}
            {sign.why}
            {sign.code && (
              <pre dir="auto" className="m-0 mt-0.5 whitespace-pre-wrap">
                {sign.code}
              </pre>
            )}
          </li>
        ))}
        {rest.map((flag) => (
          <li key={flag}>{flag}</li>
        ))}
      </ul>
      {hidden > 0 && (
        <div className="mt-2 pl-6">
          <Button onPress={() => setWhole(true)}>Show {count(hidden, "more sign")}</Button>
        </div>
      )}
    </section>
  );
}
