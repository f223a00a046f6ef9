import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Link, useParams, useSearchParams } from "react-router";
import { $api, type Schemas } from "../api/client";
import { useEvents } from "../api/live";
import { useAddress } from "../parts/address";
import { ButtonLink } from "../parts/Button";
import { Command } from "../parts/Command";
import { Empty } from "../parts/Empty";
import { IN_FILE } from "../parts/file";
import { Loading } from "../parts/Loading";
import { later } from "../parts/later";
import { Page, Stack } from "../parts/Page";
import { Boundary } from "../parts/Panel";
import { ProblemBox } from "../parts/ProblemBox";
import { Tabs } from "../parts/Tabs";
import { ByField } from "./ByField";
import { CellsTab } from "./CellsTab";
import { ConfigTab } from "./ConfigTab";
import { DeleteRun } from "./DeleteRun";
import { MatrixPanel } from "./Matrix";
import { cellsAddress, runName } from "./names";
import { RunFacts, RunHead, RunTitle } from "./RunHead";
import { RunSummary } from "./RunSummary";
import { UnderWay } from "./UnderWay";

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
type Tab = (typeof TABS)[number][0];

/** How long the whole of a live run is not counted again: in milliseconds, and as a multiple of
 * how long that took. */
const PACE = 2_000;
const REST = 8;

export default function RunPage() {
  const named = useParams().run ?? "";
  const { overview, now, isGone } = useLive(named);
  const told = overview.data;
  if (isGone || overview.error?.status === 404) {
    return <Gone named={named} was={told !== undefined} />;
  }
  if (!told || !now) {
    return (
      <Page title={named}>
        {overview.error ? (
          <ProblemBox problem={overview.error} retry={() => overview.refetch()} />
        ) : (
          <Loading what="Counting the cells" />
        )}
      </Page>
    );
  }
  return <Shown told={told} now={now} />;
}

/** A run, counted again while it goes on: its row at once, the whole of it now and then. */
function useLive(named: string) {
  const queries = useQueryClient();
  const init = { params: { path: { run: named } } };
  const overview = $api.useQuery("get", "/api/v1/runs/{run}/overview", init, {
    refetchOnWindowFocus: false,
  });
  const told = overview.data;
  const began = useRef(0);
  const took = useRef(0);
  useEffect(() => {
    if (overview.isFetching) began.current = performance.now();
    else took.current = performance.now() - began.current;
  }, [overview.isFetching]);
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
        for (const path of ["/api/v1/runs/{run}/overview", "/api/v1/runs/{run}/matrix"]) {
          void queries.invalidateQueries({ queryKey: ["get", path] });
        }
      };
      if (kind === "done") again();
      else if (!timer.current) {
        timer.current = window.setTimeout(again, Math.max(PACE, REST * took.current));
      }
    },
  );
  const isLive = live && told && !hasEnded && isAhead(live, told.run, overview.dataUpdatedAt);
  return { overview, now: isLive ? live.row : told?.run, isGone };
}

/** Whether what was told by an event was counted after the overview. */
function isAhead(live: { row: RunRow; at: number }, run: RunRow, at: number): boolean {
  if (live.row.id !== run.id || live.row.total !== run.total) return live.row.total > run.total;
  return live.at > at;
}

function Shown({ told, now }: { told: Schemas["RunOverview"]; now: RunRow }) {
  const [{ tab: named }] = useAddress({ tab: "overview" as Tab });
  const tab = TABS.find(([key]) => key === named)?.[0] ?? "overview";
  const { id } = told.run;
  const isLive = now.state !== "finished";
  return (
    <Page
      title={<RunTitle run={now} />}
      tab={runName(told.run)}
      crumbs={!IN_FILE && <Link to="/runs">Runs</Link>}
      facts={<RunFacts run={told.run} />}
      actions={<Actions run={now} />}
    >
      <RunHead told={told} now={now} />
      <RunTabs tab={tab}>
        <Boundary place={tab}>
          {tab === "overview" && (
            <Stack>
              <RunSummary told={told} />
              {!IN_FILE && <ByField run={id} />}
              {now.state === "running" && !IN_FILE && <UnderWay run={id} />}
              {told.run.kind !== "dataset" && (
                <MatrixPanel run={id} leaderboard={told.leaderboard} />
              )}
            </Stack>
          )}
          {tab === "cells" && <CellsTab run={id} now={now} causes={told.causes} />}
          {tab === "scores" && <ScoresTab run={id} isLive={isLive} />}
          {tab === "training" && <TrainabilityTab run={id} isLive={isLive} />}
          {tab === "config" && <ConfigTab told={told} />}
        </Boundary>
      </RunTabs>
    </Page>
  );
}

/** Each tab has an address of its own, without what another one keeps in its. */
function RunTabs({ tab, children }: { tab: Tab; children: React.ReactNode }) {
  const [, setQuery] = useSearchParams();
  return (
    <Tabs
      label="Parts of the run"
      tabs={TABS}
      chosen={tab}
      choose={(key) => setQuery(key === "overview" ? {} : { tab: key })}
    >
      {children}
    </Tabs>
  );
}

function Actions({ run }: { run: RunRow }) {
  const bad = run.ends.failed > 0 ? "fail" : run.ends.errors > 0 ? "error" : null;
  return (
    <>
      {!IN_FILE && <DeleteRun run={run} />}
      {!IN_FILE && (
        <ButtonLink to={`/compare?${new URLSearchParams({ b: run.id })}`}>Compare</ButtonLink>
      )}
      {bad && (
        <ButtonLink tone="primary" to={cellsAddress({ outcome: bad })}>
          {bad === "fail" ? "Read the failures" : "Read the errors"}
        </ButtonLink>
      )}
    </>
  );
}

function Gone({ named, was }: { named: string; was: boolean }) {
  return (
    <Page title={was ? "This run was deleted" : "There is no such run"} tab="No such run">
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
    </Page>
  );
}
