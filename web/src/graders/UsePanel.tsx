import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { Histogram } from "../parts/Chart";
import { count, moment, score, whole } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { Outcome } from "../parts/Outcome";
import { ProblemBox } from "../parts/ProblemBox";
import { useUsage } from "./queries";

/** What depends on a grader, and what it gave lately. */
export function UsePanel({ project, grader }: { project: string; grader: string }) {
  const usage = useUsage(project, grader);
  return (
    <section className="panel" aria-label="Use">
      <h2>Use</h2>
      {usage.error && <ProblemBox problem={usage.error} retry={() => usage.refetch()} />}
      {usage.isPending && <Loading what="Loading" />}
      {usage.data && <Use project={project} usage={usage.data} />}
    </section>
  );
}

function Use({ project, usage }: { project: string; usage: Schemas["GraderUsage"] }) {
  const { use, given, jobs } = usage;
  if (!use.jobs && !use.scores)
    return (
      <p className="soft">
        It has graded nothing yet: open a <Link to={`/p/${project}/datasets`}>dataset</Link> and
        choose “Grade with …”.
      </p>
    );
  const more = use.scores >= usage.most_counted;
  return (
    <>
      <p>
        {more ? `${whole(use.scores)}+ scores` : count(use.scores, "score")},{" "}
        {count(use.jobs, "job")}
        {use.active_jobs > 0 && `, ${whole(use.active_jobs)} not ended`}
        {use.last_used_at && <span className="soft">, last {moment(use.last_used_at)}</span>}
      </p>
      {use.datasets.length > 0 && (
        <p className="soft">
          Datasets:{" "}
          {use.datasets.map((key, place) => (
            <span key={key}>
              {place > 0 && ", "}
              <Link className="mono" to={`/p/${project}/datasets/${encodeURIComponent(key)}`}>
                {key}
              </Link>
            </span>
          ))}
        </p>
      )}
      {given.n > 0 && <Given given={given} />}
      {jobs.length > 0 && (
        <table className="jobs">
          <thead>
            <tr>
              <th scope="col">Job</th>
              <th scope="col">State</th>
              <th scope="col" className="number">
                Rows
              </th>
            </tr>
          </thead>
          <tbody>
            {jobs.map((job) => (
              <tr key={job.id}>
                <td>
                  <Link className="mono" to={`/p/${project}/jobs/${encodeURIComponent(job.id)}`}>
                    {job.dataset}
                  </Link>
                  <div className="soft">
                    version {job.version}, {moment(job.created_at)}
                  </div>
                </td>
                <td>{job.status}</td>
                <td className="number">
                  {whole(job.done)} / {whole(job.total)}
                  {job.errors > 0 && (
                    <div>
                      <Outcome state="error" text={count(job.errors, "error")} />
                    </div>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

function Given({ given }: { given: Schemas["GivenScores"] }) {
  return (
    <figure className="given">
      <figcaption>
        Newest {count(given.n, "outcome")}: mean {score(given.mean)} of{" "}
        {count(given.scored, "score")}{" "}
        {given.errors > 0 && <Outcome state="error" text={count(given.errors, "error")} />}{" "}
        {given.skipped > 0 && <Outcome state="skipped" text={`${whole(given.skipped)} skipped`} />}
      </figcaption>
      {given.bars.length > 0 && <Histogram bars={given.bars} />}
    </figure>
  );
}
