import type { Schemas } from "../api/client";
import { score, whole } from "./figures";
import "./parts.css";

const HEIGHT = 44;

/** How scores lie between the first bar's low end and the last one's high end. */
export function Histogram({ bars, what = "Scores" }: HistogramProps) {
  const most = Math.max(1, ...bars.map((bar) => bar.count));
  const width = 100 / bars.length;
  const filled = bars.map((bar, place) => ({ ...bar, place })).filter((bar) => bar.count > 0);
  return (
    <span className="histogram">
      <svg
        viewBox={`0 0 100 ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${what}: ${filled.map(said).join("; ") || "none"}`}
      >
        {filled.map((bar) => {
          const height = Math.max(1.5, (bar.count / most) * (HEIGHT - 2));
          return (
            <rect
              key={bar.place}
              x={bar.place * width + 0.4}
              y={HEIGHT - height}
              width={width - 0.8}
              height={height}
            >
              <title>{said(bar)}</title>
            </rect>
          );
        })}
        <line x1="0" x2="100" y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} />
      </svg>
      <span className="ends-of soft" aria-hidden="true">
        <span>{score(bars[0]?.low)}</span>
        <span>{score(bars.at(-1)?.high)}</span>
      </span>
    </span>
  );
}

interface HistogramProps {
  bars: readonly Schemas["Bar"][];
  what?: string;
}

function said({ low, high, count }: Schemas["Bar"]): string {
  return `${score(low)} to ${score(high)}: ${whole(count)}`;
}
