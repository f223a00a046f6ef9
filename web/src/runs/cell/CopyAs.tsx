import { useState } from "react";
import { Command } from "../../parts/Command";
import type { CellView } from "./asking";
import { Menu } from "./Menu";

/** Commands that do the same in a terminal, and the cell as a comment. */
export function CopyAs({ cell }: { cell: CellView }) {
  const [isCopied, setCopied] = useState(false);
  const copy = () => {
    navigator.clipboard?.writeText(cell.markdown).then(() => setCopied(true));
  };
  return (
    <Menu name="Copy as">
      {cell.commands.map((one) => (
        <div key={one.command}>
          <div className="soft">{one.does}</div>
          <Command text={one.command} />
        </div>
      ))}
      <button type="button" onClick={copy}>
        {isCopied ? "Copied" : "Copy as Markdown"}
      </button>
    </Menu>
  );
}
