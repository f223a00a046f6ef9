import type { Schemas } from "../../api/client";
import { Histogram } from "../../parts/Chart";
import { between, count, percent, score, whole } from "../../parts/figures";
import { Outcome } from "../../parts/Outcome";
import "./scores.css";

type Grader = Schemas["GraderScores"];

/** A small histogram for each grader of a run. */
export function ScoreGrid({ table }: { table: Schemas["ScoreTable"] }) {
  return (
    <ul className="score-grid">
      {table.graders.map((grader) => (
        <li key={grader.key}>
          <div className="score-card">
            <Card grader={grader} />
          </div>
        </li>
      ))}
    </ul>
  );
}

function Card({ grader }: { grader: Grader }) {
  return (
    <>
      <span className="score-name">
        <span className="score-words" title={graderPath(grader)}>
          {grader.name}
        </span>
        {grader.gate && <span className="soft">gate</span>}
      </span>
      {grader.depth > 1 && <span className="score-above clip soft">in {aboveWords(grader)}</span>}
      {grader.n ? (
        <Histogram bars={barsOf(grader.bins)} />
      ) : (
        <span className="no-scores soft">no scores</span>
      )}
      <span className="score-mean">
        <strong>{score(grader.mean.mean)}</strong>
        <span className="soft">{meanWords(grader)}</span>
      </span>
      <span className="score-notes">
        <Missing grader={grader} />
        {grader.constant !== null && grader.constant >= 0.5 && grader.n > 1 && (
          <span className="soft">
            {percent(grader.constant)} are {score(grader.commonest)}
          </span>
        )}
      </span>
    </>
  );
}

function Missing({ grader }: { grader: Grader }) {
  return (
    <>
      {grader.errors > 0 && <Outcome state="error" text={count(grader.errors, "error")} />}
      {grader.skipped > 0 && <Outcome state="skipped" text={`${whole(grader.skipped)} skipped`} />}
    </>
  );
}

/** Bars of equal width between 0 and 1. */
function barsOf(bins: readonly number[]): Schemas["Bar"][] {
  const at = (bin: number) => bin / bins.length;
  return bins.map((number, bin) => ({ low: at(bin), high: at(bin + 1), count: number }));
}

function meanWords(grader: Grader): string {
  const ends = between(grader.mean.low, grader.mean.high);
  return `${ends ? `${ends} · ` : ""}n ${whole(grader.n)}`;
}

/** The same numbers as a table. */
export function ScoreNumbers({ table }: { table: Schemas["ScoreTable"] }) {
  return (
    <div className="scrolls">
      <table className="score-numbers">
        <thead>
          <tr>
            <th scope="col">Grader</th>
            <th scope="col" className="number">
              Scores
            </th>
            <th scope="col" className="number">
              Mean
            </th>
            <th scope="col">95 % interval</th>
            <th scope="col" className="number">
              Cases
            </th>
            <th scope="col" className="number">
              Passed
            </th>
            <th scope="col" className="number">
              Errors
            </th>
            <th scope="col" className="number">
              Skipped
            </th>
            <th scope="col">Commonest</th>
          </tr>
        </thead>
        <tbody>
          {table.graders.map((grader) => (
            <tr key={grader.key}>
              <th scope="row" title={graderPath(grader)}>
                {grader.depth > 1 && <span className="soft">{aboveWords(grader)} / </span>}
                {grader.name}
              </th>
              <td className="number">{whole(grader.n)}</td>
              <td className="number">{score(grader.mean.mean)}</td>
              <td>{between(grader.mean.low, grader.mean.high) || "–"}</td>
              <td className="number">{whole(grader.mean.n)}</td>
              <td className="number">{whole(grader.passed)}</td>
              <td className="number">{whole(grader.errors)}</td>
              <td className="number">{whole(grader.skipped)}</td>
              <td>
                {score(grader.commonest)} <span className="soft">{percent(grader.constant)}</span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Where a grader stands in the score tree: its names, outermost first. */
export function graderPath(grader: { key: string; name: string }): string {
  return names(grader.key).join(" / ") || grader.name;
}

function aboveWords(grader: Grader): string {
  return names(grader.key).slice(0, -1).join(" / ");
}

function names(key: string): string[] {
  return key
    .split("/")
    .slice(1)
    .map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
}
