import type { ReactNode } from "react";
import { DiffView } from "../../parts/DiffView";
import type { CellView } from "./asking";
import { Folded } from "./Folded";

/** Prompt, answer and what was expected, with what differs. */
export function Texts({ cell }: { cell: CellView }) {
  const parts: [string, ReactNode][] = [
    ["Prompt", cell.prompt.text && <Folded text={cell.prompt} />],
    ["Answer", cell.answer.text ? <Folded text={cell.answer} /> : "There is none."],
    ["Expected", cell.expected.text && <Folded text={cell.expected} />],
    [
      "From expected to answer",
      cell.difference.length > 0 && (
        <DiffView lines={cell.difference} label="How the answer differs" />
      ),
    ],
  ];
  return parts.map(
    ([name, shown]) =>
      shown && (
        <section key={name} className="mb-6">
          <h3 className="m-0 mb-1 text-sm font-medium text-soft">{name}</h3>
          {shown}
        </section>
      ),
  );
}
