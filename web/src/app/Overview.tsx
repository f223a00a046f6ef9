import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "react-router";
import { $api, type Schemas } from "../api/client";
import { useEvents } from "../api/live";
import { useMay, useProject } from "../api/me";
import { useJobs } from "../data/queries";
import { columnsOf } from "../graders/columns";
import { Command } from "../parts/Command";
import { Empty } from "../parts/Empty";
import { EndBar } from "../parts/Ends";
import { count, moment, whole } from "../parts/figures";
import { remember, remembered } from "../parts/memory";
import { Flag } from "../parts/Outcome";
import { Badge, Page, Stack } from "../parts/Page";
import { Panel } from "../parts/Panel";
import { Table } from "../parts/Table";
import { When } from "../parts/When";
import { cellsAddress, runName } from "../runs/names";
import { Beginning } from "./Beginning";
import { Trends } from "./Trends";
import { Verdicts } from "./Verdicts";

type Run = Schemas["RunRow"];

/** Runs that trends are made of, and of those how many are listed. */
const KNOWN = { params: { query: { limit: 50 } } };
const LISTED = 8;

const GRADERS = (project: string) => ({
  params: { path: { project }, query: { limit: LISTED } },
});

/** What changed since one last looked, what waits for somebody, and what is at work. */
export default function Overview() {
  const project = useProject();
  const seesRuns = useMay("viewer", "default");
  const since = useState(lastLook)[0];
  const queries = useQueryClient();
  useEvents(
    seesRuns ? "/api/v1/run-events" : null,
    ["runs"],
    () => void queries.invalidateQueries({ queryKey: ["get", "/api/v1/runs"] }),
  );
  const runs = $api.useQuery("get", "/api/v1/runs", KNOWN, { enabled: seesRuns });
  const graders = $api.useQuery("get", "/api/v1/projects/{project}/graders", GRADERS(project));
  const total = runs.data?.total ?? 0;
  const isNew = runs.data?.total === 0 && graders.data?.items.length === 0;
  if (isNew) {
    return (
      <Page title="Overview">
        <Beginning project={project} />
      </Page>
    );
  }
  return (
    <Page title="Overview" facts={runs.data && <News runs={runs.data.items} since={since} />}>
      <Stack>
        {seesRuns && (
          <div className="grid gap-10 xl:grid-cols-[minmax(0,1fr)_320px] xl:gap-14">
            <Panel
              title="Newest verdicts"
              what="Loading runs"
              beside={total > 0 && <Link to="/runs">All {count(total, "run")}</Link>}
            >
              <Runs since={since} />
            </Panel>
            <div className="grid content-start gap-10">
              <Panel title="Waits for somebody">
                <Waiting />
              </Panel>
              <Panel title="At work now">
                <AtWork project={project} />
              </Panel>
            </div>
          </div>
        )}
        {seesRuns && runs.data && <Trends runs={runs.data.items} />}
        <Panel
          title={`Graders in ${project}`}
          what="Loading graders"
          beside={<Link to={`/p/${encodeURIComponent(project)}/graders`}>All graders</Link>}
        >
          <Graders project={project} />
        </Panel>
      </Stack>
    </Page>
  );
}

const LOOKED = "assay.looked";
let looked: string | null | undefined;

/** When this browser showed the overview before this tab did. */
function lastLook(): string | null {
  if (looked === undefined) {
    looked = remembered(LOOKED);
    remember(LOOKED, new Date().toISOString());
  }
  return looked;
}

function News({ runs, since }: { runs: readonly Run[]; since: string | null }) {
  const news = since === null ? [] : runs.filter((run) => run.created_at > since);
  const running = runs.filter((run) => run.state === "running");
  return (
    <>
      {since !== null && (
        <span title={moment(since)}>
          <b>{count(news.length, "run")}</b> since you last looked, <When at={since} />
        </span>
      )}
      {running.length > 0 && (
        <span>
          <b>{whole(running.length)}</b> running
        </span>
      )}
    </>
  );
}

function Runs({ since }: { since: string | null }) {
  const runs = $api.useSuspenseQuery("get", "/api/v1/runs", KNOWN).data;
  if (runs.items.length > 0) return <Verdicts runs={runs.items.slice(0, LISTED)} since={since} />;
  return (
    <Empty title="No runs yet" command="assay run CASES">
      <p>Cases, their agents and models, graded and stored. To see one at once:</p>
      <Command text="assay demo" />
      <p>or, of your own:</p>
    </Empty>
  );
}

/** Runs and jobs that are not over, each with how far it is. */
function AtWork({ project }: { project: string }) {
  const runs = $api
    .useSuspenseQuery("get", "/api/v1/runs", KNOWN)
    .data.items.filter((run) => run.state === "running");
  const jobs = useJobs(project, { status: "running" }).data?.items ?? [];
  if (runs.length + jobs.length === 0) return <p className="m-0 text-soft">Nothing.</p>;
  return (
    <ul className="m-0 grid list-none gap-4 p-0">
      {runs.map((run) => (
        <li key={run.id} className="grid gap-1.5">
          <span className="flex justify-between gap-3">
            <Link to={`/runs/${encodeURIComponent(run.id)}`} className="truncate">
              {runName(run)}
            </Link>
            <span className="whitespace-nowrap text-soft tabular-nums">
              {whole(run.total)} of {whole(run.planned)}
            </span>
          </span>
          <EndBar ends={run.ends} planned={run.planned} />
        </li>
      ))}
      {jobs.map((job) => (
        <li key={job.id} className="flex justify-between gap-3">
          <Link to={`/p/${project}/jobs/${job.id}`} className="truncate">
            {job.grader} on {job.dataset}
          </Link>
          <span className="whitespace-nowrap text-soft tabular-nums">
            {whole(job.done)} of {whole(job.total)}
          </span>
        </li>
      ))}
    </ul>
  );
}

/** Cells that look tampered with, or that a person has to decide. */
function Waiting() {
  const runs = $api.useSuspenseQuery("get", "/api/v1/runs", KNOWN).data.items;
  const found = runs.filter((run) => run.flagged + run.held > 0).slice(0, LISTED);
  if (found.length === 0) {
    return <p className="m-0 text-soft">Nothing: no cell is flagged or held.</p>;
  }
  return (
    <ul className="m-0 grid list-none gap-3 p-0">
      {found.map((run) => {
        const there = `/runs/${encodeURIComponent(run.id)}`;
        const only: Record<string, string> = run.held > 0 ? { held: "true" } : { flagged: "true" };
        return (
          <li key={run.id} className="flex items-baseline justify-between gap-3">
            <Link to={`${there}${cellsAddress(only)}`} className="truncate">
              {runName(run)}
            </Link>
            <span className="flex gap-3">
              {run.flagged > 0 && <Flag text={`${whole(run.flagged)} flagged`} />}
              {run.held > 0 && <Badge tone="flag">{whole(run.held)} to decide</Badge>}
            </span>
          </li>
        );
      })}
    </ul>
  );
}

function Graders({ project }: { project: string }) {
  const found = $api.useSuspenseQuery("get", "/api/v1/projects/{project}/graders", GRADERS(project))
    .data.items;
  if (found.length === 0) {
    return (
      <Empty title="No stored graders yet" command="assay graders create KEY grade.py">
        <p>A stored grader has versions, and every score names the one that gave it.</p>
      </Empty>
    );
  }
  return (
    <Table label="Graders" columns={columnsOf(project)} items={found} keyOf={(one) => one.key} />
  );
}
