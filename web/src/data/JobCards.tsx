import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { count, score, whole } from "../parts/figures";
import { Outcome } from "../parts/Outcome";

type Summary = Schemas["JobSummary"];

/** What a job came to: each number with how many rows it rests on. */
export function JobCards({ summary }: { summary: Summary }) {
  const { mean, calibration } = summary;
  return (
    <>
      <div className="data-cards">
        <div className="panel">
          <span className="soft">Mean score</span>
          <span className="value">{score(mean.mean)}</span>
          <span className="soft">
            {mean.low === null || mean.high === null
              ? "too few rows for an interval"
              : `${score(mean.low)} to ${score(mean.high)}, 95 %`}
            , n={whole(mean.n)}
          </span>
        </div>
        <div className="panel">
          <span className="soft">How rows ended</span>
          <span className="row">
            <Outcome state="scored" text={`${whole(summary.scored)} scored`} />
            {summary.errors > 0 && <Outcome state="error" text={count(summary.errors, "error")} />}
            {summary.skipped > 0 && (
              <Outcome state="skipped" text={`${whole(summary.skipped)} skipped`} />
            )}
          </span>
          <span className="soft">errors and skips are no scores</span>
        </div>
        <div className="panel">
          <span className="soft">Scores</span>
          <Histogram bars={summary.bars} />
        </div>
        <div className="panel">
          <span className="soft">Agreement with people</span>
          {calibration ? (
            <span className="anywhere">{calibration.line}</span>
          ) : (
            <span>
              never measured: <Link to={`/p/${summary.job.project}/labels`}>label answers</Link>
            </span>
          )}
        </div>
      </div>
      {summary.causes.length > 0 && (
        <details open>
          <summary>Why rows could not be graded</summary>
          <table className="data-causes">
            <tbody>
              {summary.causes.map((cause) => (
                <tr key={cause.text}>
                  <td>
                    <Outcome state="error" text={`${whole(cause.count)} ×`} />
                  </td>
                  <td className="anywhere">{cause.text}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      )}
    </>
  );
}

function Histogram({ bars }: { bars: Summary["bars"] }) {
  if (bars.length === 0) return <span>no scores yet</span>;
  const most = Math.max(...bars.map((bar) => bar.count));
  const said = bars
    .filter((bar) => bar.count > 0)
    .map((bar) => `${score(bar.low)} to ${score(bar.high)}: ${bar.count}`)
    .join("; ");
  return (
    <svg className="data-histogram" viewBox="0 0 200 58" role="img" aria-label={`Scores: ${said}`}>
      {bars.map((bar, place) => {
        const height = bar.count === 0 ? 0 : Math.max(2, (bar.count / most) * 40);
        return (
          <rect key={bar.low} x={place * 20 + 1} width={18} y={42 - height} height={height}>
            <title>{`${score(bar.low)} to ${score(bar.high)}: ${count(bar.count, "row")}`}</title>
          </rect>
        );
      })}
      <line x1={0} x2={200} y1={42.5} y2={42.5} />
      <text x={0} y={55}>
        {score(bars[0]?.low)}
      </text>
      <text x={200} y={55} textAnchor="end">
        {score(bars.at(-1)?.high)}
      </text>
    </svg>
  );
}
