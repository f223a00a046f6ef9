import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate, useParams, useSearchParams } from "react-router";
import { api, ask, type Schemas } from "../api/client";
import { useMay } from "../api/me";
import { Command } from "../parts/Command";
import { moment, whole } from "../parts/figures";
import { type Column, Grid, type Wanted } from "../parts/Grid";
import { Loading } from "../parts/Loading";
import { Outcome } from "../parts/Outcome";
import { ProblemBox } from "../parts/ProblemBox";
import { Tabs } from "../parts/Tabs";
import { usePageTitle } from "../parts/title";
import { DataTabs } from "./DataTabs";
import { DeleteDataset } from "./DeleteDataset";
import { GradeDialog } from "./GradeDialog";
import { JobTable } from "./JobTable";
import { OpenedRow } from "./OpenedRow";
import { type Dataset, size, useDataset, useJobs } from "./queries";

export default function DatasetPage() {
  const { project = "", key = "" } = useParams();
  usePageTitle(key);
  const dataset = useDataset(project, key);
  return (
    <div className="page">
      <DataTabs />
      {dataset.isPending && <Loading what="Loading the dataset" />}
      {dataset.error && <ProblemBox problem={dataset.error} retry={() => dataset.refetch()} />}
      {dataset.data && <Shown project={project} dataset={dataset.data} />}
    </div>
  );
}

type Doing = "" | "grade" | "delete";

function Shown({ project, dataset }: { project: string; dataset: Dataset }) {
  const [doing, setDoing] = useState<Doing>("");
  const [view, setView] = useSearchParams();
  const go = useNavigate();
  const mayEdit = useMay("editor", project);
  const jobs = useJobs(project, { dataset: dataset.key });
  const tab = view.get("tab") === "jobs" ? "jobs" : "rows";
  const needs = mayEdit ? undefined : "This needs the role editor";
  return (
    <>
      <div className="page-head">
        <h1 className="anywhere">{dataset.key}</h1>
        <div className="row">
          <a className="button" href={fileOf(project, dataset.key)} download>
            Download
          </a>
          <button
            type="button"
            className="danger"
            disabled={!mayEdit}
            title={needs}
            onClick={() => setDoing("delete")}
          >
            Delete …
          </button>
          <button
            type="button"
            className="primary"
            disabled={!mayEdit}
            title={needs}
            onClick={() => setDoing("grade")}
          >
            Grade with …
          </button>
        </div>
      </div>
      <p className="facts">
        {dataset.name !== dataset.key && <span className="anywhere">{dataset.name}</span>}
        <span>
          <b>{whole(dataset.rows)}</b> {dataset.rows === 1 ? "row" : "rows"}
        </span>
        <span>
          <b>{size(dataset.size)}</b>
        </span>
        <span>stored {moment(dataset.created_at)}</span>
        <span title={dataset.digest}>
          digest <code>{dataset.digest.slice(0, 12)}</code>
        </span>
        <Command text={exportCommand(project, dataset.key)} />
      </p>
      <Tabs
        label="Parts of the dataset"
        tabs={[
          ["rows", "Rows"],
          ["jobs", jobs.data?.items.length ? `Jobs (${jobs.data.items.length})` : "Jobs"],
        ]}
        chosen={tab}
        choose={(key) => setView(key === "jobs" ? { tab: key } : {})}
      >
        {tab === "jobs" ? <JobTable project={project} jobs={jobs} /> : <Rows dataset={dataset} />}
      </Tabs>
      {doing === "grade" && (
        <GradeDialog project={project} dataset={dataset} close={() => setDoing("")} />
      )}
      {doing === "delete" && (
        <DeleteDataset
          project={project}
          dataset={dataset}
          close={() => setDoing("")}
          done={() => go(`/p/${project}/datasets`)}
        />
      )}
    </>
  );
}

function fileOf(project: string, key: string): string {
  const names = [project, key].map(encodeURIComponent);
  return `/api/v1/projects/${names[0]}/datasets/${names[1]}/file`;
}

function exportCommand(project: string, key: string): string {
  const where = project === "default" ? "" : ` --project ${project}`;
  return `assay server export datasets ${key}${where} --out ${key}.jsonl`;
}

type Glimpse = Schemas["RowGlimpse"];

const COLUMNS: readonly Column<Glimpse>[] = [
  { name: "Row", track: "52px", kind: "number", show: (row) => whole(row.number) },
  { name: "Id", track: "minmax(60px, 0.6fr)", show: (row) => row.id },
  {
    name: "Question",
    track: "minmax(120px, 2fr)",
    show: (row) => (row.fault ? <Outcome state="error" text={row.fault} /> : row.question),
  },
  { name: "Answer", track: "minmax(120px, 2fr)", show: (row) => row.answer },
  { name: "Expected", track: "minmax(80px, 1fr)", show: (row) => row.expected },
];

function Rows({ dataset }: { dataset: Dataset }) {
  const [view, setView] = useSearchParams();
  const place = { project: dataset.project, key: dataset.key };
  const number = Number(view.get("row")) || null;
  const load = (query: Wanted, signal: AbortSignal) =>
    ask(
      api.GET("/api/v1/projects/{project}/datasets/{key}/rows", {
        params: { path: place, query },
        signal,
      }),
    );
  return (
    <div className={number ? "data-split open" : "data-split"}>
      <Grid
        label="Rows"
        name={["rows", dataset.project, dataset.key, dataset.digest]}
        total={dataset.rows}
        columns={COLUMNS}
        load={load}
        chosen={number ? number - 1 : null}
        choose={(at, isNext) => setView({ row: String(at + 1) }, { replace: isNext })}
      />
      {number && <Opened place={place} number={number} close={() => setView({})} />}
    </div>
  );
}

function Opened({ place, number, close }: OpenedProps) {
  const row = useQuery({
    queryKey: ["row", place.project, place.key, number],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/datasets/{key}/rows/{number}", {
          params: { path: { ...place, number } },
          signal,
        }),
      ),
  });
  return (
    <aside className="panel data-opened" aria-label={`Row ${number}`}>
      <div className="spread">
        <h2>{row.data ? `Row ${whole(number)}: ${row.data.id}` : `Row ${whole(number)}`}</h2>
        <button type="button" className="quiet" onClick={close}>
          Close
        </button>
      </div>
      {row.isPending && <Loading what="Loading the row" />}
      {row.error && <ProblemBox problem={row.error} />}
      {row.data && <OpenedRow row={row.data} />}
    </aside>
  );
}

interface OpenedProps {
  place: { project: string; key: string };
  number: number;
  close: () => void;
}
