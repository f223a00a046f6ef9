import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { EndBar, EndCounts } from "../parts/Ends";
import { count, duration, moment, money, priced, score, whole } from "../parts/figures";
import { Flag } from "../parts/Outcome";
import { KINDS, runName, suiteName } from "./names";
import { RunState } from "./RunState";

type RunRow = Schemas["RunRow"];

interface RunsTableProps {
  runs: readonly RunRow[];
  chosen: readonly string[];
  choose: (id: string) => void;
}

export function RunsTable({ runs, chosen, choose }: RunsTableProps) {
  return (
    <div className="scrolls">
      <table className="runs">
        <thead>
          <tr>
            <th>
              <span className="sr">Compare</span>
            </th>
            <th>Run</th>
            <th>Cells</th>
            <th className="number">Mean reward</th>
            <th className="number">Agent cost</th>
            <th className="number">Time</th>
            <th>Began</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <tr key={run.id} data-run={run.id}>
              <td>
                <input
                  type="checkbox"
                  aria-label={`Choose ${runName(run)} to compare`}
                  checked={chosen.includes(run.id)}
                  onChange={() => choose(run.id)}
                />
              </td>
              <td className="what">
                <Link to={`/runs/${encodeURIComponent(run.id)}`}>{runName(run)}</Link>
                <span className="soft clip" title={run.suite}>
                  <RunState state={run.state} />{" "}
                  {[KINDS[run.kind] ?? run.kind, suiteName(run.suite)].filter(Boolean).join(": ")}
                </span>
              </td>
              <td className="cells">
                <span className="row">
                  <EndCounts ends={run.ends} />
                  {run.flagged > 0 && <Flag text={`${whole(run.flagged)} flagged`} />}
                  {run.held > 0 && <span className="soft">{whole(run.held)} held</span>}
                </span>
                <span className="bar-row">
                  <EndBar ends={run.ends} planned={run.planned} />
                  {run.total < run.planned && (
                    <span className="soft">
                      {whole(run.total)} of {whole(run.planned)}
                    </span>
                  )}
                </span>
              </td>
              <td className="number">
                {score(run.reward)}
                {run.reward !== null && <span className="soft">{count(run.cases, "case")}</span>}
              </td>
              <td className="number">
                {run.cost_usd === null ? priced(null, run.cost_unknown) : money(run.cost_usd)}
                {run.cost_usd !== null && run.cost_unknown > 0 && (
                  <span className="soft">+ {count(run.cost_unknown, "cell")} unknown</span>
                )}
              </td>
              <td className="number">{duration(run.seconds)}</td>
              <td className="when">
                {moment(run.created_at)}
                {run.label && <span className="soft mono">{run.id}</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
