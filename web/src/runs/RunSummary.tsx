import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { Basis, EstimateBar } from "../parts/Chart";
import { Command } from "../parts/Command";
import { EndCounts } from "../parts/Ends";
import { count, duration, percent, priced, score, whole } from "../parts/figures";
import { Flag, Outcome } from "../parts/Outcome";
import { agentName, cellsAddress } from "./names";

type Overview = Schemas["RunOverview"];

/** A run in numbers: cards, why cells could not be graded, agents, and the same in words. */
export function RunSummary({ told }: { told: Overview }) {
  return (
    <div className="stack">
      <Cards told={told} />
      {told.not_graded && <p className="panel warning">{told.not_graded}</p>}
      {told.causes.length > 0 && <Causes told={told} />}
      {told.leaderboard.length > 1 && <Leaderboard rows={told.leaderboard} />}
      <InWords lines={told.lines} />
    </div>
  );
}

function Cards({ told }: { told: Overview }) {
  const { totals } = told;
  return (
    <dl className="numbers">
      {totals.has_verdicts && (
        <div className="panel">
          <dt>Pass rate</dt>
          <dd className="big">{percent(totals.pass_rate.mean)}</dd>
          <dd>
            <EstimateBar value={totals.pass_rate} />
            <Basis
              value={totals.pass_rate}
              rate
              over={`${whole(totals.ends.passed + totals.ends.scored)} of ${whole(totals.graded)} graded`}
            />
          </dd>
        </div>
      )}
      <div className="panel">
        <dt>Mean reward</dt>
        <dd className="big">{score(totals.reward.mean)}</dd>
        <dd>
          <EstimateBar value={totals.reward} />
          <Basis value={totals.reward} over={count(totals.cases, "case")} />
        </dd>
      </div>
      <div className="panel">
        <dt>Coverage</dt>
        <dd className="big">{percent(totals.coverage)}</dd>
        <dd className="soft">
          {whole(totals.graded)} of {count(totals.total, "cell")} graded
          {told.missing > 0 && `; ${whole(told.missing)} without a result`}
          {told.malformed > 0 && `; ${count(told.malformed, "malformed row")} left out`}
        </dd>
      </div>
      <div className="panel">
        <dt>Signs of tampering</dt>
        <dd className="big">
          {totals.flagged > 0 ? <Flag text={whole(totals.flagged)} /> : "none"}
        </dd>
        <dd className="soft">
          {totals.flagged > 0 && <Link to={cellsAddress({ flagged: "true" })}>Show the cells</Link>}
          {totals.held > 0 && ` ${count(totals.held, "cell")} wait for review`}
          {totals.flagged === 0 && totals.held === 0 && `in ${count(totals.total, "cell")}`}
        </dd>
      </div>
      <div className="panel">
        <dt>Agent cost</dt>
        <dd className="big">{totals.cost_usd === null ? "unknown" : priced(totals.cost_usd, 0)}</dd>
        <dd className="soft">
          {totals.cost_unknown > 0 &&
            (totals.cost_usd === null
              ? `for all of ${count(totals.cost_unknown, "cell")}; `
              : `+ ${count(totals.cost_unknown, "cell")} unknown; `)}
          {totals.tokens === null ? "unknown tokens" : `${whole(totals.tokens)} tokens`}
          {totals.judgements > 0 &&
            `; judges ${priced(totals.judge_cost_usd, totals.judge_cost_unknown, "judgement")}`}
        </dd>
      </div>
      <div className="panel">
        <dt>Time</dt>
        <dd className="big">{duration(totals.seconds)}</dd>
        <dd className="soft">all cells added up</dd>
      </div>
    </dl>
  );
}

function Causes({ told }: { told: Overview }) {
  const { run, causes } = told;
  return (
    <section className="panel causes" aria-labelledby="causes">
      <div className="spread">
        <h2 id="causes">Why cells could not be graded</h2>
        {run.kind === "matrix" && (
          <span className="row">
            <span className="soft">run them again:</span>
            <Command text={`assay run --resume ${run.id}`} />
          </span>
        )}
      </div>
      <ul>
        {causes.map((cause) => (
          <li key={cause.text}>
            <Outcome state="error" text={whole(cause.count)} />
            {cause.key ? (
              <Link to={cellsAddress({ outcome: "error", cause: cause.key })}>{cause.text}</Link>
            ) : (
              <span>{cause.text}</span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Leaderboard({ rows }: { rows: Overview["leaderboard"] }) {
  return (
    <section aria-labelledby="agents">
      <h2 id="agents">Agents</h2>
      <div className="scrolls">
        <table className="leaderboard">
          <thead>
            <tr>
              <th>Agent</th>
              <th className="number">Mean reward</th>
              <th className="wide">Interval</th>
              <th className="number">Pass rate</th>
              <th>Cells</th>
              <th className="number">Cost</th>
              <th className="number">Tokens</th>
              <th className="number">Time</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ harness, model, totals, mixed }) => (
              <tr key={`${harness}\n${model}`}>
                <td>
                  <Link to={cellsAddress({ harness, model })}>{agentName({ harness, model })}</Link>
                  {mixed && <span className="soft"> ≠ graders changed</span>}
                </td>
                <td className="number">{score(totals.reward.mean)}</td>
                <td>
                  <EstimateBar value={totals.reward} />
                  <Basis value={totals.reward} over={count(totals.cases, "case")} />
                </td>
                <td className="number">
                  {totals.has_verdicts ? percent(totals.pass_rate.mean) : "–"}
                  {totals.has_verdicts && (
                    <span className="block">
                      <Basis
                        value={totals.pass_rate}
                        rate
                        over={`${whole(totals.graded)} graded`}
                      />
                    </span>
                  )}
                </td>
                <td>
                  <EndCounts ends={totals.ends} />{" "}
                  {totals.flagged > 0 && <Flag text={whole(totals.flagged)} />}
                </td>
                <td className="number">{priced(totals.cost_usd, totals.cost_unknown)}</td>
                <td className="number">
                  {totals.tokens === null ? "unknown" : whole(totals.tokens)}
                </td>
                <td className="number">{duration(totals.seconds)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function InWords({ lines }: { lines: Overview["lines"] }) {
  return (
    <details className="words">
      <summary>The numbers in words, as `assay report` prints them</summary>
      <dl>
        {lines.map((line) => (
          <div key={`${line.label} ${line.text}`} className={line.warns ? "line warning" : "line"}>
            <dt>{line.label}</dt>
            <dd>{line.text}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
