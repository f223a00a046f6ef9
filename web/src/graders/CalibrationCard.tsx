import { Link } from "react-router";
import { Command } from "../parts/Command";
import { Agreement } from "./GraderTable";
import type { Grader } from "./queries";

/** How far it agrees with people, in short. */
export function CalibrationCard({ project, grader }: { project: string; grader: Grader }) {
  const card = grader.calibration;
  return (
    <section className="panel" aria-label="Calibration">
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
          <div className="stack tight">
            <Link to={`/p/${project}/labels`}>Label examples</Link>
            <Command text={`assay calibrate ${grader.key} labelled.jsonl`} />
          </div>
        </>
      )}
    </section>
  );
}
