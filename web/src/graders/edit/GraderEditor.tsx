import { Suspense, useEffect, useId, useRef } from "react";
import { Link, useSearchParams } from "react-router";
import { Problem } from "../../api/problem";
import { Faults } from "../../parts/Field";
import type { JsonObject } from "../../parts/json";
import { Loading } from "../../parts/Loading";
import { later } from "../../parts/later";
import { ProblemBox } from "../../parts/ProblemBox";
import { ConnectionTest } from "../ConnectionTest";
import { JudgePreview } from "../JudgePreview";
import type { Grader, Kinds } from "../queries";
import { About } from "./About";
import { Conflict } from "./Conflict";
import { DefinitionForm } from "./DefinitionForm";
import { Leaving } from "./Leaving";
import { SourceField, type SourceFieldHandle } from "./SourceField";
import { META, type PayloadHandle, TestPayload } from "./TestPayload";
import { type Definition, tryDraft } from "./trial";
import { useDraft } from "./useDraft";
import "../graders.css";
import "./edit.css";

const CompareView = later(() => import("./CompareView"));

/** What stands beside the form of a kind. */
const BESIDE: Record<string, React.ComponentType<{ project: string; definition: JsonObject }>> = {
  binary_judge: JudgePreview,
  external_endpoint: ConnectionTest,
};

/** The editor of a grader of any kind, with its test payload beside it. */
export function GraderEditor({ project, kinds, kind, grader, start, slot }: EditorProps) {
  const written = useDraft({ project, kind, grader, start, slot });
  const { base, draft, stored, theirs, save, isDirty, isReadOnly, change, reset } = written;
  const definition = draft.definition as Definition;
  const [query, setQuery] = useSearchParams();
  const form = useRef<HTMLFormElement>(null);
  const source = useRef<SourceFieldHandle>(null);
  const payload = useRef<PayloadHandle>(null);
  const id = useId();
  const isFunction = kind === "function";
  const title = kinds.kinds.find((one) => one.name === kind)?.title ?? kind;
  const Beside = BESIDE[kind];

  const submit = () => {
    if (!isDirty || save.isPending) return;
    save.mutate(written.number, {
      onError: (error) => {
        // A function may fail only when it is run, which is not done as one types.
        if (!isFunction || !(error instanceof Problem) || error.status !== 422) return;
        tryDraft(project, kind, definition, {}).then(
          (trial) => source.current?.found(trial, definition),
          () => {},
        );
      },
    });
  };
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const isOpen = document.querySelector("dialog[open], [role=dialog]") !== null;
      if (!(event.metaKey || event.ctrlKey) || isOpen) return;
      if (event.key === "s") form.current?.requestSubmit();
      else if (event.key === "Enter") payload.current?.run();
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);

  const isComparing = base !== null && query.get("view") === "changes";
  const compare = () =>
    setQuery((before) => {
      const { view: _, ...rest } = Object.fromEntries(before);
      return new URLSearchParams(isComparing ? rest : { ...rest, view: "changes" });
    });
  const jump = (line: number) => {
    if (isComparing) compare();
    window.setTimeout(() => source.current?.jump(line));
  };
  const isConflict = save.error instanceof Problem && save.error.status === 412;
  const faults = save.error instanceof Problem ? save.error.faults : [];

  return (
    <div className="page editor-page">
      <div className="page-head">
        <h1>
          {base ? (
            <>
              <Link to={`/p/${project}/graders/${base.key}`}>{base.key}</Link>{" "}
              <span className="soft">version {base.latest.number}</span>
            </>
          ) : (
            `New ${title} grader`
          )}
        </h1>
        <div className="row">
          <span className="soft" role="status">
            {written.said}
          </span>
          {base && (
            <button type="button" aria-pressed={isComparing} onClick={compare}>
              Changes
            </button>
          )}
          {isDirty && (
            <button type="button" onClick={() => reset(base)}>
              Discard
            </button>
          )}
          <button type="submit" form={id} className="primary" disabled={!isDirty || save.isPending}>
            {base ? "Save" : "Create grader"} <kbd aria-hidden="true">{META}S</kbd>
          </button>
        </div>
      </div>
      {isReadOnly && (
        <p className="panel notice">
          {written.isLocked
            ? "This grader is locked: it is shown as it is stored. Whoever may edit it can unlock it on its page."
            : base
              ? "You may read this grader; changing it needs the role editor."
              : "Storing a grader needs the role editor."}
        </p>
      )}
      {written.isRestored && (
        <p className="panel notice">
          These are changes that you had not saved. <strong>Discard</strong> brings back what is
          stored.
        </p>
      )}
      {save.error && !save.isPending && !isConflict && <ProblemBox problem={save.error} />}
      <Faults.Provider value={faults}>
        <div className="editor-split">
          <form
            id={id}
            ref={form}
            className="stack"
            onSubmit={(event) => {
              event.preventDefault();
              submit();
            }}
          >
            <fieldset disabled={isReadOnly} className="plain">
              <About draft={draft} change={change} isNew={base === null} />
            </fieldset>
            <fieldset
              key={written.resets}
              disabled={isReadOnly}
              hidden={isComparing}
              className="plain stack"
            >
              {isFunction && (
                <SourceField
                  ref={source}
                  project={project}
                  definition={draft.definition}
                  change={(text) => change({ definition: { ...draft.definition, source: text } })}
                  isReadOnly={isReadOnly}
                />
              )}
              <DefinitionForm
                kinds={kinds}
                kind={kind}
                value={draft.definition}
                onChange={(changed) => change({ definition: changed })}
              />
            </fieldset>
            {isComparing && (
              <Suspense fallback={<Loading />}>
                <CompareView
                  before={textOf(stored.definition)}
                  after={textOf(draft.definition)}
                  names={[`${base.key}@${base.latest.number}`, "Draft"]}
                />
              </Suspense>
            )}
          </form>
          <div className="stack">
            {Beside && <Beside project={project} definition={draft.definition} />}
            {kind !== "custom" && (
              <TestPayload
                ref={payload}
                project={project}
                kind={kind}
                definition={definition}
                savedVersion={base ? { key: base.key, number: base.latest.number } : undefined}
                onTrial={(trial, of) => source.current?.found(trial, of)}
                onLine={isFunction ? jump : undefined}
              />
            )}
          </div>
        </div>
      </Faults.Provider>
      {theirs && (
        <Conflict
          theirs={theirs}
          texts={[textOf(theirs.latest.definition as JsonObject), textOf(draft.definition)]}
          overwrite={() => save.mutate(theirs.latest.number)}
          take={() => reset(theirs)}
          close={written.goOn}
        />
      )}
      <Leaving isDirty={isDirty} discard={() => reset(base)} />
    </div>
  );
}

/** A definition to read and to compare: a function's source, and what else there is as JSON. */
function textOf({ source, ...more }: JsonObject): string {
  const rest = Object.keys(more).length > 0 ? `${JSON.stringify(more, null, 2)}\n` : "";
  return typeof source === "string"
    ? source + (rest && `\n# ${rest.replaceAll("\n", "\n# ")}`)
    : rest;
}

interface EditorProps {
  project: string;
  kinds: Kinds;
  kind: string;
  grader: Grader | null;
  start: JsonObject;
  slot: string;
}
