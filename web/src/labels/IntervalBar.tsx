import type { Schemas } from "../api/client";
import { Chart, Span, Track } from "../parts/Chart";
import { score } from "../parts/figures";

interface Props {
  figure: Schemas["Figure"];
  before?: Schemas["Figure"] | null;
}

/** A measure with its interval on a line from 0 to 1; in grey what the card before had. */
export function IntervalBar({ figure, before }: Props) {
  if (figure.value === null) return null;
  const at = (value: number) => 100 * Math.max(0, Math.min(1, value));
  const end = (value: number | null) => (value === null ? null : at(value));
  const was = before?.value ?? null;
  return (
    <span className="block w-40 max-w-full py-1.5">
      <Chart said="" height={8}>
        <Track />
        {was !== null && <Span from={null} to={null} at={at(was)} tone="fill-edge" />}
        <Span from={end(figure.low)} to={end(figure.high)} at={at(figure.value)} />
      </Chart>
    </span>
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
