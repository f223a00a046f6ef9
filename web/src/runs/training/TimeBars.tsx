import type { Schemas } from "../../api/client";
import { duration } from "../../parts/figures";

type Times = Schemas["Times"];

const WIDE = 100;

/** The median and the 95th percentile of cells and of each grader, all on one scale. */
export function TimeBars({ cell, graders }: { cell: Times; graders: readonly Times[] }) {
  const rows = [{ ...cell, name: "a whole cell" }, ...graders];
  const most = Math.max(...rows.map((row) => row.p95)) || 1;
  return (
    <div className="scrolls">
      <table className="time-bars">
        <thead>
          <tr>
            <th scope="col">Of</th>
            <th scope="col" className="number">
              p50
            </th>
            <th scope="col" className="number">
              p95
            </th>
            <td />
          </tr>
        </thead>
        <tbody>
          {rows.map((row, place) => (
            <tr key={place ? `/${row.name}` : ""}>
              <th scope="row">{row.name}</th>
              <td className="number">{duration(row.p50)}</td>
              <td className="number">{duration(row.p95)}</td>
              <td className="wide">
                <svg viewBox={`0 0 ${WIDE} 8`} preserveAspectRatio="none" aria-hidden="true">
                  <rect className="p95" width={(WIDE * row.p95) / most} height="8" />
                  <rect
                    className="p50"
                    x={Math.max(0, (WIDE * row.p50) / most - 0.6)}
                    width="0.6"
                    height="8"
                  />
                </svg>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
