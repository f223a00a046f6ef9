import { Suspense, useEffect, useId, useRef } from "react";
import { Link } from "react-router";
import { Problem } from "../../api/problem";
import { useAddress } from "../../parts/address";
import { Button } from "../../parts/Button";
import { Faults } from "../../parts/Field";
import { Keys, META } from "../../parts/Hint";
import type { JsonObject } from "../../parts/json";
import { Loading } from "../../parts/Loading";
import { later } from "../../parts/later";
import { Notice, Page, Stack } from "../../parts/Page";
import { ProblemBox } from "../../parts/ProblemBox";
import { ConnectionTest } from "../ConnectionTest";
import { JudgePreview } from "../JudgePreview";
import type { Grader, Kinds } from "../queries";
import { About } from "./About";
import { Conflict } from "./Conflict";
import { DefinitionForm } from "./DefinitionForm";
import { Leaving } from "./Leaving";
import { SourceField, type SourceFieldHandle } from "./SourceField";
import { type PayloadHandle, TestPayload } from "./TestPayload";
import { type Definition, tryDraft } from "./trial";
import { useDraft } from "./useDraft";

const CompareView = later(() => import("./CompareView"));

/** What stands beside the form of a kind. */
const BESIDE: Record<string, React.ComponentType<{ project: string; definition: JsonObject }>> = {
  binary_judge: JudgePreview,
  external_endpoint: ConnectionTest,
};

/** The editor of a grader of any kind, with its test payload beside it. */
export function GraderEditor({ project, kinds, kind, grader, start, slot }: EditorProps) {
  const written = useDraft({ project, kind, grader, start, slot });
  const { base, draft, theirs, save, isDirty, isReadOnly, change, reset } = written;
  const definition = draft.definition as Definition;
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

  const [{ view }, look] = useAddress({ view: "" });
  const isComparing = base !== null && view === "changes";
  const compare = () => look({ view: isComparing ? "" : "changes" }, { isStep: true });
  const jump = (line: number) => {
    if (isComparing) compare();
    window.setTimeout(() => source.current?.jump(line));
  };
  const isConflict = save.error instanceof Problem && save.error.status === 412;
  const faults = save.error instanceof Problem ? save.error.faults : [];

  const graders = <Link to={`/p/${project}/graders`}>Graders</Link>;
  const stored = base && <Link to={`/p/${project}/graders/${base.key}`}>{base.key}</Link>;

  return (
    <Page
      title={base ? `Edit ${base.key}` : `New ${title} grader`}
      crumbs={stored ? [graders, " / ", stored] : graders}
      facts={base && `version ${base.latest.number}`}
      actions={
        <>
          <span className="text-soft empty:hidden" role="status">
            {written.said}
          </span>
          {isDirty && (
            <Button tone="quiet" onPress={() => reset(base)}>
              Discard
            </Button>
          )}
          {base && <Button onPress={compare}>{isComparing ? "Back to editing" : "Changes"}</Button>}
          <Button
            tone="primary"
            type="submit"
            form={id}
            isDisabled={!isDirty}
            isPending={save.isPending}
          >
            {base ? "Save" : "Create grader"} <Keys>{META}S</Keys>
          </Button>
        </>
      }
    >
      {isReadOnly && (
        <Notice>
          {written.isLocked
            ? "This grader is locked: it is shown as it is stored. Whoever may edit it can unlock it on its page."
            : base
              ? "You may read this grader; changing it needs the role editor."
              : "Storing a grader needs the role editor."}
        </Notice>
      )}
      {written.isRestored && (
        <Notice tone="accent">
          These are changes that you had not saved. <strong>Discard</strong> brings back what is
          stored.
        </Notice>
      )}
      {save.error && !save.isPending && !isConflict && <ProblemBox problem={save.error} />}
      <Faults.Provider value={faults}>
        <div
          className={`grid items-start gap-10 ${kind === "custom" ? "max-w-3xl" : isComparing ? "" : "lg:grid-cols-2"}`}
        >
          <form
            id={id}
            ref={form}
            onSubmit={(event) => {
              event.preventDefault();
              submit();
            }}
          >
            <fieldset
              key={written.resets}
              disabled={isReadOnly}
              className="m-0 grid grid-cols-[minmax(0,1fr)] gap-6 border-0 p-0"
            >
              {!base && <About draft={draft} change={change} members={["key", "note"]} />}
              {isComparing && (
                <Suspense fallback={<Loading />}>
                  <CompareView
                    before={textOf(written.stored.definition)}
                    after={textOf(draft.definition)}
                    names={[`${base.key}@${base.latest.number}`, "Draft"]}
                  />
                </Suspense>
              )}
              <div
                hidden={isComparing}
                className="grid grid-cols-[minmax(0,1fr)] gap-6 [&[hidden]]:hidden"
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
                  project={project}
                  kinds={kinds}
                  kind={kind}
                  value={draft.definition}
                  onChange={(changed) => change({ definition: changed })}
                />
              </div>
              <About
                draft={draft}
                change={change}
                members={[...(base ? ["note" as const] : []), "name", "description", "feedbackKey"]}
              />
            </fieldset>
          </form>
          <Stack>
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
          </Stack>
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
    </Page>
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
