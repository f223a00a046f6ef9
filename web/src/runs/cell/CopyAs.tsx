import { CopyText } from "../../parts/CopyText";
import { Commands } from "../Commands";
import type { CellView } from "./asking";
import { Pop } from "./Pop";

/** Commands that do the same in a terminal, and the cell as a comment. */
export function CopyAs({ cell }: { cell: CellView }) {
  return (
    <Pop name="Copy as">
      <div>
        <Commands rows={cell.commands.map(({ does, command }) => [does, command] as const)} />
        <CopyText name="Copy as Markdown" text={() => cell.markdown} />
      </div>
    </Pop>
  );
}
