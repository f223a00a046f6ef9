import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { api, ask } from "../../api/client";
import { useMay, useProject } from "../../api/me";
import { Field, useTied } from "../../parts/Field";
import type { MemberProps } from "../../parts/SchemaForm";

/** The model that judges: those that are known here, or any other. */
export function ModelField({ value, onChange, path }: MemberProps) {
  const id = useId();
  const project = useProject();
  const known = useQuery({
    queryKey: ["judge-models", project],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/judge-models", {
          params: { path: { project } },
          signal,
        }),
      ),
    enabled: useMay("editor", project), // who only reads one is not told them
  });
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
      <input
        {...useTied(id, path, "told")}
        list={`${id}-known`}
        placeholder={usual}
        spellCheck={false}
        value={given}
        onChange={(event) => onChange(event.target.value || undefined)}
      />
      <datalist id={`${id}-known`}>
        {models.map((model) => (
          <option key={model.name} value={model.name}>
            {model.source === "used" ? "used by other graders" : `from the ${model.source}`}
          </option>
        ))}
      </datalist>
      {chosen?.ready === false && (
        <p className="notice">The key of this model is not set where the server runs.</p>
      )}
    </Field>
  );
}
