import { duration, money, whole } from "../../parts/figures";
import type { OutlinedStep, Step } from "./asking";
import { Folded } from "./Folded";

const FOLDED_LINES: Partial<Record<OutlinedStep["kind"], number>> = {
  result: 3,
  thought: 2,
  seen: 3,
};

/** One step; what a tool answered is folded to three lines, a thought to two. */
export function StepCard({ step, index, outlined, isOpen, isHere, open }: StepCardProps) {
  const lines = FOLDED_LINES[outlined.kind];
  const text = step?.text.text ?? "";
  const isLong =
    lines !== undefined && (text.split("\n").length > lines || text.length > 110 * lines);
  return (
    <article
      className={`step ${outlined.kind}${outlined.is_error ? " bad" : ""}${isHere ? " here" : ""}${
        outlined.parent === null ? "" : " nested"
      }`}
      aria-label={`Step ${index + 1}`}
    >
      <header>
        <span className="place">{index + 1}</span>
        <span className="label">{outlined.label}</span>
        {outlined.is_error && <span className="outcome error">! error</span>}
        <span className="took soft">
          {[
            outlined.tokens === null ? "" : `${whole(outlined.tokens)} tokens`,
            outlined.cost_usd === null ? "" : money(outlined.cost_usd),
            outlined.seconds === null ? "" : duration(outlined.seconds),
          ]
            .filter(Boolean)
            .join(" · ")}
        </span>
      </header>
      {step ? (
        text && (
          <div className={isLong && !isOpen ? `fold lines-${lines}` : ""}>
            <Folded text={step.text} />
          </div>
        )
      ) : (
        <p className="soft waiting" aria-busy="true" />
      )}
      {step && isLong && (
        <button type="button" className="quiet unfold" onClick={open} aria-expanded={isOpen}>
          {isOpen
            ? "Fold"
            : `Show all ${text.split("\n").length > 1 ? `${text.split("\n").length} lines` : ""}`}
        </button>
      )}
    </article>
  );
}

interface StepCardProps {
  step: Step | undefined;
  index: number;
  outlined: OutlinedStep;
  isOpen: boolean;
  isHere: boolean;
  open: () => void;
}
