import { useQuery } from "@tanstack/react-query";
import { api, ask } from "../api/client";
import { count, score, whole } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";

const signed = (value: number | null) =>
  value !== null && value > 0 ? `+${score(value)}` : score(value);

/** Two jobs on the same rows, paired. */
export function JobComparison({ project, id, other }: Props) {
  const found = useQuery({
    queryKey: ["job", project, id, "compare", other],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/jobs/{id}/compare", {
          params: { path: { project, id }, query: { other } },
          signal,
        }),
      ),
  });
  if (found.isPending) return <Loading what="Comparing" />;
  if (found.error) return <ProblemBox problem={found.error} />;
  const { difference, job, other: before, changed, better, worse } = found.data;
  return (
    <section>
      <h2>
        Compared with {before.grader}@{before.version}
      </h2>
      <p role="status">
        <b>{signed(difference.mean)}</b>{" "}
        {difference.low !== null &&
          difference.high !== null &&
          `(${signed(difference.low)} to ${signed(difference.high)}, 95 %) `}
        on {count(difference.n, "row")} that both scored. {found.data.line}
      </p>
      <p className="facts">
        <span>
          <b>{whole(better)}</b> higher
        </span>
        <span>
          <b>{whole(worse)}</b> lower
        </span>
        <span>
          <b>{whole(found.data.same)}</b> alike
        </span>
        <span>
          <b>{whole(found.data.unpaired)}</b> not scored by both
        </span>
      </p>
      {changed.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col" className="number">
                Row
              </th>
              <th scope="col">Id</th>
              <th scope="col" className="number">
                {before.grader}@{before.version}
              </th>
              <th scope="col" className="number">
                {job.grader}@{job.version}
              </th>
              <th scope="col" className="number">
                Difference
              </th>
            </tr>
          </thead>
          <tbody>
            {changed.map((row) => (
              <tr key={row.number}>
                <td className="number">{whole(row.number)}</td>
                <td className="anywhere">{row.item}</td>
                <td className="number">{score(row.before)}</td>
                <td className="number">{score(row.after)}</td>
                <td className="number">{signed((row.after ?? 0) - (row.before ?? 0))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {better + worse > changed.length && (
        <p className="soft">The {whole(changed.length)} largest differences are shown.</p>
      )}
    </section>
  );
}

interface Props {
  project: string;
  id: string;
  other: string;
}
