import { moment, score } from "../../parts/figures";
import { Outcome } from "../../parts/Outcome";
import type { CellView } from "./asking";
import { numbered } from "./numbered";

/** Every result that the cell ever had, newest first, with what people decided about each. */
export function History({ cell }: { cell: CellView }) {
  return (
    <table className="history">
      <thead>
        <tr>
          <th>Result</th>
          <th className="number">Reward</th>
          <th>How it came about</th>
          <th>Decision</th>
          <th>Graded by</th>
        </tr>
      </thead>
      <tbody>
        {numbered(cell.history).map(({ place, one: past }) => (
          <tr key={place}>
            <td>
              <Outcome state={past.state} text={past.state} />
              {place === 0 && <span className="soft"> now</span>}
            </td>
            <td className="number">{score(past.reward)}</td>
            <td>{past.sentence}</td>
            <td>
              {past.decision
                ? `${past.decision.ruling}, ${past.decision.by}, ${moment(past.decision.at)}`
                : "–"}
              {past.decision?.note && <div className="soft">{past.decision.note}</div>}
            </td>
            <td>
              <code>{past.digest}</code>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
