import { keepPreviousData } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { $api, type Schemas } from "../api/client";
import { Disclosure } from "../parts/Disclosure";
import type { JsonObject } from "../parts/json";
import { Loading } from "../parts/Loading";
import { Panel } from "../parts/Panel";
import { ProblemBox } from "../parts/ProblemBox";
import { Table } from "../parts/Table";
import { TextField } from "../parts/TextField";
import { Titled } from "../parts/Titled";

type Shown = Schemas["JudgePreview"];

/** What the judge would be sent about a sample, while its definition is written. */
export function JudgePreview({ project, definition }: PreviewProps) {
  const [question, setQuestion] = useState("");
  const [answer, setAnswer] = useState("");
  const samples = question || answer ? [{ question, answer }] : [];
  const body = useSettled({ definition, samples }, 250) as Schemas["PreviewJudgeBody"];
  const preview = $api.useQuery(
    "post",
    "/api/v1/projects/{project}/grader-kinds/binary_judge/preview",
    { params: { path: { project } }, body },
    { placeholderData: keepPreviousData },
  );
  return (
    <Panel title="What the judge is sent">
      <div className="mb-4 grid gap-3 sm:grid-cols-2">
        <TextField
          label="Question to try"
          lines={1}
          placeholder="What is 2 + 2?"
          value={question}
          change={setQuestion}
        />
        <TextField
          label="Answer to try"
          lines={1}
          placeholder="4"
          value={answer}
          change={setAnswer}
        />
      </div>
      {preview.error && <ProblemBox problem={preview.error} retry={() => preview.refetch()} />}
      {preview.isPending && <Loading what="Rendering" />}
      {preview.data && <Preview preview={withoutUnsaid(preview.data, definition)} />}
    </Panel>
  );
}

export function Preview({ preview }: { preview: Shown }) {
  return (
    <>
      {preview.mistakes.length > 0 && (
        <ul className="mb-3 grid gap-1 wrap-anywhere" aria-live="polite">
          {preview.mistakes.map((one) => (
            <li
              key={`${one.field} ${one.line} ${one.message}`}
              className={one.warning ? "text-error" : "text-fail"}
            >
              <span aria-hidden="true">{one.warning ? "△" : "✗"}</span>{" "}
              {one.field && <code>{one.field}</code>}
              {one.line !== null && <strong> line {one.line}</strong>}
              {one.field && ": "}
              {one.message}
              {one.hint && <span className="text-soft"> – {one.hint}</span>}
            </li>
          ))}
        </ul>
      )}
      {preview.user ? (
        <>
          <Titled title="User">
            <Prompt text={preview.user} label="User prompt" />
          </Titled>
          <Disclosure head="System prompt">
            {() => <Prompt text={preview.system} label="System prompt" />}
          </Disclosure>
        </>
      ) : (
        <p className="text-soft">The prompt is shown when the templates are right.</p>
      )}
      <Disclosure head={`Variables: ${preview.variables.length}`}>
        {() => (
          <Table
            label="Variables"
            items={preview.variables}
            keyOf={(one) => one.name}
            columns={[
              {
                name: "Name",
                kind: "name",
                show: (one) => <code>{`{{${one.name}}}`}</code>,
                below: (one) =>
                  [one.used && "used", one.fence && "fenced"].filter(Boolean).join(", "),
              },
              {
                name: "Here",
                show: (one) => (
                  <pre className="m-0 max-h-20 overflow-auto whitespace-pre-wrap wrap-anywhere">
                    {one.value || " "}
                  </pre>
                ),
              },
            ]}
          />
        )}
      </Disclosure>
    </>
  );
}

/** A criterion that nobody has written yet is no mistake to be told of. */
function withoutUnsaid(preview: Shown, definition: JsonObject): Shown {
  if (definition.criteria) return preview;
  return { ...preview, mistakes: preview.mistakes.filter((one) => one.field !== "criteria") };
}

/** A prompt, with what comes from outside set apart. */
function Prompt({ text, label }: { text: string; label: string }) {
  const parts = text.split(/(<untrusted [^\n]*>\n[\s\S]*?\n<\/untrusted [^\n]*>)/);
  return (
    <section
      aria-label={label}
      tabIndex={0}
      className="max-h-105 overflow-auto rounded-md bg-sunk px-3 py-2.5 font-mono text-[12.5px] leading-5 whitespace-pre-wrap wrap-anywhere"
    >
      {parts.map((part, place) =>
        place % 2 ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts of one text have no other name
          <mark key={place} className="-mx-1.5 block bg-accent-soft px-1.5 text-ink">
            {part}
          </mark>
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts of one text have no other name
          <span key={place}>{part}</span>
        ),
      )}
    </section>
  );
}

/** A value once it has not changed for a while. */
function useSettled<T>(value: T, milliseconds: number): T {
  const [settled, setSettled] = useState(value);
  const text = JSON.stringify(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(JSON.parse(text) as T), milliseconds);
    return () => window.clearTimeout(timer);
  }, [text, milliseconds]);
  return settled;
}

interface PreviewProps {
  project: string;
  definition: JsonObject;
}
