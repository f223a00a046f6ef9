import { Link } from "react-router";
import { $api, type Schemas } from "../api/client";
import { Histogram } from "../parts/Chart";
import { count, moment, score, whole } from "../parts/figures";
import { Outcome } from "../parts/Outcome";
import { type Shown, Table } from "../parts/Table";

/** What depends on a grader, and what it gave lately. */
export function Use({ project, grader }: { project: string; grader: string }) {
  const usage = $api.useSuspenseQuery("get", "/api/v1/projects/{project}/graders/{key}/use", {
    params: { path: { project, key: grader } },
  }).data;
  const { use, given, jobs } = usage;
  if (!use.jobs && !use.scores) {
    return (
      <p className="m-0 text-soft">
        It has graded nothing yet: open a <Link to={`/p/${project}/datasets`}>dataset</Link> and
        choose “Grade with …”.
      </p>
    );
  }
  const more = use.scores >= usage.most_counted;
  return (
    <div className="grid gap-4">
      <p className="m-0">
        {more ? `${whole(use.scores)}+ scores` : count(use.scores, "score")},{" "}
        {count(use.jobs, "job")}
        {use.active_jobs > 0 && `, ${whole(use.active_jobs)} not ended`}
        {use.last_used_at && <span className="text-soft">, last {moment(use.last_used_at)}</span>}
      </p>
      {use.datasets.length > 0 && (
        <p className="m-0 flex flex-wrap gap-x-3 text-soft">
          Datasets:
          {use.datasets.map((key) => (
            <Link key={key} to={`/p/${project}/datasets/${encodeURIComponent(key)}`}>
              {key}
            </Link>
          ))}
        </p>
      )}
      {given.n > 0 && <Given given={given} />}
      {jobs.length > 0 && (
        <Table label="Jobs" columns={columnsOf(project)} items={jobs} keyOf={(job) => job.id} />
      )}
    </div>
  );
}

function columnsOf(project: string): Shown<Schemas["GraderUsage"]["jobs"][number]>[] {
  return [
    {
      name: "Job",
      kind: "name",
      show: (job) => (
        <Link to={`/p/${project}/jobs/${encodeURIComponent(job.id)}`}>{job.dataset}</Link>
      ),
      below: (job) => (
        <>
          version {job.version}, {moment(job.created_at)}
        </>
      ),
    },
    {
      name: "State",
      show: (job) => job.status,
      below: (job) => job.errors > 0 && <Outcome state="error" text={count(job.errors, "error")} />,
    },
    { name: "Rows", kind: "number", show: (job) => `${whole(job.done)} / ${whole(job.total)}` },
  ];
}

function Given({ given }: { given: Schemas["GivenScores"] }) {
  return (
    <figure className="m-0">
      <figcaption className="mb-2 flex flex-wrap gap-x-3 text-soft">
        Newest {count(given.n, "outcome")}: mean {score(given.mean)} of{" "}
        {count(given.scored, "score")}
        {given.errors > 0 && <Outcome state="error" text={count(given.errors, "error")} />}
        {given.skipped > 0 && <Outcome state="skipped" text={`${whole(given.skipped)} skipped`} />}
      </figcaption>
      {given.bars.length > 0 && <Histogram bars={given.bars} />}
    </figure>
  );
}
