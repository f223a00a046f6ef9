import { Link } from "react-router";
import { Command } from "../parts/Command";
import { Agreement } from "./GraderTable";
import type { Grader } from "./queries";

/** How far it agrees with people, in short. */
export function CalibrationCard({ project, grader }: { project: string; grader: Grader }) {
  const card = grader.calibration;
  const name = encodeURIComponent(grader.key);
  return (
    <section className="panel stack" aria-label="Calibration">
      <h2>Agreement with people</h2>
      {card ? (
        <>
          <Agreement calibration={card} />
          {card.stale && (
            <p className="notice">
              Measured before a change: {card.changed.join("; ")}. Measure it again.
            </p>
          )}
          <Link to={`/p/${project}/calibrations/${card.card}`}>Open the card</Link>
        </>
      ) : (
        <>
          <p className="soft">
            Not measured. Label some answers, then see whether it decides as people do.
          </p>
          <Command text={`assay calibrate ${grader.key} labelled.jsonl`} />
        </>
      )}
      <div className="row">
        <Link className="button" to={`/p/${project}/labels/queue?goal=20&grader=${name}`}>
          Label 20 examples
        </Link>
        <Link className="button" to={`/p/${project}/calibrations?new=1&grader=${name}`}>
          {card ? "Calibrate again" : "Calibrate"}
        </Link>
      </div>
    </section>
  );
}
