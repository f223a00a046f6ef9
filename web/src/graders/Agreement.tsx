import { score, whole } from "../parts/figures";
import { Badge } from "../parts/Page";
import { Below } from "../parts/Table";
import type { Overview } from "./queries";

/** How far a grader agrees with people: kappa, its interval, how many rows; or that it is stale. */
export function Agreement({ calibration }: { calibration: Overview["calibration"] }) {
  if (!calibration) return <span className="text-soft">not measured</span>;
  const { kappa, kappa_interval: interval, n, stale, line, changed } = calibration;
  const [low, high] = interval ?? [];
  return (
    <div title={line} className="tabular-nums">
      <span className="font-medium whitespace-nowrap">κ {score(kappa)}</span>{" "}
      {low !== undefined && high !== undefined && (
        <span className="whitespace-nowrap text-soft">
          [{score(low)}, {score(high)}]
        </span>
      )}
      <Below>
        n = {whole(n)}{" "}
        {stale && (
          <Badge tone="error" title={changed.join("; ")}>
            stale
          </Badge>
        )}
      </Below>
    </div>
  );
}

export function Locked() {
  return <Badge title="Locked: changes are refused">locked</Badge>;
}
