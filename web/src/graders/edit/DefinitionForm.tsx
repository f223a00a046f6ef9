import type { JsonObject } from "../../parts/json";
import { SchemaForm } from "../../parts/SchemaForm";
import type { Schema } from "../../parts/schema";
import type { Kinds } from "../queries";
import { Examples } from "./Examples";
import { ModelField } from "./ModelField";
import { useMetadataKeys } from "./metadata";
import { Procedures } from "./Procedures";

const SHOWN = { isShown: true };

/** How members of a kind's definition are best written, beside what its schema says of them. */
const HINTS: Record<string, Record<string, Schema>> = {
  binary_judge: {
    criteria: {
      label: "Criterion",
      rows: 3,
      description:
        "What makes an answer pass, in plain words. One thing, that two people would decide alike.",
      placeholder: "The response directly answers the question, without going off topic.",
    },
    judge_model: { ...SHOWN, control: ModelField },
    examples: { ...SHOWN, control: Examples },
    user_template: {
      rows: 8,
      isCode: true,
      description:
        "Handlebars. Without one, the question and the answer are shown in assay's words. Whatever comes from outside is fenced; the criterion and the form of the reply stand last.",
    },
    system_template: {
      rows: 3,
      isCode: true,
      description: "Handlebars. Stands behind what every judge is told.",
    },
  },
  prebuilt_judge: {
    type: { control: Procedures },
    judge_model: { ...SHOWN, control: ModelField },
  },
  external_endpoint: {
    url: { label: "URL" },
    protocol: SHOWN,
    secret_env: SHOWN,
    auth: SHOWN,
    range: SHOWN,
    allow_internal: SHOWN,
  },
  custom: { path: SHOWN, description: SHOWN },
  declared: { threshold: SHOWN },
  function: { range: { default: [0, 1] } },
};

/** The fields of a definition, as its kind is best written; a function's source stands elsewhere. */
export function DefinitionForm({ project, kinds, kind, value, onChange }: DefinitionProps) {
  const keys = useMetadataKeys(project);
  const found = kinds.kinds.find((one) => one.name === kind);
  const form = (found?.form ?? {}) as Schema;
  return (
    <SchemaForm
      schema={hinted(kind === "declared" ? withKinds(form, kinds, keys) : form, HINTS[kind] ?? {})}
      value={value}
      onChange={onChange}
      path="definition"
      omit={kind === "function" ? ["source"] : []}
    />
  );
}

/** A schema with hints to its members; those that have one come first. */
function hinted(schema: Schema, hints: Record<string, Schema>): Schema {
  const given = schema.properties ?? {};
  const first = Object.entries(hints).map(([name, hint]) => [name, { ...given[name], ...hint }]);
  return { ...schema, properties: { ...Object.fromEntries(first), ...without(given, hints) } };
}

function without(all: Record<string, Schema>, those: object): Record<string, Schema> {
  return Object.fromEntries(Object.entries(all).filter(([name]) => !(name in those)));
}

/** The schema of a definition that declares graders, with every kind that it may declare. */
function withKinds(schema: Schema, kinds: Kinds, keys: readonly string[]): Schema {
  const graders = schema.properties?.graders ?? {};
  const fromRow = ["expected", "question", ...keys.map((key) => `metadata.${key}`)];
  const oneOf = kinds.declared.map(({ form, needs, description, from_rows: options }) => {
    const written = (form as Schema).properties ?? {};
    const given = options.map((name) => [name, { ...written[name], fromRow }]);
    return {
      ...(form as Schema),
      properties: { ...written, ...Object.fromEntries(given) },
      description: needs.length
        ? `${description} It needs a ${needs.join(" and a ")}, which rows of datasets do not have.`
        : description,
    };
  });
  return {
    ...schema,
    properties: { ...schema.properties, graders: { ...graders, items: { oneOf } } },
  };
}

interface DefinitionProps {
  project: string;
  kinds: Kinds;
  kind: string;
  value: JsonObject;
  onChange: (value: JsonObject) => void;
}
