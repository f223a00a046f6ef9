import { keepPreviousData } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { $api, type Schemas } from "../../api/client";
import { useAddress } from "../../parts/address";
import { Chart, Histogram } from "../../parts/Chart";
import { Choice } from "../../parts/Choice";
import { Empty } from "../../parts/Empty";
import { duration, moment, percent, whole } from "../../parts/figures";
import { IN_FILE } from "../../parts/file";
import { Loading } from "../../parts/Loading";
import { Stack } from "../../parts/Page";
import { Panel } from "../../parts/Panel";
import { ProblemBox } from "../../parts/ProblemBox";
import { Table } from "../../parts/Table";
import { Lines } from "../Lines";
import { runName } from "../names";

type Told = Schemas["Trainability"];
type End = Schemas["GroupEnd"];
type Times = Schemas["Times"];

/** How often a live run is looked at again, in milliseconds: all its cells are read. */
const LIVE_PACE = 10_000;

/** Which of a run's groups of trials would teach a trainer anything. */
export default function TrainabilityTab({ run, isLive }: { run: string; isLive: boolean }) {
  const [{ floor }, change] = useAddress({ floor: "" });
  const init = { params: { path: { run }, query: { floor } } };
  const found = $api.useQuery("get", "/api/v1/runs/{run}/trainability", init, {
    placeholderData: keepPreviousData,
    refetchInterval: isLive && LIVE_PACE,
  });
  const choose = (chosen: string) => change({ floor: chosen }, { isStep: true });
  const picker = !IN_FILE && <FloorPick run={run} floor={floor} choose={choose} />;
  if (found.error) {
    return (
      <>
        {picker}
        <ProblemBox problem={found.error} retry={() => void found.refetch()} />
      </>
    );
  }
  if (!found.data) return <Loading what="Looking at the groups" />;
  return <Trainability told={found.data}>{picker}</Trainability>;
}

function Trainability({ told, children }: { told: Told; children: ReactNode }) {
  if (!told.groups) {
    return <Empty title="No cell has a result yet">What groups would teach stands here.</Empty>;
  }
  const isGraded = told.ungraded < told.cells;
  const times = told.seconds && [{ ...told.seconds, name: "a whole cell" }, ...told.graders];
  return (
    <Stack>
      {!isGraded && (
        <Empty title="No cell has a reward">Nothing can be learned from this run.</Empty>
      )}
      {isGraded && told.ends.every((end) => end.groups === 0 || end.name === "too_few") && (
        <Empty title="There is nothing to compare" command="assay run … --trials 8">
          <p>
            A group is the trials of a case by one agent, or the rows with one <code>group</code> (
            <code>assay grade … --map group=FIELD</code>). It teaches only if two of them differ.
          </p>
        </Empty>
      )}
      <Panel title="What groups would teach" note={told.sizes} beside={children}>
        <Groups ends={told.ends} />
        <Lines lines={told.lines} />
      </Panel>
      <div className="grid gap-10 md:grid-cols-2">
        {told.spread !== null && (
          <Panel title="Spread within groups" note="standard deviation of rewards">
            <Histogram bars={told.spreads} what="Groups that teach by spread" />
          </Panel>
        )}
        {isGraded && (
          <Panel title="Rewards" note="graded cells">
            <Histogram bars={told.rewards} what="Graded cells by reward" />
          </Panel>
        )}
      </div>
      {times && (
        <Panel title="Time" note="half are quicker than the mark, 95 % than the bar">
          <TimeBars rows={times} />
        </Panel>
      )}
    </Stack>
  );
}

const FILLS: Record<string, string> = {
  learnable: "fill-accent",
  all_right: "fill-pass",
  all_wrong: "fill-fail",
  all_alike: "fill-edge",
  too_few: "fill-line",
};

/** The groups as one bar, by what they come to, and as the list that explains it. */
function Groups({ ends }: { ends: readonly End[] }) {
  const shown = ends.filter((end) => end.groups > 0);
  const said = shown.map((end) => `${nameOf(end)}: ${whole(end.groups)}`).join("; ");
  let at = 0;
  return (
    <>
      <Chart said={said} height={20}>
        {shown.map((end) => {
          const x = at;
          const width = 100 * (end.share ?? 0);
          at += width;
          return (
            <rect
              key={end.name}
              className={FILLS[end.name]}
              x={x}
              width={Math.max(0.2, width - 0.2)}
              height="20"
            >
              <title>{`${nameOf(end)}: ${whole(end.groups)}, ${percent(end.share)}`}</title>
            </rect>
          );
        })}
      </Chart>
      <Table
        label="Groups"
        items={ends}
        keyOf={(end) => end.name}
        lookOf={(end) => (end.groups ? "" : "text-soft")}
        columns={[
          {
            name: "Groups that are",
            kind: "name",
            show: (end) => (
              <span className="inline-flex items-center gap-2">
                <svg className="size-2.5 shrink-0" viewBox="0 0 10 10" aria-hidden="true">
                  <circle className={FILLS[end.name]} cx="5" cy="5" r="5" />
                </svg>
                {nameOf(end)}
              </span>
            ),
            below: (end) => end.meaning,
          },
          { name: "Number", kind: "number", show: (end) => whole(end.groups) },
          { name: "Share", kind: "number", show: (end) => percent(end.share) },
        ]}
      />
    </>
  );
}

function nameOf(end: End): string {
  return end.name.replaceAll("_", " ");
}

/** The median and the 95th percentile of cells and of each grader, all on one scale. */
function TimeBars({ rows }: { rows: readonly Times[] }) {
  const most = Math.max(...rows.map((row) => row.p95)) || 1;
  return (
    <Table
      label="Times"
      items={rows}
      keyOf={(row) => rows.indexOf(row)}
      columns={[
        { name: "Of", kind: "name", show: (row) => row.name },
        { name: "p50", kind: "number", show: (row) => duration(row.p50) },
        { name: "p95", kind: "number", show: (row) => duration(row.p95) },
        {
          name: "Picture",
          isMute: true,
          show: (row) => (
            <div className="min-w-40">
              <Chart said="" height={8}>
                <rect
                  className="fill-accent"
                  opacity="0.35"
                  width={(100 * row.p95) / most}
                  height="8"
                />
                <rect
                  className="fill-ink"
                  x={Math.max(0, (100 * row.p50) / most - 0.4)}
                  width="0.4"
                  height="8"
                />
              </Chart>
            </div>
          ),
        },
      ]}
    />
  );
}

/** Which run does nothing, so that what beats it is told apart. */
function FloorPick({ run, floor, choose }: FloorPickProps) {
  const runs = $api.useQuery("get", "/api/v1/runs", { params: { query: { limit: 50 } } });
  const others = (runs.data?.items ?? []).filter((one) => one.id !== run);
  const isListed = !floor || others.some((one) => one.id === floor);
  return (
    <span title="A run of the same cases in which nothing is done">
      <Choice
        label="Floor"
        isInline
        value={floor}
        options={[
          ["", "none"],
          ...(isListed ? [] : [[floor, floor] as const]),
          ...others.map((one) => [one.id, `${runName(one)} · ${moment(one.created_at)}`] as const),
        ]}
        change={choose}
      />
    </span>
  );
}

interface FloorPickProps {
  run: string;
  floor: string;
  choose: (run: string) => void;
}
