import { useQuery } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../api/client";
import { CodeView } from "../parts/CodeView";
import { isObject, type JsonObject } from "../parts/json";
import { Loading } from "../parts/Loading";
import { labelOf } from "../parts/SchemaForm";
import { ConnectionTest } from "./ConnectionTest";
import { Shown } from "./JudgePreview";

/** What a version is: its source, its prompt, its options. */
export function DefinitionView({ project, version }: DefinitionProps) {
  const definition = version.definition as JsonObject;
  const { source, graders, examples, criteria, ...options } = definition;
  return (
    <section className="panel stack" aria-label="Definition">
      {typeof source === "string" && (
        <div>
          <h2>Source</h2>
          <CodeView text={source} language="python" label="Source" />
        </div>
      )}
      {typeof criteria === "string" && (
        <div>
          <h2>Criterion</h2>
          <p className="criterion">{criteria}</p>
        </div>
      )}
      {Array.isArray(graders) && (
        <div>
          <h2>Graders</h2>
          {graders.filter(isObject).map((grader, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a declaration is known by its place
            <Declared key={place} grader={grader} />
          ))}
        </div>
      )}
      {Object.keys(options).length > 0 && (
        <div>
          <h2>Options</h2>
          <Options options={options} />
        </div>
      )}
      {Array.isArray(examples) && examples.length > 0 && (
        <details className="folded">
          <summary>
            Few-shot examples <span className="soft">{examples.length}</span>
          </summary>
          <CodeView text={JSON.stringify(examples, null, 2)} language="json" label="Examples" />
        </details>
      )}
      {version.kind === "binary_judge" && <Prompt project={project} definition={definition} />}
      {version.kind === "external_endpoint" && (
        <ConnectionTest project={project} definition={definition} />
      )}
      {Object.keys(definition).length === 0 && (
        <p className="soft">
          It has no code: programs and people write its scores, by <code>POST …/scores</code>.
        </p>
      )}
    </section>
  );
}

function Declared({ grader }: { grader: JsonObject }) {
  const { type, name, weight, gate, ...options } = grader;
  return (
    <div className="declared">
      <div className="row">
        <code className="kind">{String(type)}</code>
        {name !== undefined && <span>{String(name)}</span>}
        {gate === true ? (
          <span className="badge">gate</span>
        ) : (
          <span className="soft">weight {String(weight ?? 1)}</span>
        )}
      </div>
      {Object.keys(options).length > 0 && <Options options={options} />}
    </div>
  );
}

function Options({ options }: { options: JsonObject }) {
  return (
    <dl className="options-list">
      {Object.entries(options).map(([name, value]) => (
        <div key={name}>
          <dt>{labelOf(name)}</dt>
          <dd>
            {typeof value === "string" ? (
              <pre>{value}</pre>
            ) : (
              <pre>{JSON.stringify(value, null, isObject(value) ? 2 : undefined)}</pre>
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** What a judge is sent about a sample. */
function Prompt({ project, definition }: { project: string; definition: JsonObject }) {
  const preview = useQuery({
    queryKey: ["judge-preview", project, JSON.stringify(definition)],
    queryFn: ({ signal }) =>
      ask(
        api.POST("/api/v1/projects/{project}/grader-kinds/binary_judge/preview", {
          params: { path: { project } },
          body: { definition, samples: [] } as Schemas["PreviewJudgeBody"],
          signal,
        }),
      ),
  });
  return (
    <div>
      <h2>What the judge is sent about a sample</h2>
      {preview.isPending && <Loading what="Rendering" />}
      {preview.data && <Shown preview={preview.data} />}
    </div>
  );
}

interface DefinitionProps {
  project: string;
  version: Schemas["GraderVersion"];
}
