import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { api, ask } from "../api/client";
import { Field, useTied } from "../parts/Field";
import { type JsonObject, withMember } from "../parts/json";

const PATH = "definition.judge_model";

/** The model that judges: those that are known here, or any other. */
export function ModelField({ project, value, onChange }: ModelProps) {
  const id = useId();
  const known = useQuery({
    queryKey: ["judge-models", project],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/judge-models", {
          params: { path: { project } },
          signal,
        }),
      ),
  });
  const models = known.data?.models ?? [];
  const usual = models.find((one) => one.source === "default")?.name ?? "";
  const given = typeof value.judge_model === "string" ? value.judge_model : "";
  const chosen = models.find((one) => one.name === (given || usual));
  return (
    <Field
      id={id}
      label="Model"
      path={PATH}
      about="A name from the settings file of this server, or `anthropic:`, `openai:`, `google:` and the model's name."
    >
      <input
        {...useTied(id, PATH, "told")}
        list={`${id}-known`}
        placeholder={usual}
        spellCheck={false}
        value={given}
        onChange={(event) =>
          onChange(withMember(value, "judge_model", event.target.value || undefined))
        }
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

interface ModelProps {
  project: string;
  value: JsonObject;
  onChange: (value: JsonObject) => void;
}
