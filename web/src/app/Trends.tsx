import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { Trend } from "../parts/Chart";
import { Figure, Figures } from "../parts/Figures";
import { between, count, percent } from "../parts/figures";
import { Panel } from "../parts/Panel";
import { When } from "../parts/When";
import { suiteName } from "../runs/names";
import { hasVerdicts, useRates } from "./rates";

type Run = Schemas["RunRow"];

const SHOWN = 8;
/** Runs of a suite that are drawn: each may have to be counted for its interval. */
const POINTS = 12;

/** How the pass rate of each suite went on; those that were run once have no trend. */
export function Trends({ runs }: { runs: readonly Run[] }) {
  const suites = [...bySuite(runs)].filter(([, found]) => found.length > 1).slice(0, SHOWN);
  if (suites.length === 0) return null;
  return (
    <Panel
      title="Pass rate by suite"
      note="of finished runs, oldest to newest, with 95 % intervals"
    >
      <Figures>
        {suites.map(([suite, found]) => (
          <Suite key={suite} suite={suite} runs={found} />
        ))}
      </Figures>
    </Panel>
  );
}

function Suite({ suite, runs }: { suite: string; runs: readonly Run[] }) {
  const newest = runs.slice(0, POINTS);
  const rates = useRates(newest);
  const points = newest
    .map(({ pass_rate: rate }, place) => ({ ...(rates[place] ?? rate), mean: rate.mean ?? 0 }))
    .reverse();
  const [last, before] = runs;
  if (!last || !before) return null;
  const pair = new URLSearchParams({ a: before.id, b: last.id });
  return (
    <Figure
      name={<span title={suite}>{suiteName(suite)}</span>}
      value={percent(last.pass_rate.mean)}
    >
      <span className="my-2 block max-w-64">
        <Trend
          points={points}
          said={`Pass rate of ${suiteName(suite)}: ${points.map(rateSaid).join(", ")}`}
        />
      </span>
      {count(runs.length, "run")}, newest <When at={last.created_at} />
      <br />
      <Link to={`/compare?${pair}`}>Compare the last two</Link>
    </Figure>
  );
}

/** Finished runs that could fail, newest first, by what was run. */
function bySuite(runs: readonly Run[]): Map<string, Run[]> {
  const found = new Map<string, Run[]>();
  for (const run of runs) {
    if (run.state !== "finished" || !hasVerdicts(run)) continue;
    const key = run.suite || run.kind;
    found.set(key, [...(found.get(key) ?? []), run]);
  }
  return found;
}

function rateSaid({ mean, low, high }: { mean: number; low: number | null; high: number | null }) {
  const range = between(low, high, percent);
  return range ? `${percent(mean)} (${range})` : percent(mean);
}
