import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { Basis, EstimateBar } from "../parts/Chart";
import { Command } from "../parts/Command";
import { EndCounts } from "../parts/Ends";
import { Figure, Figures } from "../parts/Figures";
import { between, count, duration, percent, priced, score, whole } from "../parts/figures";
import { Flag } from "../parts/Outcome";
import { Notice } from "../parts/Page";
import { Panel } from "../parts/Panel";
import { Below, type Shown, Table } from "../parts/Table";
import { Causes } from "./Causes";
import { Lines } from "./Lines";
import { agentName, cellsAddress } from "./names";

type Overview = Schemas["RunOverview"];

/** A run in numbers, why cells could not be graded, agents, and the same in words. */
export function RunSummary({ told }: { told: Overview }) {
  return (
    <>
      <div>
        {told.not_graded && <Notice>{told.not_graded}</Notice>}
        <Numbers told={told} />
        <details className="mt-5">
          <summary className="cursor-pointer text-sm text-soft">
            The numbers in words, as <code>assay report</code> prints them
          </summary>
          <Lines lines={told.lines} />
        </details>
      </div>
      {told.causes.length > 0 && (
        <Panel
          title="Why cells could not be graded"
          beside={
            told.run.kind === "matrix" && (
              <span className="flex flex-wrap items-center gap-2 text-soft">
                run them again: <Command text={`assay run --resume ${told.run.id}`} />
              </span>
            )
          }
        >
          <Causes
            causes={told.causes}
            to={({ key }) => cellsAddress({ outcome: "error", cause: key })}
          />
        </Panel>
      )}
      {told.leaderboard.length > 1 && <Leaderboard rows={told.leaderboard} />}
      {told.broken_down && (
        <Panel title={`By ${told.broken_down.by}`}>
          <Slices found={told.broken_down} />
        </Panel>
      )}
    </>
  );
}

function Numbers({ told }: { told: Overview }) {
  const { totals } = told;
  return (
    <Figures>
      {totals.has_verdicts && (
        <Figure name="Pass rate" value={percent(totals.pass_rate.mean)}>
          <EstimateBar value={totals.pass_rate} />
          <Basis
            value={totals.pass_rate}
            rate
            over={`${whole(totals.ends.passed + totals.ends.scored)} of ${whole(totals.graded)} graded`}
          />
        </Figure>
      )}
      <Figure name="Mean reward" value={score(totals.reward.mean)}>
        <EstimateBar value={totals.reward} />
        <Basis value={totals.reward} over={count(totals.cases, "case")} />
        {totals.clamped > 0 && (
          <span className="block text-error">
            {count(totals.clamped, "reward")} outside 0 to 1 cut to that
          </span>
        )}
      </Figure>
      <Figure name="Coverage" value={percent(totals.coverage)}>
        {whole(totals.graded)} of {count(totals.total, "cell")} graded
        {told.missing > 0 && `; ${whole(told.missing)} without a result`}
        {told.malformed > 0 && `; ${count(told.malformed, "malformed row")} left out`}
        {totals.flagged === 0 && <span className="block">no signs of tampering</span>}
        {totals.held > 0 && (
          <span className="block">{count(totals.held, "cell")} wait for review</span>
        )}
      </Figure>
      {totals.flagged > 0 && (
        <Figure name="Signs of tampering" value={<Flag text={whole(totals.flagged)} />}>
          <Link to={cellsAddress({ flagged: "true" })}>Show the cells</Link>
        </Figure>
      )}
      <Figure
        name="Agent cost"
        value={totals.cost_usd === null ? "unknown" : priced(totals.cost_usd, 0)}
      >
        {totals.cost_unknown > 0 &&
          (totals.cost_usd === null
            ? `for all of ${count(totals.cost_unknown, "cell")}; `
            : `+ ${count(totals.cost_unknown, "cell")} unknown; `)}
        {totals.tokens === null ? "unknown tokens" : `${whole(totals.tokens)} tokens`}
        {totals.judgements > 0 &&
          `; judges ${priced(totals.judge_cost_usd, totals.judge_cost_unknown, "judgement")}`}
      </Figure>
      <Figure name="Time" value={duration(totals.seconds)}>
        all cells added up
      </Figure>
    </Figures>
  );
}

function Leaderboard({ rows }: { rows: Overview["leaderboard"] }) {
  return (
    <Panel title="Agents" note="with 95 % intervals">
      <Table
        label="Agents"
        items={rows}
        keyOf={agentName}
        columns={[
          {
            name: "Agent",
            kind: "name",
            show: ({ harness, model }) => (
              <Link to={cellsAddress({ harness, model })}>{agentName({ harness, model })}</Link>
            ),
            below: ({ mixed }) => mixed && "≠ graders changed",
          },
          ...OF_TOTALS,
        ]}
      />
    </Panel>
  );
}

/** What the cells of an agent, or with one value of a field, come to. */
const OF_TOTALS: readonly Shown<{ totals: Schemas["Totals"] }>[] = [
  {
    name: "Outcome",
    show: ({ totals }) => (
      <span className="flex min-w-32 flex-wrap gap-x-3">
        <EndCounts ends={totals.ends} />
        {totals.flagged > 0 && <Flag text={whole(totals.flagged)} />}
      </span>
    ),
  },
  {
    name: "Mean reward",
    kind: "number",
    show: ({ totals }) => score(totals.reward.mean),
    below: ({ totals }) => between(totals.reward.low, totals.reward.high),
  },
  {
    name: "Interval",
    isMute: true,
    from: "lg",
    show: ({ totals }) => (
      <span className="block min-w-28 pt-1.5">
        <EstimateBar value={totals.reward} />
      </span>
    ),
  },
  {
    name: "Pass rate",
    kind: "number",
    show: ({ totals: { has_verdicts: isJudged, pass_rate: rate, graded } }) =>
      isJudged ? (
        <>
          {percent(rate.mean)} of {whole(graded)}
          <Below>{between(rate.low, rate.high, percent)}</Below>
        </>
      ) : (
        "–"
      ),
  },
  {
    name: "Cost",
    kind: "number",
    show: ({ totals }) => priced(totals.cost_usd, totals.cost_unknown),
  },
  {
    name: "Tokens",
    kind: "number",
    from: "lg",
    show: ({ totals }) => (totals.tokens === null ? "unknown" : whole(totals.tokens)),
  },
  {
    name: "Time",
    kind: "number",
    from: "lg",
    show: ({ totals }) => duration(totals.seconds),
  },
];

/** The cells of each value of a field, the lowest mean reward first. */
export function Slices({ found: { by, slices, more } }: { found: Schemas["Breakdown"] }) {
  return (
    <>
      <Table
        label={`Cells by ${by}`}
        items={slices}
        keyOf={(one) => one.value}
        columns={[{ name: by, kind: "name", show: (one) => one.value }, ...OF_TOTALS]}
      />
      {more > 0 && <p className="text-soft">and {count(more, "more value")}</p>}
    </>
  );
}
