import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Suspense, useEffect, useRef, useState } from "react";
import { Link, useNavigate, useParams, useSearchParams } from "react-router";
import { api, ask, type Schemas } from "../api/client";
import { useEvents } from "../api/live";
import { Problem } from "../api/problem";
import { Command } from "../parts/Command";
import { Empty } from "../parts/Empty";
import { IN_FILE } from "../parts/file";
import { Loading } from "../parts/Loading";
import { later } from "../parts/later";
import { ProblemBox } from "../parts/ProblemBox";
import { Tabs } from "../parts/Tabs";
import { usePageTitle } from "../parts/title";
import { CellsTab } from "./CellsTab";
import { ConfigTab } from "./ConfigTab";
import { DeleteRun } from "./DeleteRun";
import { MatrixTab } from "./MatrixTab";
import { runName } from "./names";
import { RunHead } from "./RunHead";
import { RunSummary } from "./RunSummary";
import "./runs.css";

type RunRow = Schemas["RunRow"];

const ScoresTab = later(() => import("./scores/ScoresTab"));
const TrainabilityTab = later(() => import("./training/TrainabilityTab"));

const TABS = [
  ["overview", "Overview"],
  ["cells", "Cells"],
  ["scores", "Scores"],
  ["training", "Trainability"],
  ["config", "Config"],
] as const;

/** How long the whole of a live run is not counted again: in milliseconds, and as a multiple of
 * how long that took. */
const PACE = 2_000;
const REST = 8;

export default function RunPage() {
  const named = useParams().run ?? "";
  const queries = useQueryClient();
  const took = useRef(0);
  const overview = useQuery({
    queryKey: ["run", named, "overview"],
    queryFn: async ({ signal }) => {
      const began = performance.now();
      const path = { run: named };
      const found = await ask(api.GET("/api/v1/runs/{run}/overview", { signal, params: { path } }));
      took.current = performance.now() - began;
      return found;
    },
    refetchOnWindowFocus: false,
  });
  const told = overview.data;
  const [live, setLive] = useState<{ row: RunRow; at: number } | null>(null);
  const [isGone, setGone] = useState(false);
  const timer = useRef(0);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  const id = told?.run.id ?? "";
  const hasEnded = told?.run.state === "finished";
  useEvents(
    told && !hasEnded && !isGone && !IN_FILE
      ? `/api/v1/runs/${encodeURIComponent(id)}/events`
      : null,
    ["progress", "done", "gone"],
    (kind, data) => {
      if (kind === "gone") {
        window.clearTimeout(timer.current);
        return setGone(true);
      }
      const row = data as RunRow;
      setLive({ row, at: Date.now() });
      if (kind === "progress" && row.total === told?.run.total && row.state === told.run.state) {
        return;
      }
      const again = () => {
        timer.current = 0;
        queries.invalidateQueries({ queryKey: ["run", named, "overview"] });
        queries.invalidateQueries({ queryKey: ["run", id, "matrix"] });
      };
      if (kind === "done") again();
      else if (!timer.current)
        timer.current = window.setTimeout(again, Math.max(PACE, REST * took.current));
    },
  );
  usePageTitle(told ? runName(told.run) : "Run");

  if (isGone || (overview.error instanceof Problem && overview.error.status === 404)) {
    return <Gone named={named} was={told !== undefined} />;
  }
  if (overview.error && !told) {
    return (
      <div className="page">
        <ProblemBox problem={overview.error} retry={() => overview.refetch()} />
      </div>
    );
  }
  if (!told) return <Loading what="Counting the cells" />;
  const now = live && isAhead(live, told.run, overview.dataUpdatedAt) ? live.row : told.run;
  return <Shown told={told} now={hasEnded ? told.run : now} />;
}

/** Whether what was told by an event was counted after the overview. */
function isAhead(live: { row: RunRow; at: number }, run: RunRow, at: number): boolean {
  if (live.row.id !== run.id || live.row.total !== run.total) return live.row.total > run.total;
  return live.at > at;
}

function Shown({ told, now }: { told: Schemas["RunOverview"]; now: RunRow }) {
  const [address, setAddress] = useSearchParams();
  const navigate = useNavigate();
  const tab = TABS.find(([key]) => key === address.get("tab"))?.[0] ?? "overview";
  const { id } = told.run;
  const open = (key: string) => setAddress(key === "overview" ? {} : { tab: key });
  return (
    <div className="page run">
      <RunHead told={told} now={now}>
        {!IN_FILE && (
          <>
            <Link className="button" to={`/compare?${new URLSearchParams({ b: id })}`}>
              Compare
            </Link>
            <DeleteRun run={now} done={() => navigate("/runs")} />
          </>
        )}
      </RunHead>
      <Tabs label="Parts of the run" tabs={TABS} chosen={tab} choose={open}>
        {tab === "overview" && (
          <div className="stack">
            <RunSummary told={told} />
            {told.run.kind !== "dataset" && <MatrixTab run={id} leaderboard={told.leaderboard} />}
          </div>
        )}
        {tab === "cells" && <CellsTab run={id} now={now} causes={told.causes} />}
        {tab === "scores" && (
          <Suspense fallback={<Loading what="Loading scores" />}>
            <ScoresTab run={id} isLive={now.state !== "finished"} />
          </Suspense>
        )}
        {tab === "training" && (
          <Suspense fallback={<Loading what="Loading trainability" />}>
            <TrainabilityTab run={id} isLive={now.state !== "finished"} />
          </Suspense>
        )}
        {tab === "config" && <ConfigTab told={told} />}
      </Tabs>
    </div>
  );
}

function Gone({ named, was }: { named: string; was: boolean }) {
  usePageTitle("No such run");
  return (
    <div className="page stack">
      <h1>{was ? "This run was deleted" : "There is no such run"}</h1>
      <Empty title={was ? "Its results are gone" : "Nothing is called like that"}>
        {!was && (
          <p>
            No run has the id, the beginning of an id, or the label <code>{named}</code>.
          </p>
        )}
        <p>
          <Link to="/runs">See the runs that there are</Link>, or list them:
        </p>
        <Command text="assay runs" />
      </Empty>
    </div>
  );
}
