import type { Schemas } from "../api/client";
import { whole } from "./figures";
import { type Ended, Outcome, WORDS } from "./Outcome";

type Counts = Schemas["Ends"];

/** The outcomes in the order in which bars and lists show them, each with its count. */
export function endsOf(ends: Counts): [Ended, number][] {
  return [
    ["pass", ends.passed],
    ["scored", ends.scored],
    ["fail", ends.failed],
    ["error", ends.errors],
    ["skipped", ends.skipped],
  ];
}

/** How so many ended: 4 `errors`, 1 `error`, 3 `passed`. */
export function endWord(state: Ended, number: number): string {
  return state === "error" && number === 1 ? "error" : WORDS[state];
}

/** How many ended in which way, each as shape, colour and number; those that do not occur are left out. */
export function EndCounts({ ends }: { ends: Counts }) {
  const shown = endsOf(ends).filter(([, number]) => number > 0);
  if (shown.length === 0) return <span className="text-soft">no results</span>;
  return (
    <span className="inline-flex flex-wrap gap-x-3 gap-y-1">
      {shown.map(([state, number]) => (
        <span key={state} title={`${whole(number)} ${endWord(state, number)}`}>
          <Outcome state={state} text={whole(number)} />
          <span className="sr-only"> {endWord(state, number)}</span>
        </span>
      ))}
    </span>
  );
}

const COLOURS: Record<Ended, string> = {
  pass: "bg-pass",
  fail: "bg-fail",
  error: "bg-error",
  skipped: "bg-edge",
  scored: "bg-scored",
};

/** A bar of all planned cells: what has ended, by outcome, and what is still to come. */
export function EndBar({ ends, planned }: { ends: Counts; planned: number }) {
  const shown = endsOf(ends).filter(([, number]) => number > 0);
  const done = shown.reduce((sum, [, number]) => sum + number, 0);
  const all = Math.max(planned, done, 1);
  const said = shown
    .map(([state, number]) => `${whole(number)} ${endWord(state, number)}`)
    .join(", ");
  return (
    <span
      className="flex h-1.5 w-full gap-px overflow-hidden rounded-full bg-fill"
      role="img"
      aria-label={`${whole(done)} of ${whole(Math.max(planned, done))} cells: ${said || "none yet"}`}
    >
      {shown.map(([state, number]) => (
        <span
          key={state}
          className={`min-w-0.5 ${COLOURS[state]}`}
          style={{ width: `${(100 * number) / all}%` }}
        />
      ))}
    </span>
  );
}
