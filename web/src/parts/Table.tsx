import type { ReactNode } from "react";

/** A column of a table. */
export interface Shown<T> {
  name: string;
  show: (item: T) => ReactNode;
  /** What stands below it, smaller. */
  below?: (item: T) => ReactNode;
  kind?: "number" | "name";
  /** Left out where the screen is narrower than a tablet, or a laptop. */
  from?: "md" | "lg";
  /** Whether its name is for who cannot see the table alone. */
  isMute?: boolean;
}

// A link in it is as high as a finger is wide, and takes no more room for that.
const NAME = `min-w-36 font-medium wrap-anywhere pointer-coarse:[&_a]:-my-2.5 pointer-coarse:[&_a]:inline-block
  pointer-coarse:[&_a]:py-2.5`;
const FROM = { md: "max-md:hidden", lg: "max-lg:hidden" };

/** A list of some rows: what is sought first, how it ended second. One of thousands is a `Grid`. */
export function Table<T>({ label, columns, items, keyOf, lookOf }: TableProps<T>) {
  const look = (one: Shown<T>) =>
    [
      one.kind === "number" ? "text-right tabular-nums whitespace-nowrap" : "text-left",
      one.kind === "name" ? NAME : "font-normal",
      one.from ? FROM[one.from] : "",
    ].join(" ");
  return (
    <div className="goes-on relative -mx-2 overflow-x-auto">
      <table className="w-full border-collapse" aria-label={label}>
        <thead>
          <tr>
            {columns.map((one) => (
              <th
                key={one.name}
                className={`border-b border-line px-2 py-2 text-sm whitespace-nowrap text-soft ${look(one)} font-normal`}
              >
                {one.isMute ? <span className="sr-only">{one.name}</span> : one.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={keyOf(item)} className={`hover:bg-sunk ${lookOf?.(item) ?? ""}`}>
              {columns.map((one) => (
                <td
                  key={one.name}
                  className={`border-b border-line px-2 py-2.5 align-top ${look(one)}`}
                >
                  {one.show(item)}
                  {one.below && <Below>{one.below(item)}</Below>}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface TableProps<T> {
  label?: string;
  columns: readonly Shown<T>[];
  items: readonly T[];
  keyOf: (item: T) => string | number;
  lookOf?: (item: T) => string;
}

/** What stands smaller below something in a table. */
export function Below({ children }: { children: ReactNode }) {
  return <span className="block text-sm font-normal text-soft">{children}</span>;
}
