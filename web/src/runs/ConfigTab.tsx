import { $api, type Schemas } from "../api/client";
import { Command } from "../parts/Command";
import { count, whole } from "../parts/figures";
import { Panel } from "../parts/Panel";
import { Commands } from "./Commands";

/** Most of a configuration that is shown: a job of many tasks keeps all of them in it. */
const MOST = 100_000;

/** All that decided what was run, and what can be done with it on the command line. */
export function ConfigTab({ told }: { told: Schemas["RunOverview"] }) {
  const { run, mixed } = told;
  const { data: record } = $api.useSuspenseQuery("get", "/api/v1/runs/{run}", {
    params: { path: { run: run.id } },
  });
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
    <div className="grid gap-10 lg:grid-cols-[minmax(0,2fr)_minmax(0,3fr)]">
      <Panel title="Commands">
        <Commands rows={commands} />
      </Panel>
      <Panel title="What was run">
        <p className="mt-0 text-soft">
          {whole(record.planned)} cells planned
          {cases > 0 && `, ${count(cases, "case")} as they were then, by their digests`}
          {record.assay && `, with assay ${record.assay}`}.
        </p>
        <pre
          className="max-h-[70vh] overflow-auto rounded-md bg-sunk p-3 whitespace-pre-wrap wrap-anywhere"
          tabIndex={0}
        >
          {text.slice(0, MOST)}
        </pre>
        {text.length > MOST && (
          <p className="flex flex-wrap items-center gap-2">
            {whole(text.length - MOST)} characters more. All of it:
            <Command text={`assay runs export ${run.id}`} />
          </p>
        )}
        {mixed.length > 0 && (
          <p>
            Graded by different versions of their graders: <code>{mixed.join(", ")}</code>
          </p>
        )}
      </Panel>
    </div>
  );
}
