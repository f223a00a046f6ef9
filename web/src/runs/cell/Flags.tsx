import { useState } from "react";
import { count } from "../../parts/figures";
import { IN_FILE } from "../../parts/file";
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
    <section className="flags" aria-label="Signs of tampering">
      <h2>⚑ {count(Math.max(cell.flags.length, cell.signs.length), "sign")} of tampering</h2>
      {signs.length > 0 && (
        <ul>
          {signs.map(({ place, one: sign }) => (
            <li key={place}>
              <strong>{sign.sign}</strong>{" "}
              <code>{sign.line === null ? sign.file : `${sign.file}:${sign.line}`}</code>{" "}
              {sign.what}: {sign.why}
              {sign.code && <pre dir="auto">{sign.code}</pre>}
            </li>
          ))}
        </ul>
      )}
      {rest.length > 0 && (
        <ul>
          {rest.map((flag) => (
            <li key={flag}>{flag}</li>
          ))}
        </ul>
      )}
      {hidden > 0 && (
        <button type="button" onClick={() => setWhole(true)}>
          Show {count(hidden, "more sign")}
        </button>
      )}
    </section>
  );
}
