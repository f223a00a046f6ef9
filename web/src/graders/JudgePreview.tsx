import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api, ask, type Schemas } from "../api/client";
import type { JsonObject } from "../parts/json";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";

type Preview = Schemas["JudgePreview"];

/** What the judge would be sent about a sample, while its definition is written. */
export function JudgePreview({ project, definition }: PreviewProps) {
  const [sample, setSample] = useState({ question: "", answer: "" });
  const wanted = useSettled(JSON.stringify({ definition, sample }), 250);
  const preview = useQuery({
    queryKey: ["judge-preview", project, wanted],
    queryFn: ({ signal }) =>
      ask(
        api.POST("/api/v1/projects/{project}/grader-kinds/binary_judge/preview", {
          params: { path: { project } },
          body: bodyOf(wanted),
          signal,
        }),
      ),
    placeholderData: (before) => before,
  });
  return (
    <section className="panel preview" aria-label="Preview of the prompt">
      <h2>What the judge is sent</h2>
      <div className="sample">
        {(["question", "answer"] as const).map((name) => (
          <label key={name}>
            <span>{name === "question" ? "Question to try" : "Answer to try"}</span>
            <textarea
              className="grows"
              rows={1}
              placeholder={name === "question" ? "What is 2 + 2?" : "4"}
              value={sample[name]}
              onChange={(event) => setSample({ ...sample, [name]: event.target.value })}
            />
          </label>
        ))}
      </div>
      {preview.error && <ProblemBox problem={preview.error} retry={() => preview.refetch()} />}
      {preview.isPending && <Loading what="Rendering" />}
      {preview.data && <Shown preview={withoutUnsaid(preview.data, definition)} />}
    </section>
  );
}

export function Shown({ preview }: { preview: Preview }) {
  return (
    <>
      {preview.mistakes.length > 0 && (
        <ul className="mistakes" aria-live="polite">
          {preview.mistakes.map((one) => (
            <li
              key={`${one.field} ${one.line} ${one.message}`}
              className={one.warning ? "warning" : "wrong"}
            >
              <span aria-hidden="true">{one.warning ? "△" : "✗"}</span>{" "}
              {one.field && <code>{one.field}</code>}
              {one.line !== null && <strong> line {one.line}</strong>}
              {one.field && ": "}
              {one.message}
              {one.hint && <span className="soft"> – {one.hint}</span>}
            </li>
          ))}
        </ul>
      )}
      {preview.user ? (
        <>
          <h3>User</h3>
          <Prompt text={preview.user} label="User prompt" />
          <details className="folded">
            <summary>System prompt</summary>
            <Prompt text={preview.system} label="System prompt" />
          </details>
        </>
      ) : (
        <p className="soft">The prompt is shown when the templates are right.</p>
      )}
      <details className="folded">
        <summary>
          Variables <span className="soft">{preview.variables.length}</span>
        </summary>
        <table className="variables">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Here</th>
            </tr>
          </thead>
          <tbody>
            {preview.variables.map((one) => (
              <tr key={one.name}>
                <td>
                  <code>{`{{${one.name}}}`}</code>
                  <div className="soft">
                    {one.used && "used"}
                    {one.used && one.fence && ", "}
                    {one.fence && "fenced"}
                  </div>
                </td>
                <td>
                  <pre className="value">{one.value || " "}</pre>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </>
  );
}

/** A criterion that nobody has written yet is no mistake to be told of. */
function withoutUnsaid(preview: Preview, definition: JsonObject): Preview {
  if (definition.criteria) return preview;
  return { ...preview, mistakes: preview.mistakes.filter((one) => one.field !== "criteria") };
}

/** A prompt, with what comes from outside set apart. */
function Prompt({ text, label }: { text: string; label: string }) {
  const parts = text.split(/(<untrusted [^\n]*>\n[\s\S]*?\n<\/untrusted [^\n]*>)/);
  return (
    <section className="prompt" aria-label={label} tabIndex={0}>
      {parts.map((part, place) =>
        // biome-ignore lint/suspicious/noArrayIndexKey: parts of one text have no other name
        place % 2 ? <mark key={place}>{part}</mark> : <span key={place}>{part}</span>,
      )}
    </section>
  );
}

function bodyOf(wanted: string): Schemas["PreviewJudgeBody"] {
  const { definition, sample } = JSON.parse(wanted) as {
    definition: JsonObject;
    sample: { question: string; answer: string };
  };
  const isGiven = sample.question !== "" || sample.answer !== "";
  return { definition, samples: isGiven ? [sample] : [] } as Schemas["PreviewJudgeBody"];
}

/** A value once it has not changed for a while. */
function useSettled<T>(value: T, milliseconds: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(value), milliseconds);
    return () => window.clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}

interface PreviewProps {
  project: string;
  definition: JsonObject;
}
