import type { Schemas } from "../../api/client";
import { count, duration, money, score, whole } from "../../parts/figures";

const SIZE = 15;

type Axis = Schemas["Axis"];

/** Cells by two of their numbers: the darker a field, the more of them lie there. */
export function HeatMap({ pair }: { pair: Schemas["ScorePair"] }) {
  const bins = pair.x.edges.length - 1;
  const side = bins * SIZE;
  const most = Math.max(1, ...pair.fields.map((field) => field.n));
  const isScores = pair.agreeing !== null;
  return (
    <figure className="heat">
      <span className="heat-name">
        <span className="pick-mark">B</span> <span>{pair.y.name}</span>
        {pair.y.is_log && <span className="soft"> on a logarithmic scale</span>}
      </span>
      <span className="heat-y soft" aria-hidden="true">
        <span>{endOf(pair.y, bins)}</span>
        <span>{endOf(pair.y, 0)}</span>
      </span>
      <svg
        viewBox={`0 0 ${side} ${side}`}
        role="img"
        aria-label={`${count(pair.n, "cell")} by ${pair.x.name} and ${pair.y.name}`}
      >
        <rect className="heat-ground" width={side} height={side} />
        {pair.fields.map((field) => (
          <rect
            key={`${field.x} ${field.y}`}
            className="heat-field"
            x={field.x * SIZE + 0.5}
            y={(bins - 1 - field.y) * SIZE + 0.5}
            width={SIZE - 1}
            height={SIZE - 1}
            fillOpacity={0.18 + 0.82 * Math.sqrt(field.n / most)}
          >
            <title>{`${rangeOf(pair.x, field.x)}, ${rangeOf(pair.y, field.y)}: ${count(field.n, "cell")}`}</title>
          </rect>
        ))}
        {isScores && <line className="heat-same" x1="0" y1={side} x2={side} y2="0" />}
      </svg>
      <span className="heat-x">
        <span className="soft">{endOf(pair.x, 0)}</span>
        <span className="heat-name">
          <span className="pick-mark">A</span> <span>{pair.x.name}</span>
        </span>
        <span className="soft">{endOf(pair.x, bins)}</span>
      </span>
    </figure>
  );
}

/** The fields as a table, for whoever cannot see them. */
export function FieldTable({ pair }: { pair: Schemas["ScorePair"] }) {
  return (
    <div className="scrolls">
      <table>
        <thead>
          <tr>
            <th scope="col">{pair.x.name}</th>
            <th scope="col">{pair.y.name}</th>
            <th scope="col" className="number">
              Cells
            </th>
          </tr>
        </thead>
        <tbody>
          {pair.fields.map((field) => (
            <tr key={`${field.x} ${field.y}`}>
              <td>{rangeOf(pair.x, field.x)}</td>
              <td>{rangeOf(pair.y, field.y)}</td>
              <td className="number">{whole(field.n)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function rangeOf(axis: Axis, bin: number): string {
  return `${endOf(axis, bin)} to ${endOf(axis, bin + 1)}`;
}

function endOf(axis: Axis, edge: number): string {
  const value = axis.edges[edge] ?? 0;
  if (axis.key === "seconds") return duration(value);
  if (axis.key === "cost_usd") return money(value);
  if (axis.key === "tokens") return whole(Math.round(value));
  return score(value);
}
