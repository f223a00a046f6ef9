import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "react-router";
import { api, ask, type Schemas } from "../api/client";
import { Choice } from "../parts/Choice";
import { score, whole } from "../parts/figures";
import { type Column, Grid, type Wanted } from "../parts/Grid";
import { Loading } from "../parts/Loading";
import { Flag, Outcome } from "../parts/Outcome";
import { ProblemBox } from "../parts/ProblemBox";
import { Tabs } from "../parts/Tabs";
import { TextBlock } from "../parts/TextBlock";
import { OpenedRow } from "./OpenedRow";

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
  { name: "Row", track: "52px", kind: "number", show: (one) => whole(one.number) },
  { name: "Id", track: "minmax(60px, 0.8fr)", show: (one) => one.item },
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
  const [view, setView] = useSearchParams();
  const status = STATUSES.find((one) => one === view.get("status"));
  const order = ORDERS.find(([key]) => key === view.get("order"))?.[0] ?? "row";
  const at = view.get("at") === null ? null : Number(view.get("at"));
  const counts = { scored: summary.scored, error: summary.errors, skipped: summary.skipped };
  const all = summary.scored + summary.errors + summary.skipped;
  const total = status ? counts[status] : all;
  const change = (more: Record<string, string>, isNext = false) => {
    const next = new URLSearchParams(view);
    next.delete("at");
    for (const [name, value] of Object.entries(more)) {
      if (value) next.set(name, value);
      else next.delete(name);
    }
    setView(next, { replace: isNext });
  };
  const query = { ...(status ? { status } : {}), order };
  const load = (wanted: Wanted, signal: AbortSignal) =>
    ask(
      api.GET("/api/v1/projects/{project}/jobs/{id}/results", {
        params: { path: { project, id: job.id }, query: { ...query, ...wanted } },
        signal,
      }),
    );
  return (
    <section className="stack">
      <Tabs
        label="Results"
        tabs={[
          ["", `all ${whole(all)}`] as const,
          ...STATUSES.map((one) => [one, `${one} ${whole(counts[one])}`] as const),
        ]}
        chosen={status ?? ""}
        choose={(one) => change({ status: one })}
        beside={
          <Choice
            label="Order"
            isInline
            value={order}
            options={ORDERS}
            change={(key) => change({ order: key === "row" ? "" : key })}
          />
        }
      >
        <div className={at === null ? "data-split" : "data-split open"}>
          <Grid
            label="Results"
            name={["job", project, job.id, "results", status ?? "", order]}
            total={total}
            columns={COLUMNS}
            load={load}
            chosen={at}
            choose={(place, isNext) => change({ at: String(place) }, isNext)}
          />
          {at !== null && at < total && (
            <Opened
              project={project}
              id={job.id}
              query={{ ...query, offset: at, limit: 1 }}
              close={() => change({})}
            />
          )}
        </div>
      </Tabs>
    </section>
  );
}

function Opened({ project, id, query, close }: OpenedProps) {
  const path = { project, id };
  const found = useQuery({
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
      const opened = await ask(
        api.GET("/api/v1/projects/{project}/jobs/{id}/results/{number}", {
          params: { path: { ...path, number } },
          signal,
        }),
      );
      return { number, opened };
    },
  });
  return (
    <aside className="panel data-opened" aria-label="Result">
      <div className="spread">
        <h2>{found.data ? `Row ${whole(found.data.number)}` : "Row"}</h2>
        <button type="button" className="quiet" onClick={close}>
          Close
        </button>
      </div>
      {found.isPending && <Loading what="Loading the result" />}
      {found.error && <ProblemBox problem={found.error} />}
      {found.data && <ResultText opened={found.data.opened} />}
    </aside>
  );
}

export function ResultText({ opened }: { opened: Schemas["ResultDetail"] }) {
  const { graded, item } = opened.result;
  return (
    <>
      <p className="row">
        <ScoreMark status={graded.status} value={graded.score} />
        <span className="anywhere">{item}</span>
        {graded.flags.map((flag) => (
          <Flag key={flag} text={flag} />
        ))}
      </p>
      {graded.error && <TextBlock title="What went wrong" text={graded.error} />}
      {graded.reason && <TextBlock title="Why" text={graded.reason} />}
      {graded.assurance && (
        <p className="soft">
          assurance <b>{graded.assurance}</b>, by {graded.grader}
        </p>
      )}
      {opened.row ? (
        <OpenedRow row={opened.row} />
      ) : (
        <p className="soft">Its dataset was deleted: the row cannot be read any more.</p>
      )}
      {opened.details && (
        <details>
          <summary>Evidence</summary>
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

interface OpenedProps {
  project: string;
  id: string;
  query: { status?: Status; order: (typeof ORDERS)[number][0]; offset: number; limit: number };
  close: () => void;
}
