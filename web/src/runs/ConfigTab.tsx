import type { Schemas } from "../api/client";
import { Command } from "../parts/Command";

/** All that decided what was run, and what can be done with it on the command line. */
export function ConfigTab({ told }: { told: Schemas["RunOverview"] }) {
  const { run, config } = told;
  const commands: [string, string][] = [
    ["Report", `assay report ${run.id}`],
    ["One file for anybody", `assay report ${run.id} --html report.html`],
    ["Compare with the newest", `assay compare ${run.id} latest`],
    ["Grade again", `assay regrade ${run.id}`],
    ["Export", `assay runs export ${run.id}`],
  ];
  if (run.kind === "matrix")
    commands.splice(0, 0, ["Go on, errors again", `assay run --resume ${run.id}`]);
  return (
    <div className="config">
      <section aria-labelledby="commands">
        <h2 id="commands">Commands</h2>
        <dl className="commands">
          {commands.map(([name, text]) => (
            <div key={name} className="line">
              <dt>{name}</dt>
              <dd>
                <Command text={text} />
              </dd>
            </div>
          ))}
        </dl>
      </section>
      <section aria-labelledby="config">
        <h2 id="config">What was run</h2>
        <pre className="panel" tabIndex={0}>
          {JSON.stringify(config, null, 2)}
        </pre>
        {told.mixed.length > 0 && (
          <p>
            Graded by different versions of their graders: <code>{told.mixed.join(", ")}</code>
          </p>
        )}
      </section>
    </div>
  );
}
