import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { whole } from "../parts/figures";
import { Outcome } from "../parts/Outcome";

type Cause = Schemas["Cause"];

/** Why something could not be graded, commonest first; what has a key leads to what it happened to. */
export function Causes({ causes, to }: CausesProps) {
  return (
    <ul className="causes m-0 grid max-h-56 list-none gap-1 overflow-y-auto p-0">
      {causes.map((cause) => (
        <li key={cause.text} className="flex items-baseline gap-3 wrap-anywhere">
          <Outcome state="error" text={whole(cause.count)} />
          {cause.key ? <Link to={to(cause)}>{cause.text}</Link> : <span>{cause.text}</span>}
        </li>
      ))}
    </ul>
  );
}

interface CausesProps {
  causes: readonly Cause[];
  to: (cause: Cause) => string;
}
