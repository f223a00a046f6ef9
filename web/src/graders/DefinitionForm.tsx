import type { JsonObject } from "../parts/json";
import { type Schema, SchemaForm } from "../parts/SchemaForm";
import { EndpointForm } from "./EndpointForm";
import { JudgeForm } from "./JudgeForm";
import { ModelField } from "./ModelField";
import type { Kinds } from "./queries";

/** The fields of a definition, as its kind is best written. */
export function DefinitionForm(props: DefinitionProps) {
  const { project, kinds, kind, value, onChange } = props;
  const found = kinds.kinds.find((one) => one.name === kind);
  const schema = (found?.form ?? {}) as Schema;
  if (kind === "binary_judge") {
    return <JudgeForm project={project} schema={schema} value={value} onChange={onChange} />;
  }
  if (kind === "external_endpoint") {
    return <EndpointForm project={project} schema={schema} value={value} onChange={onChange} />;
  }
  if (kind === "prebuilt_judge") {
    return <PrebuiltForm project={project} schema={schema} value={value} onChange={onChange} />;
  }
  const wanted = kind === "declared" ? withKinds(schema, kinds) : schema;
  return (
    <section className="panel">
      <SchemaForm
        schema={wanted}
        value={value}
        onChange={onChange}
        path="definition"
        first={FIRST[kind] ?? []}
      />
    </section>
  );
}

const FIRST: Record<string, string[]> = {
  custom: ["path", "description"],
  declared: ["threshold"],
  function: ["source"],
};

/** The schema of a definition that declares graders, with every kind that it may declare. */
function withKinds(schema: Schema, kinds: Kinds): Schema {
  const graders = schema.properties?.graders ?? {};
  const oneOf = kinds.declared.map((kind) => ({
    ...(kind.form as Schema),
    description: kind.needs.length
      ? `${kind.description} It needs a ${kind.needs.join(" and a ")}, which rows of datasets do not have.`
      : kind.description,
  }));
  return {
    ...schema,
    properties: { ...schema.properties, graders: { ...graders, items: { oneOf } } },
  };
}

const PROCEDURES = [
  [
    "FAITHFULNESS",
    "Faithfulness",
    "Claims of the answer that the documents support / all claims. Documents are turns with the role document.",
  ],
  [
    "CONTEXT_RELEVANCY",
    "Context relevancy",
    "Documents that matter to the question / all documents.",
  ],
  [
    "ANSWER_RELEVANCY",
    "Answer relevancy",
    "Claims that answer the question / all claims: what nobody asked for lowers it.",
  ],
] as const;

function PrebuiltForm({ project, schema, value, onChange }: KindProps) {
  return (
    <section className="panel fields">
      <fieldset className="options">
        <legend className="label">Procedure</legend>
        {PROCEDURES.map(([name, title, told]) => (
          <label key={name} className="option">
            <input
              type="radio"
              name="procedure"
              checked={value.type === name}
              onChange={() => onChange({ ...value, type: name })}
            />
            <span>
              <strong>{title}</strong>
              <span className="soft">{told}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <ModelField project={project} value={value} onChange={onChange} />
      <SchemaForm
        schema={schema}
        value={value}
        onChange={onChange}
        path="definition"
        omit={["type", "judge_model"]}
      />
    </section>
  );
}

export interface KindProps {
  project: string;
  schema: Schema;
  value: JsonObject;
  onChange: (value: JsonObject) => void;
}

interface DefinitionProps {
  project: string;
  kinds: Kinds;
  kind: string;
  value: JsonObject;
  onChange: (value: JsonObject) => void;
}
