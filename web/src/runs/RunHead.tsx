import type { Schemas } from "../api/client";
import { Command } from "../parts/Command";
import { EndBar, EndCounts } from "../parts/Ends";
import { moment, whole } from "../parts/figures";
import { type Ended, Flag, Outcome } from "../parts/Outcome";
import { runName, subjectOf } from "./names";
import { RunState } from "./RunState";

/** What is in a run's verdict: passed, not passed, or no verdict because of errors. */
function ending(code: number, hasVerdicts: boolean): Ended {
  if (code === 3) return "error";
  if (code === 1) return "fail";
  return hasVerdicts ? "pass" : "scored";
}

export function RunTitle({ run }: { run: Schemas["RunRow"] }) {
  return (
    <>
      {runName(run)} <RunState state={run.state} />
    </>
  );
}

export function RunFacts({ run }: { run: Schemas["RunRow"] }) {
  return (
    <>
      {run.label && <code>{run.id}</code>}
      <span>{moment(run.created_at)}</span>
      <span title={run.suite}>{subjectOf(run)}</span>
      {run.assay && <span>assay {run.assay}</span>}
    </>
  );
}

export const BANDS: Record<Ended | "none", string> = {
  pass: "bg-pass-soft",
  fail: "bg-fail-soft",
  error: "bg-error-soft",
  scored: "bg-scored-soft",
  skipped: "bg-skipped-soft",
  none: "bg-sunk",
};

/** A verdict as a sentence, the first that one reads of a page. */
export function Verdict({ state, children }: { state: Ended | null; children: string }) {
  return (
    <p
      className={`verdict m-0 flex items-baseline gap-3 rounded-lg px-4 py-3 text-lg wrap-anywhere [&_i]:bg-page! ${BANDS[state ?? "none"]}`}
    >
      {state && <Outcome state={state} />}
      <span>{children}</span>
    </p>
  );
}

/** The top of a run: its verdict, how its cells ended, and how it goes on. */
export function RunHead({ told, now }: RunHeadProps) {
  const isLive = now.state === "running";
  const end = ending(told.code, told.totals.has_verdicts);
  return (
    <div className="mb-6 grid gap-4">
      {isLive ? (
        <Verdict state={null}>
          {`Running: ${whole(now.total)} of ${whole(now.planned)} cells have a result.`}
        </Verdict>
      ) : (
        <Verdict state={end}>{told.verdict}</Verdict>
      )}
      <div className="counts grid gap-2" aria-live={isLive ? "polite" : undefined}>
        <div className="flex flex-wrap items-center gap-x-4 gap-y-1 text-soft tabular-nums">
          <EndCounts ends={now.ends} />
          {now.flagged > 0 && <Flag text={`${whole(now.flagged)} flagged`} />}
          {now.held > 0 && <span>{whole(now.held)} wait for review</span>}
          <span className="ml-auto">
            {whole(now.total)} of {whole(Math.max(now.planned, now.total))} cells
          </span>
        </div>
        <EndBar ends={now.ends} planned={now.planned} />
      </div>
      {now.resume && (
        <p className="m-0 flex flex-wrap items-center gap-2 text-soft">
          {now.state === "interrupted"
            ? "It was interrupted. Go on with"
            : "If it stopped, go on with"}
          <Command text={now.resume} />
        </p>
      )}
    </div>
  );
}

interface RunHeadProps {
  told: Schemas["RunOverview"];
  now: Schemas["RunRow"];
}
