import type { UseQueryResult } from "@tanstack/react-query";
import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { Empty } from "../parts/Empty";
import { moment, whole } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { type Ended, Outcome } from "../parts/Outcome";
import { ProblemBox } from "../parts/ProblemBox";
import type { Job } from "./queries";

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

export function JobProgress({ job }: { job: Job }) {
  return (
    <progress
      className="data-progress short"
      value={job.done}
      max={Math.max(job.total, 1)}
      aria-label={`${whole(job.done)} of ${whole(job.total)} rows`}
    />
  );
}

/** Jobs, newest first. */
export function JobTable({ project, jobs }: { project: string; jobs: Jobs }) {
  if (jobs.isPending) return <Loading what="Loading jobs" />;
  if (jobs.error) return <ProblemBox problem={jobs.error} retry={() => jobs.refetch()} />;
  if (jobs.data.items.length === 0) {
    return (
      <Empty title="No jobs here" command="assay server list jobs --help">
        <p>
          A job grades a stored dataset with a stored grader in the background. Open a dataset and
          choose <b>Grade with …</b>.
        </p>
      </Empty>
    );
  }
  return (
    <>
      <div className="scrolls">
        <table>
          <thead>
            <tr>
              <th scope="col">State</th>
              <th scope="col">Job</th>
              <th scope="col">Grader</th>
              <th scope="col">Dataset</th>
              <th scope="col">Progress</th>
              <th scope="col" className="number">
                Rows
              </th>
              <th scope="col" className="number">
                Errors
              </th>
              <th scope="col">Begun</th>
              <th scope="col">By</th>
            </tr>
          </thead>
          <tbody>
            {jobs.data.items.map((job) => (
              <tr key={job.id}>
                <td>
                  <JobState job={job} />
                </td>
                <td>
                  <Link className="mono nowrap" to={`/p/${project}/jobs/${job.id}`}>
                    {job.id}
                  </Link>
                </td>
                <td className="anywhere">
                  {job.grader}@{job.version}
                </td>
                <td className="anywhere">{job.dataset}</td>
                <td>
                  <JobProgress job={job} />
                </td>
                <td className="number">
                  {whole(job.done)} of {whole(job.total)}
                </td>
                <td className="number">
                  {job.errors > 0 ? <Outcome state="error" text={whole(job.errors)} /> : 0}
                </td>
                <td className="nowrap soft">{moment(job.created_at)}</td>
                <td className="anywhere soft">{job.created_by}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {jobs.data.next && (
        <p className="soft">
          Only the newest {whole(jobs.data.items.length)} are shown. Narrow them by state, or list
          all on the command line: <code>assay server list jobs</code>
        </p>
      )}
    </>
  );
}

type Jobs = UseQueryResult<Schemas["JobPage"]>;
