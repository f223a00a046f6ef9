import { useId } from "react";
import type { Schemas } from "../api/client";
import { between, percent, score, whole } from "./figures";

/** The frame of every chart: its width is that of its place, its words are for who cannot see it. */
export function Chart({ said, height, children, className = "" }: ChartProps) {
  return (
    <svg
      viewBox={`0 0 100 ${height}`}
      preserveAspectRatio="none"
      width="100%"
      height={height}
      className={`block overflow-visible ${className}`}
      {...(said ? { role: "img", "aria-label": said } : { "aria-hidden": true })}
    >
      {children}
    </svg>
  );
}

interface ChartProps {
  /** What it shows, as a sentence; empty where text beside it says so. */
  said: string;
  height: number;
  children: React.ReactNode;
  className?: string;
}

/** Where a chart's values begin and end, below it. */
export function Axis({ low, high }: { low: string; high: string }) {
  return (
    <span className="flex justify-between text-xs text-soft tabular-nums" aria-hidden="true">
      <span>{low}</span>
      <span>{high}</span>
    </span>
  );
}

/** A line along which something lies: where charts of one number stand. */
export function Track({ y = 4 }: { y?: number }) {
  return <rect className="fill-fill" x="0" y={y - 1} width="100" height="2" rx="1" />;
}

/** From here to there, and where its middle is; in percent of the width. */
export function Span({ from, to, at, y = 4, tone = "fill-accent" }: SpanProps) {
  return (
    <g className={tone}>
      {from !== null && to !== null && (
        <rect x={from} y={y - 3} width={Math.max(0.6, to - from)} height="6" opacity="0.3" />
      )}
      <rect x={Math.min(98.8, Math.max(0, at - 0.6))} y={y - 4} width="1.2" height="8" />
    </g>
  );
}

interface SpanProps {
  from: number | null;
  to: number | null;
  at: number;
  y?: number;
  tone?: string;
}

/** Where an estimate and its interval lie between 0 and 1. */
export function EstimateBar({ value }: { value: Schemas["Interval"] }) {
  const { mean, low, high } = value;
  if (mean === null) return null;
  const hasRange = low !== null && high !== null;
  return (
    <Chart said="" height={8}>
      <Track />
      <Span from={hasRange ? 100 * low : null} to={hasRange ? 100 * high : null} at={100 * mean} />
    </Chart>
  );
}

/** The interval of an estimate and what it rests on, in words. */
export function Basis({ value, rate, over }: BasisProps) {
  const range = between(value.low, value.high, rate ? percent : score);
  return (
    <span className="text-soft">
      <span className="whitespace-nowrap">
        {range ? `95 % interval ${range}` : "too few for an interval"}
      </span>
      {over && "; "}
      {over && <span className="whitespace-nowrap">{over}</span>}
    </span>
  );
}

interface BasisProps {
  value: Schemas["Interval"];
  rate?: boolean;
  over?: string;
}

const HEIGHT = 48;

/** How scores lie between the first bar's low end and the last one's high end. */
export function Histogram({ bars, what = "Scores" }: HistogramProps) {
  const most = Math.max(1, ...bars.map((bar) => bar.count));
  const width = 100 / bars.length;
  const filled = bars.map((bar, place) => ({ ...bar, place })).filter((bar) => bar.count > 0);
  return (
    <span className="block w-full">
      <Chart said={`${what}: ${filled.map(barSaid).join("; ") || "none"}`} height={HEIGHT}>
        {filled.map((bar) => {
          const height = Math.max(1.5, (bar.count / most) * (HEIGHT - 2));
          return (
            <rect
              key={bar.place}
              className="fill-accent"
              x={bar.place * width + 0.4}
              y={HEIGHT - height}
              width={width - 0.8}
              height={height}
            >
              <title>{barSaid(bar)}</title>
            </rect>
          );
        })}
        <rect className="fill-line" x="0" y={HEIGHT - 0.5} width="100" height="1" />
      </Chart>
      <Axis low={score(bars[0]?.low)} high={score(bars.at(-1)?.high)} />
    </span>
  );
}

interface HistogramProps {
  bars: readonly Schemas["Bar"][];
  what?: string;
}

function barSaid({ low, high, count }: Schemas["Bar"]): string {
  return `${score(low)} to ${score(high)}: ${whole(count)}`;
}

/** How a share between 0 and 1 went on, oldest first, with its interval as a band around it. */
export function Trend({ points, said, height = 40 }: TrendProps) {
  const clip = useId();
  const step = 100 / Math.max(1, points.length - 1);
  const x = (place: number) => (points.length === 1 ? 50 : place * step);
  const y = (share: number) => 2 + (1 - share) * (height - 4);
  const line = points.map((point, place) => `${x(place)},${y(point.mean)}`).join(" ");
  const band = [
    ...points.map((point, place) => `${x(place)},${y(point.high ?? point.mean)}`),
    ...points.map((point, place) => `${x(place)},${y(point.low ?? point.mean)}`).reverse(),
  ].join(" ");
  const last = points.at(-1);
  return (
    <Chart said={said} height={height}>
      <clipPath id={clip}>
        <rect x="-1" y="0" width="102" height={height} />
      </clipPath>
      <rect className="fill-line" x="0" y={height - 1} width="100" height="1" />
      <g clipPath={`url(#${clip})`}>
        {points.length > 1 && <polygon className="fill-accent" opacity="0.25" points={band} />}
        <polyline
          className="fill-none stroke-accent"
          strokeWidth="1.5"
          strokeLinejoin="round"
          vectorEffect="non-scaling-stroke"
          points={line}
        />
      </g>
      {last && (
        <line
          className="stroke-accent"
          strokeWidth="6"
          strokeLinecap="round"
          vectorEffect="non-scaling-stroke"
          x1={x(points.length - 1)}
          x2={x(points.length - 1)}
          y1={y(last.mean)}
          y2={y(last.mean)}
        />
      )}
    </Chart>
  );
}

interface TrendProps {
  points: readonly { mean: number; low: number | null; high: number | null }[];
  said: string;
  height?: number;
}
