import { useCallback } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { $api } from "../../api/client";
import { useAddress } from "../../parts/address";
import { ButtonLink } from "../../parts/Button";
import { count } from "../../parts/figures";
import { IN_FILE } from "../../parts/file";
import { useKeys } from "../../parts/keys";
import { Loading } from "../../parts/Loading";
import { Page } from "../../parts/Page";
import { Boundary, Panel } from "../../parts/Panel";
import { ProblemBox } from "../../parts/ProblemBox";
import { Tabs } from "../../parts/Tabs";
import { type CellName, cellAddress, runAddress, runName, trialName } from "../names";
import { asked, type CellView, useCell, useOutline, wholeText } from "./asking";
import { CellFacts, CellTitle, Sentence, Siblings } from "./CellHead";
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
import { PicturesPart, Texts } from "./Texts";
import { Trajectory } from "./Trajectory";

const USUAL = { case: "", harness: "", model: "", trial: 1, tab: "", live: false };

/** A cell, opened: its verdict, its score tree, its trajectory, and what people say of it. */
export default function CellPage() {
  const run = useParams().run ?? "";
  const [{ tab, live, ...cell }] = useAddress(USUAL);
  const { case: name, harness, model, trial } = cell;
  const found = useCell(run, cell, !live);
  const all = useCallback(
    (ref: string) => wholeText(run, { case: name, harness, model, trial }, ref),
    [run, name, harness, model, trial],
  );
  if (live) return <AtWork run={run} cell={cell} />;
  if (!found.data) {
    return (
      <Page title={name} tab={name} crumbs={<Link to={runAddress(run)}>To the run</Link>}>
        {found.error ? (
          <ProblemBox problem={found.error} retry={() => void found.refetch()} />
        ) : (
          <Loading what="Opening the cell" />
        )}
      </Page>
    );
  }
  return (
    <WholeText.Provider value={IN_FILE ? null : all}>
      {found.error?.status === 404 && <ProblemBox problem={found.error} />}
      <Opened cell={found.data} tab={tab} isStale={found.isPlaceholderData} />
    </WholeText.Provider>
  );
}

/** A cell without a result: what its agent does, as it does it. */
function AtWork({ run, cell }: { run: string; cell: CellName }) {
  return (
    <Page
      title={cell.case}
      tab={cell.case}
      crumbs={<Link to={runAddress(run)}>To the run</Link>}
      facts={<span>{trialName(cell)}</span>}
    >
      <Boundary what="Reading what was done so far">
        <StepsSoFar run={run} cell={cell} />
      </Boundary>
    </Page>
  );
}

function StepsSoFar({ run, cell }: { run: string; cell: CellName }) {
  const { steps, under_way: isAtWork } = useOutline(run, cell);
  return (
    <>
      <p
        role="status"
        className="mt-0 mb-4 flex flex-wrap items-center gap-3 rounded-lg bg-sunk px-4 py-3 text-lg"
      >
        {isAtWork ? (
          <>
            <i className="size-2 rounded-full bg-accent motion-safe:animate-pulse" />
            The agent is at work: {count(steps.length, "step")} so far.
          </>
        ) : (
          <>
            The agent has ended.
            <ButtonLink tone="primary" to={cellAddress(run, cell)} replace>
              Open its result
            </ButtonLink>
          </>
        )}
      </p>
      <Trajectory run={run} cell={cell} steps={steps} isLive={isAtWork} />
    </>
  );
}

function Opened({ cell, tab, isStale }: { cell: CellView; tab: string; isStale: boolean }) {
  const navigate = useNavigate();
  const to = (place: CellName | null) => {
    const address = place && cellAddress(cell.run, place);
    return address && tab ? `${address}&tab=${encodeURIComponent(tab)}` : address;
  };
  const [before, after] = [to(cell.before), to(cell.after)];
  useKeys({
    j: () => after && navigate(after),
    k: () => before && navigate(before),
  });
  return (
    <div aria-busy={isStale}>
      <Page
        title={<CellTitle cell={cell} />}
        tab={`${cell.place.case} · ${trialName(cell.place)}`}
        crumbs={
          <>
            {!IN_FILE && (
              <>
                <Link to="/runs">Runs</Link> /{" "}
              </>
            )}
            <Link to={runAddress(cell.run)}>{runName({ id: cell.run, label: cell.label })}</Link>
          </>
        }
        facts={<CellFacts cell={cell} />}
        actions={
          <>
            {!IN_FILE && (
              <>
                <Regrade key={`regrade ${cell.run}`} cell={cell} />
                <Promote key={`promote ${cell.seen}`} cell={cell} />
              </>
            )}
            <CopyAs cell={cell} />
            <Walk cell={cell} before={before} after={after} />
          </>
        }
      >
        <div className="grid gap-4">
          <Flags cell={cell} />
          {cell.may_be_decided && !IN_FILE && <Decide key={cell.seen} cell={cell} />}
          <Sentence cell={cell} />
          <Siblings cell={cell} />
        </div>
        <div className="mt-8 grid grid-cols-[minmax(0,1fr)] gap-x-10 gap-y-8 lg:grid-cols-[minmax(280px,2fr)_minmax(0,4fr)]">
          <Panel title="Scores">
            <ScoreTree key={cell.seen} scores={cell.scores} />
          </Panel>
          <Done key={cell.seen} cell={cell} />
        </div>
      </Page>
    </div>
  );
}

interface WalkProps {
  cell: CellView;
  before: string | null;
  after: string | null;
}

/** From one cell that failed, broke or is flagged to the next. */
function Walk({ cell, before, after }: WalkProps) {
  if (cell.of === 0) return null;
  const isOne = cell.state === "fail" || cell.state === "error" || cell.flags.length > 0;
  return (
    <nav
      className="walk flex flex-wrap items-center gap-2"
      aria-label="Failed, flagged and broken cells"
    >
      <span className="text-sm text-soft tabular-nums">
        {isOne ? `${cell.number} of ${cell.of} to look at` : `${cell.of} to look at`}
      </span>
      {before && (
        <ButtonLink to={before}>
          Previous <kbd className="border-0 bg-transparent p-0 text-soft">k</kbd>
        </ButtonLink>
      )}
      {after && (
        <ButtonLink tone="primary" to={after}>
          Next <kbd className="border-0 bg-transparent p-0 opacity-70">j</kbd>
        </ButtonLink>
      )}
    </nav>
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
  const [{ tab }, change] = useAddress({ tab: "" });
  const first: Tab = cell.steps > 1 ? "trajectory" : "texts";
  const open = tab in TABS ? (tab as Tab) : first;
  const shown = (Object.keys(TABS) as Tab[]).filter(
    (name) => (name !== "files" || cell.has_files) && (name !== "raw" || !IN_FILE),
  );
  const results = cell.history.length;
  const numbers: { [name in Tab]?: number } = {
    trajectory: cell.steps,
    history: results > 1 ? results : 0,
  };
  return (
    <section className="min-w-0" aria-label="What was done">
      <Tabs
        label="Parts of the cell"
        tabs={shown.map((name) => [name, `${TABS[name]} ${numbers[name] || ""}`] as const)}
        chosen={open}
        choose={(tab) => change({ tab })}
      >
        <Boundary place={open}>
          {open === "trajectory" && (
            <>
              <PicturesPart cell={cell} />
              <TrajectoryTab cell={cell} />
            </>
          )}
          {open === "files" && <FilesTab cell={cell} />}
          {open === "texts" && <Texts cell={cell} />}
          {!IN_FILE && open === "raw" && <RawTab cell={cell} />}
          {open === "history" && <History cell={cell} />}
        </Boundary>
      </Tabs>
    </section>
  );
}

function TrajectoryTab({ cell }: { cell: CellView }) {
  const { steps } = useOutline(cell.run, cell.place);
  if (steps.length === 0) {
    return (
      <p className="text-soft">
        Nothing is known of what was done, but for the answer: it was recorded without a trace.
      </p>
    );
  }
  return <Trajectory run={cell.run} cell={cell.place} steps={steps} />;
}

function FilesTab({ cell }: { cell: CellView }) {
  const init = { params: asked(cell.run, cell.place) };
  const found = $api.useSuspenseQuery("get", "/api/v1/runs/{run}/cells/files", init);
  return <Files found={found.data} />;
}

function RawTab({ cell }: { cell: CellView }) {
  const init = { params: asked(cell.run, cell.place) };
  const found = $api.useSuspenseQuery("get", "/api/v1/runs/{run}/cells/detail", init);
  return <Raw detail={found.data} />;
}
