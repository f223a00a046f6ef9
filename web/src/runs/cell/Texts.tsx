import type { ReactNode } from "react";
import { DiffView } from "../../parts/DiffView";
import { Boundary } from "../../parts/Panel";
import { Pictures } from "../../parts/Picture";
import { type CellView, usePictures } from "./asking";
import { Folded } from "./Folded";

/** Prompt, answer and what was expected, with what differs. */
export function Texts({ cell }: { cell: CellView }) {
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-6">
      {cell.prompt.text && (
        <Part name="Prompt">
          <Folded text={cell.prompt} />
        </Part>
      )}
      <PicturesPart cell={cell} />
      <Part name="Answer">
        {cell.answer.text ? <Folded text={cell.answer} /> : "There is none."}
      </Part>
      {cell.expected.text && (
        <Part name="Expected">
          <Folded text={cell.expected} />
        </Part>
      )}
      {cell.difference.length > 0 && (
        <Part name="From expected to answer">
          <DiffView lines={cell.difference} label="How the answer differs" />
        </Part>
      )}
    </div>
  );
}

/** The pictures of what was said and done, if there are any. */
export function PicturesPart({ cell }: { cell: CellView }) {
  if (cell.pictures === 0) return null;
  return (
    <Part name="Pictures">
      <Boundary what="Reading the pictures">
        <PicturesOf cell={cell} />
      </Boundary>
    </Part>
  );
}

function PicturesOf({ cell }: { cell: CellView }) {
  return <Pictures pictures={usePictures(cell.run, cell.place).pictures} />;
}

function Part({ name, children }: { name: string; children: ReactNode }) {
  return (
    <section>
      <h3 className="m-0 mb-1 text-sm font-medium text-soft">{name}</h3>
      {children}
    </section>
  );
}
