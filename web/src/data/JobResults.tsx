import { useSuspenseQuery } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../api/client";
import { useAddress } from "../parts/address";
import { Choice } from "../parts/Choice";
import { score, whole } from "../parts/figures";
import { type Column, Grid, type Wanted } from "../parts/Grid";
import { Flag, Outcome } from "../parts/Outcome";
import { Tabs } from "../parts/Tabs";
import { TextBlock } from "../parts/TextBlock";
import { Beside } from "./DataPage";
import { Opened, OpenedRow } from "./Opened";

type Glimpse = Schemas["ResultGlimpse"];
type Status = Glimpse["status"];

const STATUSES: readonly Status[] = ["scored", "error", "skipped"];
const ORDERS = [
  ["row", "by row"],
  ["score", "lowest score first"],
  ["newest", "newest first"],
] as const;

export function ScoreMark({ status, value }: { status: Status; value: number | null }) {
  return <Outcome state={status} text={status === "scored" ? score(value) : status} />;
}

const COLUMNS: readonly Column<Glimpse>[] = [
  { name: "Row", track: "44px", kind: "number", from: "md", show: (one) => whole(one.number) },
  { name: "Id", track: "minmax(64px, 0.8fr)", show: (one) => one.item },
  {
    name: "Score",
    track: "96px",
    show: (one) => <ScoreMark status={one.status} value={one.score} />,
  },
  {
    name: "Why",
    track: "minmax(140px, 4fr)",
    show: (one) => (
      <>
        {one.flags.map((flag) => (
          <Flag key={flag} text={flag} />
        ))}{" "}
        {one.why}
      </>
    ),
  },
];

/** The results of a job: filtered, sorted, any of them opened beside its row. */
export function JobResults({ project, summary }: Props) {
  const { job } = summary;
  const [view, change] = useAddress({ status: "", order: "row", at: -1 });
  const status = STATUSES.find((one) => one === view.status);
  const order = ORDERS.find(([key]) => key === view.order)?.[0] ?? "row";
  const at = view.at < 0 ? null : view.at;
  const counts = { scored: summary.scored, error: summary.errors, skipped: summary.skipped };
  const all = summary.scored + summary.errors + summary.skipped;
  const total = status ? counts[status] : all;
  const query = { ...(status ? { status } : {}), order };
  const load = (wanted: Wanted, signal: AbortSignal) =>
    ask(
      api.GET("/api/v1/projects/{project}/jobs/{id}/results", {
        params: { path: { project, id: job.id }, query: { ...query, ...wanted } },
        signal,
      }),
    );
  return (
    <Tabs
      label="Results"
      tabs={[
        ["", `all ${whole(all)}`] as const,
        ...STATUSES.map((one) => [one, `${one} ${whole(counts[one])}`] as const),
      ]}
      chosen={status ?? ""}
      choose={(one) => change({ status: one, at: -1 }, { isStep: true })}
      beside={
        <Choice
          label="Order"
          isInline
          value={order}
          options={ORDERS}
          change={(key) => change({ order: key, at: -1 }, { isStep: true })}
        />
      }
    >
      <Beside
        list={
          <Grid
            label="Results"
            name={["job", project, job.id, "results", status ?? "", order]}
            total={total}
            columns={COLUMNS}
            load={load}
            chosen={at}
            choose={(place, isNext) => change({ at: place }, { isStep: !isNext })}
          />
        }
      >
        {at !== null && at < total && (
          <Opened
            label="Result"
            place={`${status} ${order} ${at}`}
            close={() => change({ at: -1 }, { isStep: true })}
          >
            <Result project={project} id={job.id} query={{ ...query, offset: at, limit: 1 }} />
          </Opened>
        )}
      </Beside>
    </Tabs>
  );
}

function Result({ project, id, query }: ResultProps) {
  const path = { project, id };
  const found = useSuspenseQuery({
    queryKey: ["job", project, id, "result", query],
    queryFn: async ({ signal }) => {
      const part = await ask(
        api.GET("/api/v1/projects/{project}/jobs/{id}/results", {
          params: { path, query },
          signal,
        }),
      );
      const number = part.items[0]?.number;
      if (number === undefined) return null;
      return ask(
        api.GET("/api/v1/projects/{project}/jobs/{id}/results/{number}", {
          params: { path: { ...path, number } },
          signal,
        }),
      );
    },
  });
  return found.data && <ResultText opened={found.data} />;
}

export function ResultText({ opened }: { opened: Schemas["ResultDetail"] }) {
  const { graded, item } = opened.result;
  return (
    <>
      <p className="m-0 flex flex-wrap items-center gap-x-3 gap-y-1">
        <ScoreMark status={graded.status} value={graded.score} />
        <span className="wrap-anywhere">{item}</span>
        {graded.flags.map((flag) => (
          <Flag key={flag} text={flag} />
        ))}
      </p>
      {graded.error && <TextBlock title="What went wrong" text={graded.error} />}
      {graded.reason && <TextBlock title="Why" text={graded.reason} />}
      {graded.assurance && (
        <p className="m-0 text-soft">
          assurance <b>{graded.assurance}</b>, by {graded.grader}
        </p>
      )}
      {opened.row ? (
        <OpenedRow row={opened.row} />
      ) : (
        <p className="m-0 text-soft">Its dataset was deleted: the row cannot be read any more.</p>
      )}
      {opened.details && (
        <details className="mt-3">
          <summary className="min-h-8 cursor-pointer text-soft">Evidence</summary>
          <TextBlock title="Details" text={opened.details} />
        </details>
      )}
    </>
  );
}

interface Props {
  project: string;
  summary: Schemas["JobSummary"];
}

interface ResultProps {
  project: string;
  id: string;
  query: { status?: Status; order: (typeof ORDERS)[number][0]; offset: number; limit: number };
}
