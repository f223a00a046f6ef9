import { count } from "../../parts/figures";
import type { CellView } from "./asking";
import { numbered } from "./numbered";

/** Signs that the work manipulates its grading: where, what, and why that is one. */
export function Flags({ cell }: { cell: CellView }) {
  if (cell.flags.length === 0 && cell.signs.length === 0) return null;
  const others =
    cell.signs.length > 0 ? cell.flags.filter((f) => !f.startsWith("audit: ")) : cell.flags;
  return (
    <section className="flags" aria-label="Signs of tampering">
      <h2>⚑ {count(Math.max(cell.flags.length, cell.signs.length), "sign")} of tampering</h2>
      {cell.signs.length > 0 && (
        <ul>
          {numbered(cell.signs).map(({ place, one: sign }) => (
            <li key={place}>
              <strong>{sign.sign}</strong>{" "}
              <code>{sign.line === null ? sign.file : `${sign.file}:${sign.line}`}</code>{" "}
              {sign.what}: {sign.why}
              {sign.code && <pre dir="auto">{sign.code}</pre>}
            </li>
          ))}
        </ul>
      )}
      {others.length > 0 && (
        <ul>
          {others.map((flag) => (
            <li key={flag}>{flag}</li>
          ))}
        </ul>
      )}
    </section>
  );
}
