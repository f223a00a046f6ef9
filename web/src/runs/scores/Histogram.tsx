import type { Schemas } from "../../api/client";
import { count, score, whole } from "../../parts/figures";

const HEIGHT = 44;

/** How the scores of one grader lie between 0 and 1. */
export function Histogram({ grader }: { grader: Schemas["GraderScores"] }) {
  const { bins } = grader;
  const most = Math.max(1, ...bins);
  const width = 100 / bins.length;
  const filled = bins.map((n, bin) => ({ n, bin })).filter(({ n }) => n > 0);
  const told = filled.map(({ n, bin }) => `${binWords(bin, bins.length)}: ${whole(n)}`);
  return (
    <svg
      className="histogram"
      viewBox={`0 0 100 ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${count(grader.n, "score")}; ${told.join("; ") || "none"}`}
    >
      {filled.map(({ n, bin }) => {
        const height = Math.max(1.5, (n / most) * (HEIGHT - 2));
        return (
          <rect
            key={bin}
            x={bin * width + 0.4}
            y={HEIGHT - height}
            width={width - 0.8}
            height={height}
          >
            <title>{`${binWords(bin, bins.length)}: ${whole(n)}`}</title>
          </rect>
        );
      })}
      <line x1="0" x2="100" y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} vectorEffect="non-scaling-stroke" />
    </svg>
  );
}

function binWords(bin: number, of: number): string {
  return `${score(bin / of)} to ${score((bin + 1) / of)}`;
}
