import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { EndCounts } from "../parts/Ends";
import { between, count, percent, score, whole } from "../parts/figures";
import { Flag } from "../parts/Outcome";
import { Below, type Shown, Table } from "../parts/Table";
import { When } from "../parts/When";
import { runName, suiteName } from "../runs/names";
import { hasVerdicts, isStill, useRates } from "./rates";

type Run = Schemas["RunRow"];

/** Runs, newest first; those that came since somebody looked are marked. */
export function Verdicts({ runs, since }: { runs: readonly Run[]; since: string | null }) {
  const columns: readonly Shown<Run>[] = [
    {
      name: "Run",
      kind: "name",
      show: (run) => (
        <Link to={`/runs/${encodeURIComponent(run.id)}`} title={run.id} className="line-clamp-2">
          {since !== null && run.created_at > since && (
            <span className="mr-2 inline-block size-2 rounded-full bg-accent">
              <span className="sr-only">new: </span>
            </span>
          )}
          {runName(run)}
        </Link>
      ),
      below: (run) => suiteName(run.suite) || run.kind,
    },
    {
      name: "Outcome",
      show: (run) => (
        <span className="flex flex-wrap gap-x-3 gap-y-1 lg:min-w-52">
          <EndCounts ends={run.ends} />
          {run.flagged > 0 && <Flag text={`${whole(run.flagged)} flagged`} />}
        </span>
      ),
      below: (run) =>
        run.state !== "finished" && (
          <>
            {run.state === "unfinished" ? "not finished" : run.state}: {whole(run.total)} of{" "}
            {whole(run.planned)}
          </>
        ),
    },
    { name: "Pass rate", kind: "number", show: (run) => <PassRate run={run} /> },
    {
      name: "Mean reward",
      kind: "number",
      from: "lg",
      show: (run) => (
        <>
          {score(run.reward)}
          <Below>{count(run.cases, "case")}</Below>
        </>
      ),
    },
    { name: "Began", kind: "number", from: "md", show: (run) => <When at={run.created_at} /> },
  ];
  return <Table columns={columns} items={runs} keyOf={(run) => run.id} />;
}

function PassRate({ run }: { run: Run }) {
  const [rate] = useRates([run]);
  const { passed, failed } = run.ends;
  if (!hasVerdicts(run)) return <span className="text-soft">–</span>;
  const counted = `${whole(passed)} of ${whole(passed + failed)}`;
  if (!isStill(run)) return <span className="text-soft">{counted} so far</span>;
  if (!rate) return <span className="text-soft">…</span>;
  const range = between(rate.low, rate.high, percent);
  return (
    <>
      {percent(rate.mean)}
      <Below>
        <span className="max-md:hidden">{range ? `95 %: ${range}; ` : ""}</span>
        {counted}
      </Below>
    </>
  );
}
