import { DiffView } from "../../parts/DiffView";
import type { CellView } from "./asking";
import { Folded } from "./Folded";

/** Prompt, answer and what was expected, with what differs. */
export function Texts({ cell }: { cell: CellView }) {
  return (
    <div className="stack">
      {cell.prompt.text && (
        <section>
          <h2>Prompt</h2>
          <Folded text={cell.prompt} />
        </section>
      )}
      <section>
        <h2>Answer</h2>
        {cell.answer.text ? <Folded text={cell.answer} /> : <p className="soft">There is none.</p>}
      </section>
      {cell.expected.text && (
        <section>
          <h2>Expected</h2>
          <Folded text={cell.expected} />
        </section>
      )}
      {cell.difference.length > 0 && (
        <section>
          <h2>From expected to answer</h2>
          <DiffView lines={cell.difference} label="How the answer differs" />
        </section>
      )}
    </div>
  );
}
