import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { api, ask, type Schemas } from "../api/client";
import { Command } from "../parts/Command";
import { Empty } from "../parts/Empty";
import { count, moment, score, whole } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { Outcome } from "../parts/Outcome";
import { ProblemBox } from "../parts/ProblemBox";
import { usePageTitle } from "../parts/title";
import { DataTabs } from "./DataTabs";

type Environment = Schemas["EnvironmentSeen"];

const KINDS: Record<Environment["kind"], string> = {
  python: "Python file",
  served: "served",
  cases: "cases",
};

/** What runs came from, as far as the store knows. */
export default function EnvironmentsPage() {
  usePageTitle("Environments");
  const found = useQuery({
    queryKey: ["environments"],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/environments", { signal })),
  });
  return (
    <div className="page">
      <DataTabs />
      <div className="page-head">
        <h1>Environments</h1>
      </div>
      {found.isPending && <Loading what="Looking through the runs" />}
      {found.error && <ProblemBox problem={found.error} retry={() => found.refetch()} />}
      {found.data?.environments.length === 0 && (
        <Empty title="No run came from an environment yet" command="assay run env.py">
          <p>
            Environments are Python files, addresses where one is served, and directories of cases.
            They appear here once a run of them is stored.
          </p>
        </Empty>
      )}
      <div className="stack">
        {found.data?.environments.map((one) => (
          <Shown key={`${one.kind} ${one.source} ${one.name}`} one={one} />
        ))}
      </div>
    </div>
  );
}

function Shown({ one }: { one: Environment }) {
  const newest = one.runs[0];
  return (
    <section className="panel stack" aria-label={one.name}>
      <div className="spread">
        <h2 className="row">
          <span className="anywhere">{one.name}</span>
          <span className="soft">{KINDS[one.kind]}</span>
        </h2>
        <code className="anywhere soft">{one.source}</code>
      </div>
      <p className="facts">
        <span>
          mean reward <b>{score(one.mean.mean)}</b>
          {one.mean.low !== null &&
            one.mean.high !== null &&
            ` (${score(one.mean.low)} to ${score(one.mean.high)}, 95 %)`}
          , n={whole(one.mean.n)}
        </span>
        {one.errors > 0 && <Outcome state="error" text={count(one.errors, "error")} />}
        <span>
          <b>{whole(one.task_count)}</b> {one.task_count === 1 ? "task" : "tasks"}
        </span>
        <span>
          <b>{whole(one.run_count)}</b> {one.run_count === 1 ? "run" : "runs"}
        </span>
        {newest && <Link to={`/runs/${newest.id}`}>newest run, {moment(newest.created_at)}</Link>}
        {one.is_partial && <span>of the first cells of a very large run</span>}
      </p>
      <div className="row">
        <Command text={one.run_command} />
        <Command text={one.list_command} />
        {one.serve_command && <Command text={one.serve_command} />}
      </div>
      <details>
        <summary>Tasks and runs</summary>
        <div className="stack">
          <Tasks one={one} />
          <Runs one={one} />
        </div>
      </details>
    </section>
  );
}

function Tasks({ one }: { one: Environment }) {
  const hasTemplates = one.tasks.some((task) => task.template !== "");
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Task</th>
          {hasTemplates && <th scope="col">Template</th>}
          <th scope="col" className="number">
            Mean reward
          </th>
          <th scope="col" className="number">
            Graded
          </th>
          <th scope="col">Not graded</th>
        </tr>
      </thead>
      <tbody>
        {one.tasks.map((task) => (
          <tr key={task.slug}>
            <td className="anywhere">{task.slug}</td>
            {hasTemplates && <td className="anywhere soft">{task.template}</td>}
            <td className="number">{score(task.mean.mean)}</td>
            <td className="number">{whole(task.mean.n)}</td>
            <td>
              {task.errors > 0 && <Outcome state="error" text={count(task.errors, "error")} />}
              {task.skipped > 0 && (
                <Outcome state="skipped" text={`${whole(task.skipped)} skipped`} />
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Runs({ one }: { one: Environment }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Run</th>
          <th scope="col">Label</th>
          <th scope="col">Agents and models</th>
          <th scope="col">Begun</th>
        </tr>
      </thead>
      <tbody>
        {one.runs.map((run) => (
          <tr key={run.id}>
            <td>
              <Link className="mono" to={`/runs/${run.id}`}>
                {run.id}
              </Link>
              {!run.finished && <span className="soft"> not finished</span>}
            </td>
            <td className="anywhere">{run.label}</td>
            <td className="anywhere">{[...run.harnesses, ...run.models].join(", ") || "–"}</td>
            <td className="nowrap soft">{moment(run.created_at)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
