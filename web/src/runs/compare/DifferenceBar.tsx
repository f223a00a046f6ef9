import type { Schemas } from "../../api/client";
import { signed } from "../../parts/figures";

const WIDTH = 600;
const HEIGHT = 46;

/** The difference with its interval on a line, around no difference at all. */
export function DifferenceBar({ difference, finding }: DifferenceBarProps) {
  const { mean, low, high } = difference;
  if (mean === null) return null;
  const reach = Math.max(0.05, ...[mean, low ?? 0, high ?? 0].map((end) => Math.abs(end) * 1.15));
  const at = (value: number) => WIDTH / 2 + (value / reach) * (WIDTH / 2 - 4);
  const isClear = finding === "better" || finding === "worse";
  const ends = low === null || high === null ? "too few for an interval" : "";
  return (
    <figure className={`difference ${isClear ? finding : "unclear"}`}>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`difference ${signed(mean)}${ends ? `, ${ends}` : `, 95 % interval ${signed(low)} to ${signed(high)}`}`}
      >
        <line className="axis" x1="0" x2={WIDTH} y1={HEIGHT / 2} y2={HEIGHT / 2} />
        {low !== null && high !== null && (
          <rect
            className="interval"
            x={at(low)}
            y={HEIGHT / 2 - 8}
            width={Math.max(2, at(high) - at(low))}
            height="16"
            rx="3"
          />
        )}
        <line className="zero" x1={WIDTH / 2} x2={WIDTH / 2} y1="2" y2={HEIGHT - 2} />
        <circle className="mean" cx={at(mean)} cy={HEIGHT / 2} r="6" />
      </svg>
      <figcaption className="soft">
        <span>{signed(-reach)} worse</span>
        <span>0</span>
        <span>better {signed(reach)}</span>
      </figcaption>
    </figure>
  );
}

interface DifferenceBarProps {
  difference: Schemas["Difference"];
  finding: string;
}

/** Cases better, the same and worse, as wide as they are many. */
export function WinBar({ better, same, worse }: { better: number; same: number; worse: number }) {
  const total = better + same + worse;
  if (!total) return null;
  const parts = [
    ["worse", worse],
    ["same", same],
    ["better", better],
  ] as const;
  let from = 0;
  return (
    <svg className="wins" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      {parts.map(([name, n]) => {
        const x = from;
        from += (n / total) * 100;
        return (
          n > 0 && <rect key={name} className={name} x={x} width={(n / total) * 100} height="6" />
        );
      })}
    </svg>
  );
}
