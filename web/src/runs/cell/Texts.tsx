import { DiffView } from "../../parts/DiffView";
import { Titled } from "../../parts/Titled";
import type { CellView } from "./asking";
import { Folded } from "./Folded";

/** Prompt, answer and what was expected, with what differs. */
export function Texts({ cell }: { cell: CellView }) {
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-6">
      {cell.prompt.text && (
        <Titled title="Prompt">
          <Folded text={cell.prompt} />
        </Titled>
      )}
      <Titled title="Answer">
        {cell.answer.text ? <Folded text={cell.answer} /> : "There is none."}
      </Titled>
      {cell.expected.text && (
        <Titled title="Expected">
          <Folded text={cell.expected} />
        </Titled>
      )}
      {cell.difference.length > 0 && (
        <Titled title="From expected to answer">
          <DiffView lines={cell.difference} label="How the answer differs" />
        </Titled>
      )}
    </div>
  );
}
