import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { Histogram } from "../parts/Chart";
import { Figure, Figures } from "../parts/Figures";
import { count, score, whole } from "../parts/figures";
import { Outcome } from "../parts/Outcome";
import { Panel } from "../parts/Panel";
import { Causes } from "../runs/Causes";

type Summary = Schemas["JobSummary"];

/** What a job came to: each number with how many rows it rests on. */
export function JobCards({ summary }: { summary: Summary }) {
  const { mean, calibration, causes } = summary;
  return (
    <div className="mb-10 grid gap-8">
      <Figures>
        <Figure name="Mean score" value={score(mean.mean)}>
          {mean.low === null || mean.high === null
            ? "too few rows for an interval"
            : `95 % interval ${score(mean.low)}–${score(mean.high)}`}
          ; {count(mean.n, "row")}
        </Figure>
        <Figure name="Scored" value={whole(summary.scored)}>
          <span className="flex flex-wrap gap-x-3">
            {summary.errors > 0 && <Outcome state="error" text={count(summary.errors, "error")} />}
            {summary.skipped > 0 && (
              <Outcome state="skipped" text={`${whole(summary.skipped)} skipped`} />
            )}
            errors and skips are no scores
          </span>
        </Figure>
        <Figure name="Scores">
          {summary.bars.length > 0 ? <Histogram bars={summary.bars} /> : "no scores yet"}
        </Figure>
        <Figure name="Agreement with people" value={calibration ? score(calibration.kappa) : "–"}>
          {calibration ? (
            calibration.line
          ) : (
            <>
              never measured: <Link to={`/p/${summary.job.project}/labels`}>label answers</Link>
            </>
          )}
        </Figure>
      </Figures>
      {causes.length > 0 && (
        <Panel title="Why rows could not be graded">
          <Causes causes={causes} to={() => "?status=error"} />
        </Panel>
      )}
    </div>
  );
}
