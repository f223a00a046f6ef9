import type { Schemas } from "../api/client";
import { score } from "../parts/figures";

interface Props {
  figure: Schemas["Figure"];
  before?: Schemas["Figure"] | null;
  from?: number;
}

const WIDTH = 200;

/** A measure with its interval on a line from `from` to 1; a ring is the card before. */
export function IntervalBar({ figure, before, from = 0 }: Props) {
  const x = (value: number) =>
    4 + ((WIDTH - 8) * (Math.max(from, Math.min(1, value)) - from)) / (1 - from);
  if (figure.value === null) return null;
  const { low, high, value } = figure;
  return (
    <svg className="interval" viewBox={`0 0 ${WIDTH} 16`} aria-hidden="true">
      <line className="axis" x1={4} x2={WIDTH - 4} y1={8} y2={8} />
      {from < 0 && <line className="zero" x1={x(0)} x2={x(0)} y1={2} y2={14} />}
      {low !== null && high !== null && (
        <line className="span" x1={x(low)} x2={x(high)} y1={8} y2={8} />
      )}
      {before?.value !== null && before?.value !== undefined && (
        <circle className="before" cx={x(before.value)} cy={8} r={4.5} />
      )}
      <circle className="point" cx={x(value)} cy={8} r={3.5} />
    </svg>
  );
}

/** A number with a minus that is as wide as a digit. */
export function number(value: number | null | undefined): string {
  return score(value).replace("-", "−");
}

/** `0.62 [0.51, 0.71]` */
export function figureText(figure: Schemas["Figure"]): string {
  if (figure.value === null) return "undefined";
  if (figure.low === null || figure.high === null) return number(figure.value);
  return `${number(figure.value)} [${number(figure.low)}, ${number(figure.high)}]`;
}
