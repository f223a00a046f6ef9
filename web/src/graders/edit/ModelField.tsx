import { useId } from "react";
import { $api } from "../../api/client";
import { useMay, useProject } from "../../api/me";
import { Pick } from "../../parts/Choice";
import { Field, useTied } from "../../parts/Field";
import type { MemberProps } from "../../parts/schema";

const SOURCES: Record<string, string> = {
  used: "used by other graders",
  default: "the default",
  settings: "from the settings",
};

/** The model that judges: those that are known here, or any other. */
export function ModelField({ value, onChange, path }: MemberProps) {
  const id = useId();
  const project = useProject();
  const known = $api.useQuery(
    "get",
    "/api/v1/projects/{project}/judge-models",
    { params: { path: { project } } },
    { enabled: useMay("editor", project) }, // who only reads one is not told them
  );
  const models = known.data?.models ?? [];
  const usual = models.find((one) => one.source === "default")?.name ?? "";
  const given = typeof value === "string" ? value : "";
  const chosen = models.find((one) => one.name === (given || usual));
  return (
    <Field
      id={id}
      label="Model"
      path={path}
      about="A name from the settings file of this server, or `anthropic:`, `openai:`, `google:` and the model's name."
    >
      <Pick
        {...useTied(id, path, "told")}
        isFree
        placeholder={usual}
        value={given}
        options={models.map((model) => model.name)}
        note={(name) => SOURCES[models.find((model) => model.name === name)?.source ?? ""]}
        change={(name) => onChange(name || undefined)}
      />
      {chosen?.ready === false && (
        <p className="mt-1 mb-0 text-error">
          The key of this model is not set where the server runs.
        </p>
      )}
    </Field>
  );
}
