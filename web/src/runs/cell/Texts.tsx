import { DiffView } from "../../parts/DiffView";
import { Boundary } from "../../parts/Panel";
import { Pictures } from "../../parts/Picture";
import { Titled } from "../../parts/Titled";
import { type CellView, usePictures } from "./asking";
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
      <PicturesPart cell={cell} />
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

/** The pictures of what was said and done, if there are any. */
export function PicturesPart({ cell }: { cell: CellView }) {
  if (cell.pictures === 0) return null;
  return (
    <Titled title="Pictures">
      <Boundary what="Reading the pictures">
        <PicturesOf cell={cell} />
      </Boundary>
    </Titled>
  );
}

function PicturesOf({ cell }: { cell: CellView }) {
  return <Pictures pictures={usePictures(cell.run, cell.place).pictures} />;
}
