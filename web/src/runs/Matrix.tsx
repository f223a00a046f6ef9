import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { duration, money, score, whole } from "../parts/figures";
import { Flag, Outcome } from "../parts/Outcome";
import { agentName, cellsAddress } from "./names";

type Cell = NonNullable<Schemas["MatrixCase"]["cells"][number]>;

const MOST_SHOWN = 12;

/** Cases by agents; the best agent comes first. A cell opens its trials. */
export function Matrix({ matrix, leaderboard }: MatrixProps) {
  const places = new Map(leaderboard.map((row, place) => [`${row.harness}\n${row.model}`, place]));
  const columns = matrix.agents
    .map((agent, at) => ({ agent, at, place: places.get(`${agent.harness}\n${agent.model}`) ?? 0 }))
    .sort((a, b) => a.place - b.place);
  return (
    <div className="scrolls">
      <table className="matrix">
        <thead>
          <tr>
            <th>Case</th>
            {columns.map(({ agent }) => (
              <th key={`${agent.harness}\n${agent.model}`}>{agentName(agent)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {matrix.items.map(({ case: name, cells }) => (
            <tr key={name}>
              <th scope="row">
                <Link className="clip" to={cellsAddress({ case: name })}>
                  {name}
                </Link>
              </th>
              {columns.map(({ agent, at }) => {
                const cell = cells[at];
                const key = `${agent.harness}\n${agent.model}`;
                return cell ? (
                  <td key={key}>
                    <Trials
                      cell={cell}
                      label={`${name}, ${agentName(agent)}`}
                      to={cellsAddress({ case: name, harness: agent.harness, model: agent.model })}
                    />
                  </td>
                ) : (
                  <td key={key} className="soft">
                    no result
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface MatrixProps {
  matrix: Schemas["RunMatrix"];
  leaderboard: Schemas["RunOverview"]["leaderboard"];
}

/** The trials of one case by one agent: how many passed, the mean reward, and each of them. */
function Trials({ cell, label, to }: { cell: Cell; label: string; to: string }) {
  const { totals } = cell;
  const passed = totals.ends.passed;
  const cost = totals.cost_usd === null ? "unknown cost" : money(totals.cost_usd);
  return (
    <Link className={`button trials ${totals.shown}`} to={to} title={label}>
      <span className="sr">{label}: </span>
      <span className="first">
        <strong>{score(totals.reward.mean)}</strong>
        <span className="soft">
          {totals.has_verdicts
            ? `${whole(passed)} of ${whole(totals.graded)} passed`
            : `${whole(totals.graded)} scored`}
        </span>
        {cell.flaky && <span className="badge">flaky</span>}
        {totals.flagged > 0 && <Flag text={whole(totals.flagged)} />}
        {cell.mixed && <span className="badge">≠ graders</span>}
      </span>
      <span className="strip">
        {cell.ended.slice(0, MOST_SHOWN).map((state, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a trial has no name but its place
          <Outcome key={at} state={state} />
        ))}
        {totals.total > MOST_SHOWN && (
          <span className="soft">+{whole(totals.total - MOST_SHOWN)}</span>
        )}
      </span>
      <span className="soft">
        {totals.ends.errors > 0 && `${whole(totals.ends.errors)} not graded · `}
        {cost} · {duration(totals.seconds)}
      </span>
    </Link>
  );
}
