import type { UseQueryResult } from "@tanstack/react-query";
import { type ReactNode, useCallback } from "react";
import { Link, useNavigate, useParams, useSearchParams } from "react-router";
import { Problem } from "../../api/problem";
import { IN_FILE } from "../../parts/file";
import { useKeys } from "../../parts/keys";
import { Loading } from "../../parts/Loading";
import { Outcome } from "../../parts/Outcome";
import { ProblemBox } from "../../parts/ProblemBox";
import { Tabs } from "../../parts/Tabs";
import { usePageTitle } from "../../parts/title";
import { type CellName, cellAddress, trialName } from "../names";
import { type CellView, useCell, useFiles, useOutline, useRaw, wholeText } from "./asking";
import { Siblings, Verdict } from "./CellHead";
import { CopyAs } from "./CopyAs";
import { Decide } from "./Decide";
import { Files } from "./Files";
import { Flags } from "./Flags";
import { WholeText } from "./Folded";
import { History } from "./History";
import { Promote } from "./Promote";
import { Raw } from "./Raw";
import { Regrade } from "./Regrade";
import { ScoreTree } from "./ScoreTree";
import { Texts } from "./Texts";
import { Trajectory } from "./Trajectory";
import "./cell.css";

/** A cell, opened: its verdict, its score tree, its trajectory, and what people say of it. */
export default function CellPage() {
  const run = useParams().run ?? "";
  const [query] = useSearchParams();
  const cell: CellName = {
    case: query.get("case") ?? "",
    harness: query.get("harness") ?? "",
    model: query.get("model") ?? "",
    trial: Math.max(1, Number.parseInt(query.get("trial") ?? "1", 10) || 1),
  };
  usePageTitle(`${cell.case} · ${trialName(cell)}`);
  const found = useCell(run, cell);
  const ask = useCallback(
    (ref: string) =>
      wholeText(
        run,
        { case: cell.case, harness: cell.harness, model: cell.model, trial: cell.trial },
        ref,
      ),
    [run, cell.case, cell.harness, cell.model, cell.trial],
  );
  if (found.error && !found.data) {
    return (
      <div className="page">
        <ProblemBox problem={found.error} retry={() => void found.refetch()} />
        <p>
          <Link to={`/runs/${encodeURIComponent(run)}`}>To the run</Link>
        </p>
      </div>
    );
  }
  if (!found.data) return <Loading what="Opening the cell" />;
  const isGone = found.error instanceof Problem && found.error.status === 404;
  return (
    <WholeText.Provider value={IN_FILE ? null : ask}>
      <div className="page cell">
        {isGone && <ProblemBox problem={found.error as Problem} />}
        <Opened cell={found.data} isStale={found.isPlaceholderData} />
      </div>
    </WholeText.Provider>
  );
}

function Opened({ cell, isStale }: { cell: CellView; isStale: boolean }) {
  const navigate = useNavigate();
  const [query] = useSearchParams();
  const tab = query.get("tab");
  const to = (place: CellName | null) => {
    const address = place && cellAddress(cell.run, place);
    return address && tab ? `${address}&tab=${encodeURIComponent(tab)}` : address;
  };
  const [before, after] = [to(cell.before), to(cell.after)];
  useKeys({
    j: () => after && navigate(after),
    k: () => before && navigate(before),
  });
  const run = `/runs/${encodeURIComponent(cell.run)}`;
  const isOne = cell.state === "fail" || cell.state === "error" || cell.flags.length > 0;
  return (
    <div aria-busy={isStale}>
      <nav aria-label="Where this is" className="crumbs soft">
        {!IN_FILE && (
          <>
            <Link to="/runs">Runs</Link> /{" "}
          </>
        )}
        <Link to={run}>{cell.label || cell.run}</Link>
      </nav>
      <div className="page-head">
        <h1>
          <Outcome state={cell.state} text={cell.state} /> {cell.place.case}{" "}
          <span className="agent">{trialName(cell.place)}</span>
        </h1>
        <div className="row">
          {cell.of > 0 && (
            <nav className="row walk" aria-label="Failed, flagged and broken cells">
              {before ? (
                <Link className="button" to={before}>
                  <kbd>k</kbd> Previous
                </Link>
              ) : null}
              <span className="soft">
                {isOne ? `${cell.number} of ${cell.of} to look at` : `${cell.of} to look at`}
              </span>
              {after ? (
                <Link className="button" to={after}>
                  Next <kbd>j</kbd>
                </Link>
              ) : null}
            </nav>
          )}
          {!IN_FILE && (
            <>
              <Regrade key={`regrade ${cell.run}`} cell={cell} />
              <Promote key={`promote ${cell.seen}`} cell={cell} />
            </>
          )}
          <CopyAs cell={cell} />
        </div>
      </div>
      <Flags cell={cell} />
      {cell.may_be_decided && !IN_FILE && <Decide key={cell.seen} cell={cell} />}
      <Verdict cell={cell} />
      <Siblings cell={cell} />
      <div className="columns">
        <section aria-label="Scores" className="left">
          <h2>Scores</h2>
          <ScoreTree key={cell.seen} scores={cell.scores} />
        </section>
        <Done key={cell.seen} cell={cell} />
      </div>
    </div>
  );
}

const TABS = {
  trajectory: "Trajectory",
  files: "Files changed",
  texts: "Prompt and answer",
  raw: "Raw JSON",
  history: "History",
} as const;
type Tab = keyof typeof TABS;

function Done({ cell }: { cell: CellView }) {
  const [query, setQuery] = useSearchParams();
  const first: Tab = cell.steps > 1 ? "trajectory" : "texts";
  const named = query.get("tab");
  const open: Tab = named !== null && named in TABS ? (named as Tab) : first;
  const set = (changes: Record<string, string>) =>
    setQuery(
      (before) => {
        const after = new URLSearchParams(before);
        for (const [name, value] of Object.entries(changes)) {
          if (value) after.set(name, value);
          else after.delete(name);
        }
        return after;
      },
      { replace: true, preventScrollReset: true },
    );
  const shown = (Object.keys(TABS) as Tab[]).filter(
    (name) => (name !== "files" || cell.has_files) && (name !== "raw" || !IN_FILE),
  );
  const results = cell.history.length;
  const numbers: { [name in Tab]?: number } = {
    trajectory: cell.steps,
    history: results > 1 ? results : 0,
  };
  return (
    <section className="right" aria-label="What was done">
      <Tabs
        label="Parts of the cell"
        tabs={shown.map((name) => [name, `${TABS[name]} ${numbers[name] || ""}`] as const)}
        chosen={open}
        choose={(tab) => set({ tab })}
      >
        {open === "trajectory" && <TrajectoryTab cell={cell} query={query} set={set} />}
        {open === "files" && <FilesTab cell={cell} />}
        {open === "texts" && <Texts cell={cell} />}
        {!IN_FILE && open === "raw" && <RawTab cell={cell} />}
        {open === "history" && <History cell={cell} />}
      </Tabs>
    </section>
  );
}

interface TrajectoryTabProps {
  cell: CellView;
  query: URLSearchParams;
  set: (changes: Record<string, string>) => void;
}

function TrajectoryTab({ cell, query, set }: TrajectoryTabProps) {
  const outline = useOutline(cell.run, cell.place);
  const at = Number.parseInt(query.get("step") ?? "", 10) - 1;
  return (
    <Answered found={outline} what="Reading the trajectory">
      {({ steps }) =>
        steps.length === 0 ? (
          <p className="soft">
            Nothing is known of what was done, but for the answer: it was recorded without a trace.
          </p>
        ) : (
          <Trajectory
            run={cell.run}
            cell={cell.place}
            steps={steps}
            at={at >= 0 && at < steps.length ? at : -1}
            words={query.get("find") ?? ""}
            go={(to) => set({ step: String(to + 1) })}
            search={(words) => set({ find: words })}
          />
        )
      }
    </Answered>
  );
}

function FilesTab({ cell }: { cell: CellView }) {
  const files = useFiles(cell.run, cell.place);
  return (
    <Answered found={files} what="Comparing the files">
      {(found) => <Files found={found} />}
    </Answered>
  );
}

function RawTab({ cell }: { cell: CellView }) {
  const raw = useRaw(cell.run, cell.place);
  return (
    <Answered found={raw} what="Reading it">
      {(found) => <Raw detail={found} />}
    </Answered>
  );
}

interface AnsweredProps<T> {
  found: UseQueryResult<T>;
  what: string;
  children: (data: T) => ReactNode;
}

function Answered<T>({ found, what, children }: AnsweredProps<T>) {
  if (found.data !== undefined) return children(found.data);
  if (found.error) {
    return <ProblemBox problem={found.error} retry={() => void found.refetch()} />;
  }
  return <Loading what={what} />;
}
