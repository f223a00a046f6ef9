import type { Schemas } from "../api/client";
import { percent, whole } from "../parts/figures";
import { Panel } from "../parts/Panel";

/** A row for what people say, a column for what the grader says. */
export function Confusion({ card }: { card: Schemas["CardDetail"] }) {
  const { classes, confusion, threshold, labels } = card;
  const head = "px-3 py-1.5 text-sm font-normal text-soft";
  return (
    <Panel title="Where they differ">
      <div className="overflow-x-auto">
        <table className="w-auto border-separate border-spacing-1" aria-label="Where they differ">
          <thead>
            <tr>
              <th scope="col" className={`${head} text-left`}>
                People say
              </th>
              {classes.map((name) => (
                <th key={name} scope="col" className={head}>
                  grader {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {confusion.map((counts, place) => (
              <tr key={classes[place]}>
                <th scope="row" className={`${head} text-left`}>
                  {classes[place]}
                </th>
                {counts.map((times, column) => (
                  <td
                    key={classes[column]}
                    className={`min-w-20 rounded-md px-3 py-2 text-center text-lg tabular-nums ${lookOf(times, place === column)}`}
                  >
                    {whole(times)}
                    <small className="block text-xs">{share(times, counts)}</small>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p className="mt-2 mb-0 text-sm text-soft">
        Shares are of the row.
        {labels.kind !== "levels" && ` Yes is a score from ${threshold} up.`}
      </p>
    </Panel>
  );
}

function share(times: number, row: readonly number[]): string {
  const all = row.reduce((sum, one) => sum + one, 0);
  return all > 0 ? percent(times / all) : "–";
}

function lookOf(times: number, isRight: boolean): string {
  if (times === 0) return "bg-fill";
  return isRight ? "bg-pass-soft text-pass" : "bg-fail-soft text-fail";
}
