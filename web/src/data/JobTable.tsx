import { Link } from "react-router";
import { ButtonLink } from "../parts/Button";
import { Empty } from "../parts/Empty";
import { whole } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { type Ended, Outcome } from "../parts/Outcome";
import { ProblemBox } from "../parts/ProblemBox";
import { Progress } from "../parts/Progress";
import { Below, type Shown, Table } from "../parts/Table";
import { When } from "../parts/When";
import { isActive, type Job, type useJobs } from "./queries";

const SHAPES: Record<Job["status"], Ended> = {
  queued: "skipped",
  running: "scored",
  finished: "pass",
  failed: "error",
  cancelled: "skipped",
};

export function JobState({ job }: { job: Job }) {
  return <Outcome state={SHAPES[job.status]} text={job.status} />;
}

/** Jobs, newest first. */
export function JobTable({ project, jobs }: { project: string; jobs: Jobs }) {
  if (jobs.isPending) return <Loading what="Loading jobs" />;
  if (jobs.error) return <ProblemBox problem={jobs.error} retry={() => jobs.refetch()} />;
  if (jobs.data.items.length === 0) {
    return (
      <Empty title="No jobs here">
        <p>
          A job grades a stored dataset with a stored grader in the background. Open a dataset and
          choose <b>Grade with …</b>.
        </p>
        <ButtonLink to={`/p/${project}/datasets`}>Open the datasets</ButtonLink>
      </Empty>
    );
  }
  const columns: readonly Shown<Job>[] = [
    {
      name: "Job",
      kind: "name",
      show: (job) => (
        <Link to={`/p/${project}/jobs/${job.id}`}>
          {job.grader}@{job.version} on {job.dataset}
        </Link>
      ),
      below: (job) => <code>{job.id}</code>,
    },
    { name: "State", show: (job) => <JobState job={job} /> },
    {
      name: "Rows",
      kind: "number",
      show: (job) => (
        <>
          {isActive(job) ? `${whole(job.done)} of ${whole(job.total)}` : whole(job.done)}
          {isActive(job) && <Progress done={job.done} total={job.total} noun="rows" />}
        </>
      ),
    },
    {
      name: "Errors",
      kind: "number",
      show: (job) => (job.errors > 0 ? <Outcome state="error" text={whole(job.errors)} /> : 0),
    },
    {
      name: "Begun",
      kind: "number",
      from: "md",
      show: (job) => (
        <>
          <When at={job.created_at} />
          <Below>{job.created_by}</Below>
        </>
      ),
    },
  ];
  return (
    <>
      <Table columns={columns} items={jobs.data.items} keyOf={(job) => job.id} />
      {jobs.data.next && (
        <p className="mt-4 text-soft">
          Only the newest {whole(jobs.data.items.length)} are shown. Narrow them by state, or list
          all on the command line: <code>assay server list jobs</code>
        </p>
      )}
    </>
  );
}

type Jobs = ReturnType<typeof useJobs>;
