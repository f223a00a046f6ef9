import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { EndBar, EndCounts } from "../parts/Ends";
import { count, duration, moment, money, priced, score, whole } from "../parts/figures";
import { Flag } from "../parts/Outcome";
import { Below, Table } from "../parts/Table";
import { When } from "../parts/When";
import { runAddress, runName, subjectOf } from "./names";
import { RunState } from "./RunState";

type RunRow = Schemas["RunRow"];

interface RunsTableProps {
  runs: readonly RunRow[];
  chosen: readonly string[];
  choose: (id: string) => void;
}

export function RunsTable({ runs, chosen, choose }: RunsTableProps) {
  return (
    <Table
      label="Runs"
      items={runs}
      keyOf={(run) => run.id}
      columns={[
        {
          name: "Run",
          kind: "name",
          show: (run) => (
            <span className="flex items-start gap-3">
              <input
                type="checkbox"
                aria-label={`Choose ${runName(run)} to compare`}
                checked={chosen.includes(run.id)}
                onChange={() => choose(run.id)}
                className="mt-0.5 size-4 shrink-0 pointer-coarse:size-6"
              />
              <span className="min-w-0">
                <Link to={runAddress(run.id)} className="line-clamp-2">
                  {runName(run)}
                </Link>
                <Below>
                  <RunState state={run.state} /> {subjectOf(run)}
                  <span className="whitespace-nowrap md:hidden">
                    {" · "}
                    <When at={run.created_at} />
                  </span>
                </Below>
              </span>
            </span>
          ),
        },
        { name: "Outcome", show: (run) => <RunOutcome run={run} /> },
        {
          name: "Mean reward",
          kind: "number",
          from: "md",
          show: (run) => score(run.reward),
          below: (run) => run.reward !== null && count(run.cases, "case"),
        },
        {
          name: "Agent cost",
          kind: "number",
          from: "md",
          show: (run) => (
            <>
              {run.cost_usd === null ? priced(null, run.cost_unknown) : money(run.cost_usd)}
              {run.cost_usd !== null && run.cost_unknown > 0 && (
                <Below>+ {count(run.cost_unknown, "cell")} unknown</Below>
              )}
            </>
          ),
        },
        { name: "Time", kind: "number", from: "lg", show: (run) => duration(run.seconds) },
        {
          name: "Began",
          from: "md",
          show: (run) => (
            <span className="whitespace-nowrap">
              {moment(run.created_at)}
              {run.label && (
                <Below>
                  <code>{run.id}</code>
                </Below>
              )}
            </span>
          ),
        },
      ]}
    />
  );
}

/** How the cells of a run ended, as numbers and as a bar that grows while it goes on. */
function RunOutcome({ run }: { run: RunRow }) {
  return (
    <span className="grid min-w-40 gap-1.5 md:min-w-56">
      <span className="flex flex-wrap gap-x-3 gap-y-1">
        <EndCounts ends={run.ends} />
        {run.flagged > 0 && <Flag text={`${whole(run.flagged)} flagged`} />}
        {run.held > 0 && <span className="text-soft">{whole(run.held)} held</span>}
      </span>
      <span className="flex items-center gap-3 text-sm whitespace-nowrap text-soft tabular-nums">
        <EndBar ends={run.ends} planned={run.planned} />
        {run.total < run.planned && `${whole(run.total)} of ${whole(run.planned)}`}
      </span>
    </span>
  );
}
