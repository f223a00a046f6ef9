import { Link } from "react-router";
import { count, whole } from "../parts/figures";
import { Below, type Shown } from "../parts/Table";
import { When } from "../parts/When";
import { Agreement, Locked } from "./Agreement";
import { KIND_TITLES, type Overview } from "./queries";

/** Graders in a list: what they are, how far they can be trusted, what uses them. */
export function columnsOf(project: string): Shown<Overview>[] {
  return [
    {
      name: "Grader",
      kind: "name",
      show: (row) => (
        <span className="flex items-center gap-2">
          <Link data-row="" to={`/p/${project}/graders/${row.key}`}>
            {row.key}
          </Link>
          {row.locked && <Locked />}
        </span>
      ),
      below: (row) => (
        <span className="line-clamp-2">{row.name === row.key ? row.description : row.name}</span>
      ),
    },
    {
      name: "Agreement with people",
      show: (row) => <Agreement calibration={row.calibration} />,
    },
    {
      name: "Kind",
      from: "md",
      show: (row) => KIND_TITLES[row.latest.kind] ?? row.latest.kind,
      below: (row) => <>version {row.latest.number}</>,
    },
    { name: "Used by", from: "md", show: (row) => <UsedBy row={row} /> },
    {
      name: "Changed",
      from: "lg",
      show: (row) => <When at={row.updated_at} />,
      below: (row) => <>{row.latest.created_by && `by ${row.latest.created_by}`}</>,
    },
  ];
}

function UsedBy({ row }: { row: Overview }) {
  const { jobs, active_jobs: active, scores } = row.use;
  if (!jobs && !scores) return <span className="text-soft">not used yet</span>;
  return (
    <>
      {scores >= 10_000 ? "10,000+ scores" : count(scores, "score")}
      {jobs > 0 && (
        <Below>
          {count(jobs, "job")}
          {active > 0 && `, ${whole(active)} running`}
        </Below>
      )}
    </>
  );
}
