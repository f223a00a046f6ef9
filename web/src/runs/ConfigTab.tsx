import { useQuery } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../api/client";
import { Command } from "../parts/Command";
import { whole } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";

/** Most of a configuration that is shown: a job of many tasks keeps all of them in it. */
const MOST = 100_000;

/** All that decided what was run, and what can be done with it on the command line. */
export function ConfigTab({ told }: { told: Schemas["RunOverview"] }) {
  const run = told.run.id;
  const record = useQuery({
    queryKey: ["run", run, "record"],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/runs/{run}", { signal, params: { path: { run } } })),
  });
  if (record.error) return <ProblemBox problem={record.error} retry={() => record.refetch()} />;
  if (!record.data) return <Loading what="Loading the configuration" />;
  return <Config told={told} record={record.data} />;
}

export function Config({ told, record }: ConfigProps) {
  const { run } = told;
  const commands: [string, string][] = [
    ["Report", `assay report ${run.id}`],
    ["One file for anybody", `assay report ${run.id} --html report.html`],
    ["Compare with the newest", `assay compare ${run.id} latest`],
    ["Grade again", `assay regrade ${run.id}`],
    ["Export", `assay runs export ${run.id}`],
  ];
  if (run.kind === "matrix") {
    commands.unshift(["Go on; errors again", `assay run --resume ${run.id}`]);
  }
  const text = JSON.stringify(record.config, null, 2);
  const cases = Object.keys(record.digests).length;
  return (
    <div className="config">
      <section aria-labelledby="commands">
        <h2 id="commands">Commands</h2>
        <dl className="commands">
          {commands.map(([name, command]) => (
            <div key={name} className="line">
              <dt>{name}</dt>
              <dd>
                <Command text={command} />
              </dd>
            </div>
          ))}
        </dl>
      </section>
      <section aria-labelledby="config">
        <h2 id="config">What was run</h2>
        <p className="soft">
          {whole(record.planned)} cells planned
          {cases > 0 && `, ${whole(cases)} cases as they were then, by their digests`}
          {record.assay && `, with assay ${record.assay}`}.
        </p>

        <pre className="panel" tabIndex={0}>
          {text.slice(0, MOST)}
        </pre>
        {text.length > MOST && (
          <p className="row">
            {whole(text.length - MOST)} characters more. All of it:
            <Command text={`assay runs export ${run.id}`} />
          </p>
        )}
        {told.mixed.length > 0 && (
          <p>
            Graded by different versions of their graders: <code>{told.mixed.join(", ")}</code>
          </p>
        )}
      </section>
    </div>
  );
}

interface ConfigProps {
  told: Schemas["RunOverview"];
  record: Schemas["RunRecord"];
}
