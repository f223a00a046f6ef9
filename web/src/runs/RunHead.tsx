import type { ReactNode } from "react";
import type { Schemas } from "../api/client";
import { Command } from "../parts/Command";
import { EndBar, EndCounts } from "../parts/Ends";
import { moment, whole } from "../parts/figures";
import { type Ended, Flag, Outcome } from "../parts/Outcome";
import { KINDS, runName } from "./names";
import { RunState } from "./RunState";

/** What is in a run's verdict: passed, not passed, or no verdict because of errors. */
function ending(code: number, hasVerdicts: boolean): Ended {
  if (code === 3) return "error";
  if (code === 1) return "fail";
  return hasVerdicts ? "pass" : "scored";
}

/** The top of a run's page: its name, its verdict as a sentence, and how its cells ended. */
export function RunHead({ told, now, children }: RunHeadProps) {
  const isLive = now.state === "running";
  return (
    <header className="run-head">
      <div className="page-head">
        <div>
          <h1 title={runName(told.run)}>
            {runName(told.run)} <RunState state={now.state} />
          </h1>
          <p className="facts">
            {told.run.label && <span className="mono">{told.run.id}</span>}
            <span>{moment(told.run.created_at)}</span>
            <span>
              {[KINDS[told.run.kind] ?? told.run.kind, told.run.suite].filter(Boolean).join(": ")}
            </span>
            {told.run.assay && <span>assay {told.run.assay}</span>}
          </p>
        </div>
        <div className="row">{children}</div>
      </div>
      {isLive ? (
        <p className="verdict panel">
          Running: {whole(now.total)} of {whole(now.planned)} cells have a result.
        </p>
      ) : (
        <p className={`verdict panel ${ending(told.code, told.totals.has_verdicts)}`}>
          <Outcome state={ending(told.code, told.totals.has_verdicts)} />
          <span>{told.verdict}</span>
        </p>
      )}
      <div className="counts" aria-live={isLive ? "polite" : undefined}>
        <EndCounts ends={now.ends} />
        {now.flagged > 0 && <Flag text={`${whole(now.flagged)} flagged`} />}
        {now.held > 0 && <span className="soft">{whole(now.held)} wait for review</span>}
        <span className="soft">
          {whole(now.total)} of {whole(Math.max(now.planned, now.total))} cells
        </span>
        <EndBar ends={now.ends} planned={now.planned} />
      </div>
      {now.resume && (
        <p className="row">
          {now.state === "interrupted"
            ? "It was interrupted. Go on with"
            : "If it stopped, go on with"}
          <Command text={now.resume} />
        </p>
      )}
    </header>
  );
}

interface RunHeadProps {
  told: Schemas["RunOverview"];
  now: Schemas["RunRow"];
  children?: ReactNode;
}
