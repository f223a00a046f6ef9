import type { Schemas } from "../api/client";
import { Outcome } from "../parts/Outcome";
import { TextBlock } from "../parts/TextBlock";

/** A row as graders are given it, and below that as it came. */
export function OpenedRow({ row }: { row: Schemas["RowDetail"] }) {
  return (
    <>
      {row.fault && (
        <p>
          <Outcome state="error" text="it cannot be graded" /> {row.fault}
        </p>
      )}
      {row.turns.length === 0 && row.question !== null && (
        <TextBlock title="Question" text={row.question} />
      )}
      {row.turns.map((turn, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: turns have no other name, and never move
        <TextBlock key={place} title={turn.role} text={turn.text} />
      ))}
      {row.answer !== null && <TextBlock title="Answer" text={row.answer} />}
      {row.expected !== null && <TextBlock title="Expected" text={row.expected} />}
      {row.metadata && <TextBlock title="Metadata" text={row.metadata} />}
      {row.json && (
        <details>
          <summary>As it came</summary>
          <TextBlock title="JSON" text={row.json} />
        </details>
      )}
    </>
  );
}
