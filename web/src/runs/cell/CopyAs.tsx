import { Command } from "../../parts/Command";
import { CopyText } from "../../parts/CopyText";
import type { CellView } from "./asking";
import { Pop } from "./Pop";

/** Commands that do the same in a terminal, and the cell as a comment. */
export function CopyAs({ cell }: { cell: CellView }) {
  return (
    <Pop name="Copy as">
      {cell.commands.map((one) => (
        <div key={one.command}>
          <div className="mb-1 text-sm text-soft">{one.does}</div>
          <Command text={one.command} />
        </div>
      ))}
      <div>
        <CopyText name="Copy as Markdown" text={() => cell.markdown} />
      </div>
    </Pop>
  );
}
