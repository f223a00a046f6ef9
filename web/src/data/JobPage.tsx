import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { api, ask, type Schemas } from "../api/client";
import { useEvents } from "../api/live";
import { useMay } from "../api/me";
import { Confirm } from "../parts/Dialog";
import { count, moment, whole } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import { usePageTitle } from "../parts/title";
import { DataTabs } from "./DataTabs";
import { JobCards } from "./JobCards";
import { JobResults } from "./JobResults";
import { JobState } from "./JobTable";
import { isActive, type Job } from "./queries";

export default function JobPage() {
  const { project = "", id = "" } = useParams();
  usePageTitle(`Job ${id}`);
  const known = useQueryClient();
  const summary = useQuery({
    queryKey: ["job", project, id, "summary"],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/jobs/{id}/summary", {
          params: { path: { project, id } },
          signal,
        }),
      ),
  });
  const active = summary.data && isActive(summary.data.job);
  const asked = useRef(0);
  useEvents(
    active ? `/api/v1/projects/${project}/jobs/${id}/events` : null,
    EVENTS,
    (kind, job) => {
      known.setQueryData<Schemas["JobSummary"]>(["job", project, id, "summary"], (before) =>
        before ? { ...before, job: kind === "done" ? before.job : (job as Job) } : before,
      );
      if (kind === "done" || Date.now() - asked.current > 1_000) {
        asked.current = Date.now();
        known.invalidateQueries({ queryKey: ["job", project, id] });
      }
    },
  );
  return (
    <div className="page">
      <DataTabs />
      {summary.isPending && <Loading what="Loading the job" />}
      {summary.error && <ProblemBox problem={summary.error} retry={() => summary.refetch()} />}
      {summary.data && <Shown project={project} summary={summary.data} />}
    </div>
  );
}

const EVENTS = ["progress", "done"] as const;

function Shown({ project, summary }: { project: string; summary: Schemas["JobSummary"] }) {
  const { job } = summary;
  return (
    <>
      <div className="page-head">
        <h1 className="row">
          <span className="anywhere">
            {job.grader}@{job.version} on {job.dataset}
          </span>
          <JobState job={job} />
        </h1>
        <Actions project={project} job={job} />
      </div>
      <p role="status">{summary.line}</p>
      {job.message && <p className="anywhere">{job.message}</p>}
      {isActive(job) && (
        <progress
          className="data-progress"
          value={job.done}
          max={Math.max(job.total, 1)}
          aria-label={`${whole(job.done)} of ${whole(job.total)} rows`}
        />
      )}
      <p className="facts">
        <code>{job.id}</code>
        <span>begun {moment(job.created_at)}</span>
        {job.created_by && <span className="anywhere">by {job.created_by}</span>}
        {summary.is_stored ? (
          <Link to={`/p/${project}/datasets/${job.dataset}`}>the dataset</Link>
        ) : (
          <span>its dataset was deleted</span>
        )}
        <Link to={`/p/${project}/graders/${job.grader}`}>the grader</Link>
      </p>
      <JobCards summary={summary} />
      <JobResults project={project} summary={summary} />
    </>
  );
}

function Actions({ project, job }: { project: string; job: Job }) {
  const mayEdit = useMay("editor", project);
  const known = useQueryClient();
  const go = useNavigate();
  const [isAsking, setAsking] = useState(false);
  const params = { params: { path: { project, id: job.id } } };
  const changed = () =>
    Promise.all([
      known.invalidateQueries({ queryKey: ["jobs", project] }),
      known.invalidateQueries({ queryKey: ["job", project, job.id] }),
    ]);
  const cancel = useMutation({
    mutationFn: () => ask(api.POST("/api/v1/projects/{project}/jobs/{id}/cancel", params)),
    onSettled: changed,
  });
  const remove = useMutation({
    mutationFn: () => ask(api.DELETE("/api/v1/projects/{project}/jobs/{id}", params)),
    onSuccess: async () => {
      await known.invalidateQueries({ queryKey: ["jobs", project] });
      go(`/p/${project}/jobs`);
    },
  });
  const needs = mayEdit ? undefined : "This needs the role editor";
  return (
    <div className="row">
      {cancel.error && <ProblemBox problem={cancel.error} />}
      {isActive(job) ? (
        <button
          type="button"
          disabled={!mayEdit || cancel.isPending}
          title={needs ?? "What is graded stays"}
          onClick={() => cancel.mutate()}
        >
          Cancel the job
        </button>
      ) : (
        <button
          type="button"
          className="danger"
          disabled={!mayEdit}
          title={needs}
          onClick={() => setAsking(true)}
        >
          Delete …
        </button>
      )}
      {isAsking && (
        <Confirm
          title="Delete this job?"
          action="Delete"
          disabled={remove.isPending}
          close={() => setAsking(false)}
          confirm={() => remove.mutate()}
        >
          <p>
            Its {count(job.done, "result")} will be gone for good. The dataset and the grader stay.
          </p>
          {remove.error && <ProblemBox problem={remove.error} />}
        </Confirm>
      )}
    </div>
  );
}
