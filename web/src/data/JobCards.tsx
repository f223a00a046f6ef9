import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { Histogram } from "../parts/Chart";
import { count, score, whole } from "../parts/figures";
import { Outcome } from "../parts/Outcome";

type Summary = Schemas["JobSummary"];

/** What a job came to: each number with how many rows it rests on. */
export function JobCards({ summary }: { summary: Summary }) {
  const { mean, calibration } = summary;
  return (
    <>
      <dl className="numbers">
        <div className="panel">
          <dt>Mean score</dt>
          <dd className="big">{score(mean.mean)}</dd>
          <dd className="soft">
            {mean.low === null || mean.high === null
              ? "too few rows for an interval"
              : `95 % interval ${score(mean.low)}–${score(mean.high)}`}
            ; {count(mean.n, "row")}
          </dd>
        </div>
        <div className="panel">
          <dt>How rows ended</dt>
          <dd className="row">
            <Outcome state="scored" text={`${whole(summary.scored)} scored`} />
            {summary.errors > 0 && <Outcome state="error" text={count(summary.errors, "error")} />}
            {summary.skipped > 0 && (
              <Outcome state="skipped" text={`${whole(summary.skipped)} skipped`} />
            )}
          </dd>
          <dd className="soft">errors and skips are no scores</dd>
        </div>
        <div className="panel">
          <dt>Scores</dt>
          <dd>{summary.bars.length > 0 ? <Histogram bars={summary.bars} /> : "no scores yet"}</dd>
        </div>
        <div className="panel">
          <dt>Agreement with people</dt>
          <dd className="anywhere">
            {calibration ? (
              calibration.line
            ) : (
              <>
                never measured: <Link to={`/p/${summary.job.project}/labels`}>label answers</Link>
              </>
            )}
          </dd>
        </div>
      </dl>
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
