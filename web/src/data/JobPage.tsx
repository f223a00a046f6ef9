import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { $api, type Schemas } from "../api/client";
import { useEvents } from "../api/live";
import { useMay } from "../api/me";
import { Button } from "../parts/Button";
import { Confirm } from "../parts/Dialog";
import { count } from "../parts/figures";
import { Page } from "../parts/Page";
import { ProblemBox } from "../parts/ProblemBox";
import { Progress } from "../parts/Progress";
import { When } from "../parts/When";
import { JobCards } from "./JobCards";
import { JobResults } from "./JobResults";
import { JobState } from "./JobTable";
import { isActive, JOBS, type Job, NEEDS } from "./queries";

const SUMMARY = "/api/v1/projects/{project}/jobs/{id}/summary";
const EVENTS = ["progress", "done"] as const;

/** A job: how far it is, what it came to, and its results. */
export default function JobPage() {
  const { project = "", id = "" } = useParams();
  const known = useQueryClient();
  const asked = { params: { path: { project, id } } };
  const summary = $api.useSuspenseQuery("get", SUMMARY, asked).data;
  const { job } = summary;
  const last = useRef(0);
  useEvents(
    isActive(job) ? `/api/v1/projects/${project}/jobs/${id}/events` : null,
    EVENTS,
    (kind, told) => {
      known.setQueryData<Schemas["JobSummary"]>(["get", SUMMARY, asked], (before) =>
        before ? { ...before, job: kind === "done" ? before.job : (told as Job) } : before,
      );
      if (kind === "done" || Date.now() - last.current > 1_000) {
        last.current = Date.now();
        known.invalidateQueries({ queryKey: ["get", SUMMARY, asked] });
        known.invalidateQueries({ queryKey: ["job", project, id] });
      }
    },
  );
  return (
    <Page
      title={`${job.grader}@${job.version} on ${job.dataset}`}
      tab={`Job ${id}`}
      crumbs={<Link to={`/p/${project}/jobs`}>Jobs</Link>}
      facts={
        <>
          <JobState job={job} />
          <code>{job.id}</code>
          <span>
            begun <When at={job.created_at} />
          </span>
          {job.created_by && <span>by {job.created_by}</span>}
          {summary.is_stored ? (
            <Link to={`/p/${project}/datasets/${job.dataset}`}>the dataset</Link>
          ) : (
            <span>its dataset was deleted</span>
          )}
          <Link to={`/p/${project}/graders/${job.grader}`}>the grader</Link>
        </>
      }
      actions={<Actions project={project} job={job} />}
    >
      <p role="status" className="mt-0 mb-6 text-lg">
        {summary.line}
      </p>
      {job.message && <p className="mt-0 mb-6 wrap-anywhere">{job.message}</p>}
      {isActive(job) && (
        <div className="mb-8">
          <Progress done={job.done} total={job.total} noun="rows" />
        </div>
      )}
      <JobCards summary={summary} />
      <JobResults project={project} summary={summary} />
    </Page>
  );
}

function Actions({ project, job }: { project: string; job: Job }) {
  const mayEdit = useMay("editor", project);
  const known = useQueryClient();
  const go = useNavigate();
  const [isAsking, setAsking] = useState(false);
  const params = { params: { path: { project, id: job.id } } };
  const changed = () => known.invalidateQueries(JOBS);
  const cancel = $api.useMutation("post", "/api/v1/projects/{project}/jobs/{id}/cancel", {
    onSettled: () =>
      Promise.all([changed(), known.invalidateQueries({ queryKey: ["get", SUMMARY] })]),
  });
  const remove = $api.useMutation("delete", "/api/v1/projects/{project}/jobs/{id}", {
    onSuccess: async () => {
      await changed();
      go(`/p/${project}/jobs`);
    },
  });
  return (
    <>
      {cancel.error && <ProblemBox problem={cancel.error} />}
      <span title={mayEdit ? undefined : NEEDS}>
        {isActive(job) ? (
          <Button
            isDisabled={!mayEdit}
            isPending={cancel.isPending}
            onPress={() => cancel.mutate(params)}
          >
            Cancel the job
          </Button>
        ) : (
          <Button tone="quiet" isDisabled={!mayEdit} onPress={() => setAsking(true)}>
            Delete …
          </Button>
        )}
      </span>
      {isAsking && (
        <Confirm
          title="Delete this job?"
          action="Delete"
          work={remove}
          close={() => setAsking(false)}
          confirm={() => remove.mutate(params)}
        >
          <p className="m-0">
            Its {count(job.done, "result")} will be gone for good. The dataset and the grader stay.
          </p>
        </Confirm>
      )}
    </>
  );
}
