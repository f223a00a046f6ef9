import { Command } from "../parts/Command";

/** Commands to copy, each below what it does. */
export function Commands({ rows }: { rows: readonly (readonly [string, string])[] }) {
  return rows.map(([does, command]) => (
    <div key={command} className="mb-3">
      <div className="mb-1 text-sm text-soft">{does}</div>
      <Command text={command} />
    </div>
  ));
}
