import type { Schemas } from "../api/client";
import { percent, whole } from "../parts/figures";

/** A row for what people say, a column for what the grader says. */
export function Confusion({ card }: { card: Schemas["CardDetail"] }) {
  const { classes, confusion, threshold, labels } = card;
  return (
    <section>
      <h2>Where they differ</h2>
      <table className="confusion">
        <thead>
          <tr>
            <th scope="col">People say</th>
            {classes.map((name) => (
              <th key={name} scope="col">
                grader {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {confusion.map((counts, place) => {
            const whole_row = counts.reduce((sum, one) => sum + one, 0);
            return (
              <tr key={classes[place]}>
                <th scope="row">{classes[place]}</th>
                {counts.map((times, column) => (
                  <td
                    key={classes[column]}
                    className={times === 0 ? "" : place === column ? "right" : "wrong"}
                  >
                    {whole(times)}
                    <small>{whole_row > 0 ? percent(times / whole_row) : "–"}</small>
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
      <p className="soft">
        Shares are of the row.
        {labels.kind !== "levels" && ` Yes is a score from ${threshold} up.`}
      </p>
    </section>
  );
}
