import type { Schemas } from "../api/client";
import { between, percent, score } from "./figures";
import "./parts.css";

/** Where an estimate and its interval lie between 0 and 1. */
export function EstimateBar({ value }: { value: Schemas["Interval"] }) {
  const { mean, low, high } = value;
  if (mean === null) return null;
  return (
    <svg className="estimate" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect className="track" x="0" y="3" width="100" height="2" />
      {low !== null && high !== null && (
        <rect
          className="range"
          x={100 * low}
          y="1"
          width={Math.max(0.6, 100 * (high - low))}
          height="6"
        />
      )}
      <rect className="mean" x={Math.min(98.6, 100 * mean)} y="0" width="1.4" height="8" />
    </svg>
  );
}

/** The interval of an estimate and what it rests on, in words. */
export function Basis({ value, rate, over }: BasisProps) {
  const range = between(value.low, value.high, rate ? percent : score);
  return (
    <span className="soft">
      <span className="nowrap">{range ? `95 % interval ${range}` : "too few for an interval"}</span>
      {over && "; "}
      {over && <span className="nowrap">{over}</span>}
    </span>
  );
}

interface BasisProps {
  value: Schemas["Interval"];
  rate?: boolean;
  over?: string;
}
