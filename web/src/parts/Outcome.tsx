import type { ReactNode } from "react";
import { Icon } from "./Icon";

/** How something ended: five shapes and five colours, the same as in reports and terminals. */
export type Ended = "pass" | "fail" | "error" | "skipped" | "scored";

/** How many of something ended so, in words. */
export const WORDS: Record<Ended, string> = {
  pass: "passed",
  fail: "failed",
  error: "errors",
  skipped: "skipped",
  scored: "scored",
};

const LOOKS: Record<Ended | "flag", string> = {
  pass: "text-pass [&>i]:bg-pass-soft",
  fail: "text-fail [&>i]:bg-fail-soft",
  error: "text-error [&>i]:bg-error-soft",
  skipped: "text-skipped [&>i]:bg-skipped-soft",
  scored: "text-scored [&>i]:bg-scored-soft",
  flag: "text-flag [&>i]:bg-flag-soft",
};

/** The mark alone, with its word for who cannot see it; or with a text of its own beside it. */
export function Outcome({ state, text }: { state: Ended; text?: string }) {
  const word = state === "error" ? "error" : WORDS[state];
  return <Mark look={state}>{text ?? <span className="sr-only">{word}</span>}</Mark>;
}

/** A sign of tampering, which must not be overlooked. */
export function Flag({ text }: { text: string }) {
  return <Mark look="flag">{text || <span className="sr-only">flagged</span>}</Mark>;
}

function Mark({ look, children }: { look: Ended | "flag"; children: ReactNode }) {
  return (
    <span
      data-outcome={look}
      className={`inline-flex items-center gap-1.5 font-medium whitespace-nowrap tabular-nums ${LOOKS[look]}`}
    >
      <i className="inline-grid size-4.5 shrink-0 place-items-center rounded-full not-italic">
        <Icon name={look} size={12} />
      </i>
      {children}
    </span>
  );
}
