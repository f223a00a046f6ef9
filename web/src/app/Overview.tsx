import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { api, ask, type Schemas } from "../api/client";
import { useEvents } from "../api/live";
import { useMay, useProject } from "../api/me";
import { KIND_TITLES } from "../graders/queries";
import { Command } from "../parts/Command";
import { Empty } from "../parts/Empty";
import { EndCounts } from "../parts/Ends";
import { between, count, moment, percent, priced, score, whole } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { Flag, Outcome } from "../parts/Outcome";
import { ProblemBox } from "../parts/ProblemBox";
import { usePageTitle } from "../parts/title";
import { runName, suiteName } from "../runs/names";
import "./overview.css";

const SHOWN = 8;

export default function Overview() {
  usePageTitle("Overview");
  const project = useProject();
  const seesRuns = useMay("viewer", "default");
  const runs = useQuery({
    queryKey: ["overview", "runs"],
    enabled: seesRuns,
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/runs", { signal, params: { query: { limit: SHOWN } } })),
  });
  useEvents(seesRuns ? "/api/v1/run-events" : null, ["runs"], () => void runs.refetch());
  const graders = useQuery({
    queryKey: ["overview", "graders", project],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/graders", {
          signal,
          params: { path: { project }, query: { limit: SHOWN } },
        }),
      ),
  });
  const total = runs.data?.total ?? 0;
  const isNew = runs.data?.total === 0 && graders.data?.items.length === 0;
  return (
    <div className="page stack">
      <h1>Overview</h1>
      {isNew && <Beginning project={project} />}
      {seesRuns && !isNew && (
        <section aria-labelledby="last-runs">
          <div className="page-head">
            <h2 id="last-runs">Last runs</h2>
            {total > 0 && <Link to="/runs">All {count(total, "run")}</Link>}
          </div>
          {runs.error && <ProblemBox problem={runs.error} retry={() => void runs.refetch()} />}
          {runs.isPending && <Loading what="Loading runs" />}
          {runs.data?.total === 0 && (
            <Empty title="No runs yet" command="assay run CASES">
              <p>Cases, their agents and models, graded and stored. To see one at once:</p>
              <Command text="assay demo" />
              <p>or, of your own:</p>
            </Empty>
          )}
          {runs.data && total > 0 && <RunTable runs={runs.data.items} />}
        </section>
      )}
      {!isNew && (
        <section aria-labelledby="graders">
          <div className="page-head">
            <h2 id="graders">Graders in {project}</h2>
            <Link to={`/p/${encodeURIComponent(project)}/graders`}>All graders</Link>
          </div>
          {graders.error && (
            <ProblemBox problem={graders.error} retry={() => void graders.refetch()} />
          )}
          {graders.isPending && <Loading what="Loading graders" />}
          {graders.data?.items.length === 0 && (
            <Empty title="No stored graders yet" command="assay graders create KEY grade.py">
              <p>A stored grader has versions, and every score names the one that gave it.</p>
            </Empty>
          )}
          {graders.data && graders.data.items.length > 0 && (
            <GraderTable graders={graders.data.items} project={project} />
          )}
        </section>
      )}
    </div>
  );
}

/** What to do with an empty store. */
function Beginning({ project }: { project: string }) {
  const mayStore = useMay("editor", project);
  return (
    <div className="first-steps">
      <section className="panel">
        <h2>See it work</h2>
        <p>Grades the example suite: no key, nothing to configure. Its runs appear here.</p>
        <Command text="assay demo" />
      </section>
      <section className="panel">
        <h2>Grade what you have</h2>
        <p>Recorded answers as JSON lines, by graders of a file; or runs of another store.</p>
        <Command text="assay grade answers.jsonl graders.yaml" />
        <Command text="assay runs import FILE" />
      </section>
      <section className="panel">
        <h2>Write a grader</h2>
        <p>
          A function, a judge or a comparison, tried on samples before it is stored
          {mayStore ? "." : "; for this you need the role editor."}
        </p>
        {mayStore ? (
          <Link className="button primary" to={`/p/${encodeURIComponent(project)}/graders/new`}>
            New grader
          </Link>
        ) : (
          <Command text="assay server create keys NAME --role editor" />
        )}
        <Command text="assay init my-suite" />
      </section>
    </div>
  );
}

function RunTable({ runs }: { runs: readonly Schemas["RunRow"][] }) {
  return (
    <div className="scrolls">
      <table className="overview-table">
        <thead>
          <tr>
            <th>Run</th>
            <th>Outcome</th>
            <th className="number">Pass rate</th>
            <th className="number">Mean reward</th>
            <th className="number">Cost</th>
            <th className="number">Began</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <RunLine key={run.id} run={run} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function RunLine({ run }: { run: Schemas["RunRow"] }) {
  return (
    <tr>
      <td className="name">
        <Link to={`/runs/${encodeURIComponent(run.id)}`} title={run.suite}>
          {runName(run)}
        </Link>
        <span className="below">{run.label ? run.id : suiteName(run.suite) || run.kind}</span>
      </td>
      <td>
        <span className="row tight">
          <EndCounts ends={run.ends} />
          {run.flagged > 0 && <Flag text={`${whole(run.flagged)} flagged`} />}
          {run.state !== "finished" && (
            <span className="soft">
              {run.state === "unfinished" ? "not finished" : run.state}: {whole(run.total)} of{" "}
              {whole(run.planned)}
            </span>
          )}
        </span>
      </td>
      <td className="number">
        <PassRate run={run} />
      </td>
      <td className="number">
        {score(run.reward)}
        <span className="below">{count(run.cases, "case")}</span>
      </td>
      <td className="number">{priced(run.cost_usd, run.cost_unknown)}</td>
      <td className="number soft">{moment(run.created_at)}</td>
    </tr>
  );
}

/** Its interval rests on cases, not on cells, so that it comes from the run's own overview. */
function PassRate({ run }: { run: Schemas["RunRow"] }) {
  const { passed, failed } = run.ends;
  const hasVerdicts = passed + failed > 0;
  // While results come in, twice a second, it would be counted anew each time.
  const isStill = run.state === "finished" || run.state === "interrupted";
  const found = useQuery({
    queryKey: ["overview", "run", run.id, run.total],
    enabled: hasVerdicts && isStill,
    staleTime: 60_000,
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/runs/{run}/overview", { signal, params: { path: { run: run.id } } })),
  });
  if (!hasVerdicts) return <span className="soft">–</span>;
  if (!isStill) {
    return (
      <span className="soft">
        {whole(passed)} of {whole(passed + failed)} so far
      </span>
    );
  }
  const rate = found.data?.totals.pass_rate;
  if (!rate) return <span className="soft">…</span>;
  const range = between(rate.low, rate.high, percent);
  return (
    <>
      {percent(rate.mean)}
      <span className="below">
        {range ? `95 %: ${range}; ` : ""}
        {whole(passed)} of {whole(passed + failed)}
      </span>
    </>
  );
}

interface GraderTableProps {
  graders: readonly Schemas["ListedGrader"][];
  project: string;
}

function GraderTable({ graders, project }: GraderTableProps) {
  return (
    <div className="scrolls">
      <table className="overview-table">
        <thead>
          <tr>
            <th>Grader</th>
            <th>Kind</th>
            <th className="number">Version</th>
            <th>Agreement with people</th>
            <th className="number">Last used</th>
          </tr>
        </thead>
        <tbody>
          {graders.map((grader) => (
            <tr key={grader.key}>
              <td className="name">
                <Link
                  to={`/p/${encodeURIComponent(project)}/graders/${encodeURIComponent(grader.key)}`}
                >
                  {grader.key}
                </Link>
                {grader.name && grader.name !== grader.key && (
                  <span className="below">{grader.name}</span>
                )}
              </td>
              <td>{KIND_TITLES[grader.latest.kind] ?? grader.latest.kind}</td>
              <td className="number">
                {grader.latest.number}
                {grader.locked && <span className="below">locked</span>}
              </td>
              <td>
                <Agreement card={grader.calibration} />
              </td>
              <td className="number soft">{moment(grader.use.last_used_at)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Agreement({ card }: { card: Schemas["Calibration"] | null }) {
  if (!card) return <span className="soft">never calibrated</span>;
  return card.stale ? <Outcome state="error" text={card.line} /> : card.line;
}
