import { $api, type Schemas } from "../api/client";
import { CodeView } from "../parts/CodeView";
import { Disclosure } from "../parts/Disclosure";
import { isFrom, isObject, type Json, type JsonObject } from "../parts/json";
import { Badge, Named } from "../parts/Page";
import { Panel } from "../parts/Panel";
import { labelOf } from "../parts/schema";
import { ConnectionTest } from "./ConnectionTest";
import { Preview } from "./JudgePreview";

/** What a version is: its source, its prompt, its options. */
export function DefinitionView({ project, version }: DefinitionProps) {
  const definition = version.definition as JsonObject;
  const { source, graders, examples, criteria, ...options } = definition;
  return (
    <>
      <Panel title={TITLES[version.kind] ?? "Definition"}>
        <div className="grid gap-5">
          {typeof source === "string" && (
            <CodeView text={source} language="python" label="Source" />
          )}
          {typeof criteria === "string" && (
            <p className="m-0 max-h-80 overflow-auto text-lg whitespace-pre-wrap wrap-anywhere">
              {criteria}
            </p>
          )}
          {Array.isArray(graders) &&
            graders.filter(isObject).map((grader, place) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a declaration is known by its place
              <Declared key={place} grader={grader} />
            ))}
          <Options options={options} />
          {Array.isArray(examples) && examples.length > 0 && (
            <Disclosure head={`Few-shot examples: ${examples.length}`}>
              {() => (
                <CodeView
                  text={JSON.stringify(examples, null, 2)}
                  language="json"
                  label="Examples"
                />
              )}
            </Disclosure>
          )}
          {Object.keys(definition).length === 0 && (
            <p className="m-0 text-soft">
              It has no code: programs and people write its scores, by <code>POST …/scores</code>.
            </p>
          )}
        </div>
      </Panel>
      {version.kind === "binary_judge" && (
        <Panel title="What the judge is sent about a sample" what="Rendering">
          <Prompt project={project} definition={definition} />
        </Panel>
      )}
      {version.kind === "external_endpoint" && (
        <ConnectionTest project={project} definition={definition} />
      )}
    </>
  );
}

const TITLES: Record<string, string> = {
  function: "Source",
  binary_judge: "Criterion",
  declared: "Graders",
};

function Declared({ grader }: { grader: JsonObject }) {
  const { type, name, weight, gate, ...options } = grader;
  return (
    <div className="rounded-lg bg-sunk p-4">
      <p className="m-0 flex flex-wrap items-center gap-3">
        <code className="font-semibold">{String(type)}</code>
        {name !== undefined && <span>{String(name)}</span>}
        {gate === true ? (
          <Badge>gate</Badge>
        ) : (
          <span className="text-soft">weight {String(weight ?? 1)}</span>
        )}
      </p>
      <Options options={options} />
    </div>
  );
}

function Options({ options }: { options: JsonObject }) {
  const rows = Object.entries(options).map(
    ([name, value]) => [labelOf(name), shown(value)] as const,
  );
  return rows.length > 0 && <Named rows={rows} />;
}

function shown(value: Json) {
  if (isFrom(value)) {
    return (
      <>
        <span className="text-soft">from the row:</span> <code>{String(value.from)}</code>
      </>
    );
  }
  const text =
    typeof value === "string"
      ? value
      : JSON.stringify(value, null, isObject(value) ? 2 : undefined);
  return <pre className="m-0 max-h-80 overflow-auto whitespace-pre-wrap wrap-anywhere">{text}</pre>;
}

/** What a judge is sent about a sample. */
function Prompt({ project, definition }: { project: string; definition: JsonObject }) {
  const preview = $api.useSuspenseQuery(
    "post",
    "/api/v1/projects/{project}/grader-kinds/binary_judge/preview",
    { params: { path: { project } }, body: { definition, samples: [] } },
  ).data;
  return <Preview preview={preview} />;
}

interface DefinitionProps {
  project: string;
  version: Schemas["GraderVersion"];
}
