import { Chart } from "../../parts/Chart";
import { count, duration, money, whole } from "../../parts/figures";
import type { OutlinedStep } from "./asking";

const HEIGHT = 44;
const BINS = 125;
const WIDE = 100 / BINS;
const KEYS = [
  ["tokens", "bg-accent"],
  ["tool calls", "bg-edge"],
  ["errors", "bg-error"],
] as const;

interface Bin {
  first: number;
  tokens: number;
  calls: number;
  errors: number;
}

/** Tokens, calls and errors along the trajectory; a click leads to what happened there. */
export function Timeline({ steps, go }: TimelineProps) {
  const timed = steps.filter((step) => step.at !== null);
  const end = Math.max(0, ...timed.map((step) => (step.at ?? 0) + (step.seconds ?? 0)));
  // Where most steps have no time, they stand side by side.
  const isTimed = timed.length > steps.length / 2 && end > 0;
  const bins = new Map<number, Bin>();
  let place = 0;
  steps.forEach((step, index) => {
    if (isTimed) place = Math.max(place, (step.at ?? 0) / end);
    else place = index / Math.max(1, steps.length);
    const number = Math.min(BINS - 1, Math.floor(place * BINS));
    const bin = bins.get(number) ?? { first: index, tokens: 0, calls: 0, errors: 0 };
    bin.tokens += step.tokens ?? 0;
    bin.calls += step.kind === "call" || step.kind === "action" ? 1 : 0;
    bin.errors += step.is_error ? 1 : 0;
    bins.set(number, bin);
  });
  const most = Math.max(1, ...[...bins.values()].map((bin) => bin.tokens));
  const known = steps.filter((step) => step.tokens !== null);
  const spent = steps.filter((step) => step.cost_usd !== null);
  const words = [
    count(steps.length, "step"),
    isTimed ? duration(end) : "times unknown",
    known.length > 0
      ? `${whole(known.reduce((sum, s) => sum + (s.tokens ?? 0), 0))} tokens`
      : "tokens unknown",
    money(spent.length > 0 ? spent.reduce((sum, s) => sum + (s.cost_usd ?? 0), 0) : null).replace(
      "unknown",
      "cost unknown",
    ),
    count(steps.filter((step) => step.is_error).length, "error"),
  ];
  const ground = HEIGHT - 10;
  return (
    <figure className="m-0">
      {/* Steps are reached by keyboard in the outline beside it. */}
      <div
        className="cursor-pointer"
        onClick={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          const at = Math.floor(((event.clientX - box.left) / box.width) * BINS);
          const near = [...bins.keys()].filter((number) => number <= at).at(-1);
          if (near !== undefined) go(bins.get(near)?.first ?? 0);
        }}
      >
        <Chart said={`Along the trajectory: ${words.join(", ")}`} height={HEIGHT}>
          <rect className="fill-line" y={ground} width="100" height="1" />
          {[...bins].map(([number, { tokens, calls, errors }]) => {
            const tall = ((HEIGHT - 14) * tokens) / most;
            const place = { x: number * WIDE, width: WIDE * 0.85 };
            return (
              <g key={number}>
                <rect className="fill-accent" {...place} y={ground - tall} height={tall} />
                {calls > 0 && <rect className="fill-edge" {...place} y={ground + 2} height="3" />}
                {errors > 0 && <rect className="fill-error" {...place} y={ground + 6} height="4" />}
              </g>
            );
          })}
        </Chart>
      </div>
      <figcaption className="flex flex-wrap justify-between gap-x-4 text-sm text-soft tabular-nums">
        {words.join(" · ")}
        <span className="flex gap-3" aria-hidden="true">
          {KEYS.map(([name, look]) => (
            <span key={name} className="inline-flex items-center gap-1.5">
              <i className={`size-2 rounded-full ${look}`} /> {name}
            </span>
          ))}
        </span>
      </figcaption>
    </figure>
  );
}

interface TimelineProps {
  steps: readonly OutlinedStep[];
  go: (to: number) => void;
}
