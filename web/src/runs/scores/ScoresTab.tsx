import { $api, type Schemas } from "../../api/client";
import { useAddress } from "../../parts/address";
import { Button } from "../../parts/Button";
import { Histogram } from "../../parts/Chart";
import { Empty } from "../../parts/Empty";
import { between, count, percent, score, whole } from "../../parts/figures";
import { Outcome } from "../../parts/Outcome";
import { Panel } from "../../parts/Panel";
import { Below, Table } from "../../parts/Table";

type Grader = Schemas["GraderScores"];

/** How often the scores of a live run are counted again, in milliseconds: all its cells are read. */
const LIVE_PACE = 10_000;

/** How the scores of a run lie. */
export default function ScoresTab({ run, isLive }: { run: string; isLive: boolean }) {
  const [{ view }, change] = useAddress({ view: "" });
  const init = { params: { path: { run } } };
  const { data: table } = $api.useSuspenseQuery("get", "/api/v1/runs/{run}/scores", init, {
    refetchInterval: isLive && LIVE_PACE,
  });
  if (!table.cells) {
    return (
      <Empty title="No cell has a result yet" command={`assay run --resume ${run}`}>
        <p>How the scores of each grader lie stands here once cells were graded.</p>
      </Empty>
    );
  }
  const isTable = view === "table";
  const left = table.left_out > 0 && `; ${whole(table.left_out)} with fewer scores are not shown`;
  return (
    <Panel
      title="Scores"
      note={
        <>
          {count(table.cells, "cell")}, {count(table.graders.length - 1, "grader")}
          {left}
        </>
      }
      beside={
        <Button
          tone="quiet"
          onPress={() => change({ view: isTable ? "" : "table" }, { isStep: true })}
        >
          {isTable ? "Show histograms" : "Show as a table"}
        </Button>
      }
    >
      {isTable ? <Numbers graders={table.graders} /> : <Cards graders={table.graders} />}
    </Panel>
  );
}

/** A small histogram for each grader of a run. */
function Cards({ graders }: { graders: readonly Grader[] }) {
  return (
    <ul className="m-0 grid list-none grid-cols-[repeat(auto-fill,minmax(220px,1fr))] gap-x-10 gap-y-8 p-0">
      {graders.map((grader) => (
        <li key={grader.key} className="grid min-w-0 content-start gap-2">
          <div className="wrap-anywhere">
            <b className="font-semibold" title={pathOf(grader).join(" / ")}>
              {grader.name}
            </b>{" "}
            {grader.gate && <span className="text-sm text-soft">gate</span>}
            {grader.depth > 1 && <Below>in {pathOf(grader).slice(0, -1).join(" / ")}</Below>}
          </div>
          {grader.n ? (
            <Histogram bars={barsOf(grader.bins)} />
          ) : (
            <span className="text-soft">no scores</span>
          )}
          <div className="flex flex-wrap items-baseline gap-x-3 text-sm text-soft tabular-nums">
            <b className="text-lg font-semibold text-ink">{score(grader.mean.mean)}</b>
            {between(grader.mean.low, grader.mean.high)}
            <span>n {whole(grader.n)}</span>
          </div>
          <div className="flex flex-wrap gap-x-3 text-sm text-soft">
            {grader.errors > 0 && <Outcome state="error" text={count(grader.errors, "error")} />}
            {grader.skipped > 0 && (
              <Outcome state="skipped" text={`${whole(grader.skipped)} skipped`} />
            )}
            {grader.constant !== null &&
              grader.constant >= 0.5 &&
              grader.n > 1 &&
              `${percent(grader.constant)} are ${score(grader.commonest)}`}
          </div>
        </li>
      ))}
    </ul>
  );
}

/** Bars of equal width between 0 and 1. */
function barsOf(bins: readonly number[]): Schemas["Bar"][] {
  const at = (bin: number) => bin / bins.length;
  return bins.map((number, bin) => ({ low: at(bin), high: at(bin + 1), count: number }));
}

/** The same numbers as a table. */
function Numbers({ graders }: { graders: readonly Grader[] }) {
  return (
    <Table
      label="Scores in numbers"
      items={graders}
      keyOf={(grader) => grader.key}
      columns={[
        {
          name: "Grader",
          kind: "name",
          show: (grader) => (
            <>
              {grader.depth > 1 && (
                <span className="text-soft">{pathOf(grader).slice(0, -1).join(" / ")} / </span>
              )}
              {grader.name}
            </>
          ),
        },
        { name: "Scores", kind: "number", show: (grader) => whole(grader.n) },
        { name: "Mean", kind: "number", show: (grader) => score(grader.mean.mean) },
        {
          name: "95 % interval",
          show: ({ mean }) => between(mean.low, mean.high) || "–",
        },
        { name: "Cases", kind: "number", show: (grader) => whole(grader.mean.n) },
        { name: "Passed", kind: "number", show: (grader) => whole(grader.passed) },
        { name: "Errors", kind: "number", show: (grader) => whole(grader.errors) },
        { name: "Skipped", kind: "number", show: (grader) => whole(grader.skipped) },
        {
          name: "Commonest",
          show: (grader) => (
            <>
              {score(grader.commonest)}{" "}
              <span className="text-soft">{percent(grader.constant)}</span>
            </>
          ),
        },
      ]}
    />
  );
}

/** Where a grader stands in the score tree: its names, outermost first. */
function pathOf({ key, name }: Grader): string[] {
  const names = key.split("/").slice(1);
  return names.length
    ? names.map((one) => one.replaceAll("~1", "/").replaceAll("~0", "~"))
    : [name];
}
