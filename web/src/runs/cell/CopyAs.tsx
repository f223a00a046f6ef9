import { Command } from "../../parts/Command";
import { CopyText } from "../../parts/CopyText";
import type { CellView } from "./asking";
import { Menu } from "./Menu";

/** Commands that do the same in a terminal, and the cell as a comment. */
export function CopyAs({ cell }: { cell: CellView }) {
  return (
    <Menu name="Copy as">
      {cell.commands.map((one) => (
        <div key={one.command}>
          <div className="soft">{one.does}</div>
          <Command text={one.command} />
        </div>
      ))}
      <CopyText name="Copy as Markdown" text={() => cell.markdown} />
    </Menu>
  );
}
