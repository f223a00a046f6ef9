import { count, duration, money, whole } from "../../parts/figures";
import type { OutlinedStep } from "./asking";

const WIDTH = 1000;
const HEIGHT = 44;
const BINS = 125;

interface Bin {
  first: number;
  tokens: number;
  calls: number;
  errors: number;
}

/** Tokens, calls and errors along the trajectory; a click leads to what happened there. */
export function Timeline({
  steps,
  go,
}: {
  steps: readonly OutlinedStep[];
  go: (to: number) => void;
}) {
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
  const wide = WIDTH / BINS;
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
  return (
    <figure className="timeline">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Along the trajectory: ${words.join(", ")}`}
        onClick={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          const at = Math.floor(((event.clientX - box.left) / box.width) * BINS);
          const near = [...bins.keys()].filter((number) => number <= at).at(-1);
          if (near !== undefined) go(bins.get(near)?.first ?? 0);
        }}
      >
        <line className="ground" x1="0" x2={WIDTH} y1={HEIGHT - 10} y2={HEIGHT - 10} />
        {[...bins].map(([number, bin]) => {
          const x = number * wide;
          const tall = ((HEIGHT - 14) * bin.tokens) / most;
          return (
            <g key={number}>
              {bin.tokens > 0 && (
                <rect
                  className="tokens"
                  x={x}
                  y={HEIGHT - 10 - tall}
                  width={wide - 1}
                  height={tall}
                />
              )}
              {bin.calls > 0 && (
                <rect className="calls" x={x} y={HEIGHT - 8} width={wide - 1} height="3" />
              )}
              {bin.errors > 0 && (
                <rect className="errors" x={x} y={HEIGHT - 4} width={wide - 1} height="4" />
              )}
            </g>
          );
        })}
      </svg>
      <figcaption className="soft">
        <span>{words.join(" · ")}</span>
        <span className="legend">
          <span className="key tokens">tokens</span>
          <span className="key calls">tool calls</span>
          <span className="key errors">errors</span>
        </span>
      </figcaption>
    </figure>
  );
}
