import { useState } from "react";
import { Link, useNavigate, useParams, useSearchParams } from "react-router";
import { $api, api, ask, type Schemas } from "../api/client";
import { useMay } from "../api/me";
import { Button, buttonClass } from "../parts/Button";
import { Command } from "../parts/Command";
import { whole } from "../parts/figures";
import { type Column, Grid, type Wanted } from "../parts/Grid";
import { Outcome } from "../parts/Outcome";
import { Page } from "../parts/Page";
import { Tabs } from "../parts/Tabs";
import { When } from "../parts/When";
import { Beside } from "./DataPage";
import { DeleteDataset } from "./DeleteDataset";
import { GradeDialog } from "./GradeDialog";
import { JobTable } from "./JobTable";
import { Opened, OpenedRow } from "./Opened";
import { type Dataset, NEEDS, size, useJobs } from "./queries";

type Doing = "" | "grade" | "delete";

/** The rows of a dataset, and the jobs that graded it. */
export default function DatasetPage() {
  const { project = "", key: name = "" } = useParams();
  const [doing, setDoing] = useState<Doing>("");
  const [view, setView] = useSearchParams();
  const go = useNavigate();
  const mayEdit = useMay("editor", project);
  const dataset = $api.useSuspenseQuery("get", "/api/v1/projects/{project}/datasets/{key}", {
    params: { path: { project, key: name } },
  }).data;
  const jobs = useJobs(project, { dataset: dataset.key });
  const tab = view.get("tab") === "jobs" ? "jobs" : "rows";
  const close = () => setDoing("");
  return (
    <Page
      title={dataset.key}
      crumbs={<Link to={`/p/${project}/datasets`}>Datasets</Link>}
      facts={
        <>
          {dataset.name !== dataset.key && <span>{dataset.name}</span>}
          <span>
            <b>{whole(dataset.rows)}</b> {dataset.rows === 1 ? "row" : "rows"}
          </span>
          <span>
            <b>{size(dataset.size)}</b>
          </span>
          <span>
            stored <When at={dataset.created_at} />
          </span>
          <span title={dataset.digest}>
            digest <code>{dataset.digest.slice(0, 12)}</code>
          </span>
        </>
      }
      actions={
        <span title={mayEdit ? undefined : NEEDS} className="flex flex-wrap gap-2">
          <Button tone="quiet" isDisabled={!mayEdit} onPress={() => setDoing("delete")}>
            Delete …
          </Button>
          <a className={buttonClass()} href={fileOf(project, dataset.key)} download>
            Download
          </a>
          <Button tone="primary" isDisabled={!mayEdit} onPress={() => setDoing("grade")}>
            Grade with …
          </Button>
        </span>
      }
    >
      <Tabs
        label="Parts of the dataset"
        tabs={[
          ["rows", "Rows"],
          ["jobs", jobs.data?.items.length ? `Jobs (${jobs.data.items.length})` : "Jobs"],
        ]}
        chosen={tab}
        choose={(key) => setView(key === "jobs" ? { tab: key } : {})}
      >
        {tab === "jobs" ? (
          <JobTable project={project} jobs={jobs} />
        ) : (
          <>
            <Rows dataset={dataset} />
            <p className="mt-4 mb-0">
              <Command text={exportCommand(project, dataset.key)} />
            </p>
          </>
        )}
      </Tabs>
      {doing === "grade" && <GradeDialog project={project} dataset={dataset} close={close} />}
      {doing === "delete" && (
        <DeleteDataset
          project={project}
          dataset={dataset}
          close={close}
          done={() => go(`/p/${project}/datasets`)}
        />
      )}
    </Page>
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
  { name: "Row", track: "52px", kind: "number", from: "md", show: (row) => whole(row.number) },
  { name: "Id", track: "minmax(60px, 0.6fr)", show: (row) => row.id },
  {
    name: "Question",
    track: "minmax(120px, 2fr)",
    show: (row) => (row.fault ? <Outcome state="error" text={row.fault} /> : row.question),
  },
  { name: "Answer", track: "minmax(120px, 2fr)", show: (row) => row.answer },
  { name: "Expected", track: "minmax(80px, 1fr)", from: "md", show: (row) => row.expected },
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
    <Beside
      list={
        <Grid
          label="Rows"
          name={["rows", dataset.project, dataset.key, dataset.digest]}
          total={dataset.rows}
          columns={COLUMNS}
          load={load}
          chosen={number ? number - 1 : null}
          choose={(at, isNext) => setView({ row: String(at + 1) }, { replace: isNext })}
        />
      }
    >
      {number && (
        <Opened label={`Row ${whole(number)}`} place={`${number}`} close={() => setView({})}>
          <Row place={place} number={number} />
        </Opened>
      )}
    </Beside>
  );
}

function Row({ place, number }: { place: { project: string; key: string }; number: number }) {
  const row = $api.useSuspenseQuery(
    "get",
    "/api/v1/projects/{project}/datasets/{key}/rows/{number}",
    { params: { path: { ...place, number } } },
  ).data;
  return (
    <>
      <p className="m-0 font-mono text-sm text-soft wrap-anywhere">{row.id}</p>
      <OpenedRow row={row} />
    </>
  );
}
