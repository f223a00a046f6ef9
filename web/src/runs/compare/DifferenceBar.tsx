import type { Schemas } from "../../api/client";
import { Axis, Chart, Span, Track } from "../../parts/Chart";
import { signed } from "../../parts/figures";

const TONES: Record<string, string> = { better: "fill-pass", worse: "fill-fail" };

/** The difference with its interval on a line, around no difference at all. */
export function DifferenceBar({ difference, finding }: DifferenceBarProps) {
  const { mean, low, high } = difference;
  if (mean === null) return null;
  const reach = Math.max(0.05, ...[mean, low ?? 0, high ?? 0].map((end) => Math.abs(end) * 1.15));
  const at = (value: number) => 50 + (value / reach) * 49;
  const isKnown = low !== null && high !== null;
  const range = isKnown
    ? `95 % interval ${signed(low)} to ${signed(high)}`
    : "too few for an interval";
  return (
    <figure className="m-0">
      <Chart said={`difference ${signed(mean)}, ${range}`} height={28}>
        <Track y={14} />
        <rect className="fill-ink" x="49.9" y="2" width="0.2" height="24" />
        <Span
          from={isKnown ? at(low) : null}
          to={isKnown ? at(high) : null}
          at={at(mean)}
          y={14}
          tone={TONES[finding] ?? "fill-soft"}
        />
      </Chart>
      <Axis low={`${signed(-reach)} worse`} high={`better ${signed(reach)}`} />
    </figure>
  );
}

interface DifferenceBarProps {
  difference: Schemas["Difference"];
  finding: string;
}

const PARTS = [
  ["worse", "bg-fail"],
  ["same", "bg-line"],
  ["better", "bg-pass"],
] as const;

/** Cases better, the same and worse, as wide as they are many. */
export function WinBar(counts: { better: number; same: number; worse: number }) {
  return (
    <span
      className="flex h-1.5 min-w-48 flex-1 gap-px overflow-hidden rounded-full"
      aria-hidden="true"
    >
      {PARTS.map(([name, look]) => (
        <span key={name} className={look} style={{ flexGrow: counts[name] }} />
      ))}
    </span>
  );
}
