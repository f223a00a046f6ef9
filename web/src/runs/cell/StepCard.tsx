import { Button } from "../../parts/Button";
import { duration, money, whole } from "../../parts/figures";
import { Outcome } from "../../parts/Outcome";
import type { OutlinedStep, Step } from "./asking";
import { Folded } from "./Folded";

type Kind = OutlinedStep["kind"];

/** Of how many lines what a tool answered, and a thought, are shown at first. */
const FOLDED: Partial<Record<Kind, [number, string]>> = {
  result: [3, "line-clamp-3 [&_pre]:overflow-visible"],
  seen: [3, "line-clamp-3 [&_pre]:overflow-visible"],
  thought: [2, "line-clamp-2 [&_pre]:overflow-visible"],
};

const CODE = ["font-semibold", "rounded-md bg-sunk px-3 py-2"] as const;
const QUIET = ["font-normal text-soft", ""] as const;
const PROSE = "[&_pre]:font-sans [&_pre]:text-base";
/** How its name and its text look. */
const LOOKS: Partial<Record<Kind, readonly [string, string]>> = {
  call: CODE,
  action: CODE,
  said: ["font-semibold", PROSE],
  thought: [QUIET[0], `text-soft ${PROSE}`],
};

/** One step; what is long is folded. */
export function StepCard({ step, index, outlined, isOpen, isHere, open }: StepCardProps) {
  const [lines, clamp] = FOLDED[outlined.kind] ?? [0, ""];
  const text = step?.text.text ?? "";
  const all = text.split("\n").length;
  const isLong = lines > 0 && (all > lines || text.length > 110 * lines);
  const [head, body] = LOOKS[outlined.kind] ?? QUIET;
  const took = [
    outlined.tokens === null ? "" : `${whole(outlined.tokens)} tokens`,
    outlined.cost_usd === null ? "" : money(outlined.cost_usd),
    outlined.seconds === null ? "" : duration(outlined.seconds),
  ];
  return (
    <article
      aria-label={`Step ${index + 1}`}
      aria-current={isHere ? "step" : undefined}
      data-nested={outlined.parent === null ? undefined : ""}
      className={`grid grid-cols-[2.25rem_minmax(0,1fr)] gap-x-2 border-b border-line px-2 py-2.5 aria-[current=step]:bg-accent-soft
        data-nested:ml-6 ${outlined.is_error ? "shadow-[inset_3px_0_0_var(--color-error)]" : ""}`}
    >
      <span className="pt-px text-right text-sm text-soft tabular-nums">{index + 1}</span>
      <div className="min-w-0">
        <header className="flex items-start gap-x-3">
          <b className={`min-w-0 wrap-anywhere ${head}`}>{outlined.label}</b>
          {outlined.is_error && <Outcome state="error" text="error" />}
          <span className="ml-auto shrink-0 text-sm text-soft tabular-nums">
            {took.filter(Boolean).join(" · ")}
          </span>
        </header>
        {step ? (
          text && (
            <div className={`mt-1 ${body} ${isLong && !isOpen ? clamp : ""}`}>
              <Folded text={step.text} />
            </div>
          )
        ) : (
          <p className="m-0 h-6" aria-busy="true" />
        )}
        {step && isLong && (
          <span className="-ml-3 print:hidden">
            <Button tone="quiet" aria-expanded={isOpen} onPress={open}>
              {isOpen ? "Fold" : `Show all ${all > 1 ? `${all} lines` : ""}`}
            </Button>
          </span>
        )}
      </div>
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
