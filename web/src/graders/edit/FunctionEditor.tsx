import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Suspense, useEffect, useRef, useState } from "react";
import { Link, useLocation, useNavigate, useSearchParams } from "react-router";
import { api, ask } from "../../api/client";
import { useMay } from "../../api/me";
import { Problem } from "../../api/problem";
import { Loading } from "../../parts/Loading";
import { later } from "../../parts/later";
import { ProblemBox } from "../../parts/ProblemBox";
import { About } from "./About";
import { Checks } from "./Checks";
import { Conflict } from "./Conflict";
import { type Draft, definitionOf, draftOf, type Grader, isSame, saveDraft } from "./draft";
import { keep, kept } from "./kept";
import { Leaving } from "./Leaving";
import type { SourceHandle } from "./SourceEditor";
import { META, type PayloadHandle, TestPayload } from "./TestPayload";
import { type Definition, type Mark, type Trial, tryDraft } from "./trial";
import "./edit.css";

const SourceEditor = later(() => import("./SourceEditor"));
const CompareView = later(() => import("./CompareView"));

interface Kept {
  draft: Draft;
  number: number;
}

/** The editor of a function grader with its test payload beside it. */
export function FunctionEditor({ project, grader }: EditorProps) {
  const name = `assay.draft.${project}.${grader?.key ?? "new"}`;
  const left = useRef(kept<Kept>(name));
  const [base, setBase] = useState(grader);
  const [draft, setDraft] = useState(() => left.current?.draft ?? draftOf(grader));
  const [number, setNumber] = useState(left.current?.number ?? grader?.latest.number ?? 0);
  const [isRestored, setRestored] = useState(left.current !== null);
  const [theirs, setTheirs] = useState<Grader | null>(null);
  const [checked, setChecked] = useState<Pick<Trial, "checks" | "warnings"> | null>(null);
  const [query, setQuery] = useSearchParams();
  const told = (useLocation().state as { saved?: string } | null)?.saved ?? "";
  const [saved, setSaved] = useState(told);
  const editor = useRef<SourceHandle>(null);
  const payload = useRef<PayloadHandle>(null);
  const queries = useQueryClient();
  const navigate = useNavigate();
  const may = useMay("editor", project);
  const isLocked = base?.locked ?? false;
  const isReadOnly = !may || isLocked;
  const stored = draftOf(base);
  const isDirty = !isReadOnly && !isSame(draft, stored);
  const definition = definitionOf(draft);
  const now = useRef(definition);
  now.current = definition;
  const ran = useRef<{ name: string; marks: readonly Mark[] }>({ name: "", marks: [] });
  const keys = useMetadataKeys(project, query.get("dataset"));

  useEffect(() => keep(name, isDirty ? { draft, number } : null), [name, isDirty, draft, number]);

  const change = (values: Partial<Draft>) => {
    setDraft((before) => ({ ...before, ...values }));
    setSaved("");
  };
  const reset = (to: Grader | null) => {
    const fresh = draftOf(to);
    keep(name, null);
    setBase(to);
    setNumber(to?.latest.number ?? 0);
    setDraft(fresh);
    setRestored(false);
    setTheirs(null);
    editor.current?.replace(fresh.source);
  };

  const check = async (source: string): Promise<readonly Mark[]> => {
    const wanted = definitionOf({ ...draft, source });
    if (isReadOnly || wanted === null) return [];
    const name = JSON.stringify(wanted);
    if (ran.current.name !== name) {
      // What is wrong with the server is said when it is run, or saved.
      const read = await tryDraft(project, "function", wanted, { runs: false }).catch(() => null);
      if (ran.current.name !== name) {
        if (read) setChecked(read);
        return read?.marks ?? [];
      }
    }
    return ran.current.marks; // a run says more than reading it does
  };

  const found = (trial: Trial, of: Definition) => {
    const name = JSON.stringify(of);
    if (name !== JSON.stringify(now.current)) return; // its lines are not those of today
    ran.current = { name, marks: trial.marks };
    setChecked(trial);
    editor.current?.show(trial.marks);
  };

  const save = useMutation({
    mutationFn: (over: number) => {
      if (definition === null) throw new Problem(422, "Not saved", "The range has one end only.");
      return saveDraft(project, draft, definition, base, over);
    },
    onSuccess: (made, over) => {
      const isNewVersion = made.latest.number !== over;
      const said = isNewVersion ? `Saved as version ${made.latest.number}` : "Saved";
      queries.setQueryData(["grader", project, made.key], made);
      queries.invalidateQueries({ queryKey: ["grader-overview", project] });
      keep(name, null);
      if (base === null) {
        const to = `/p/${project}/graders/${made.key}/edit?${query}`;
        navigate(to, { replace: true, state: { saved: said } });
        return;
      }
      setBase(made);
      setNumber(made.latest.number);
      setDraft((before) => ({ ...before, note: "" }));
      setRestored(false);
      setTheirs(null);
      setSaved(said);
    },
    onError: async (error) => {
      if (!(error instanceof Problem)) return;
      if (error.status === 422 && definition) {
        // It may fail only when it is run, which is not done as one types.
        await tryDraft(project, "function", definition, {}).then(
          (trial) => found(trial, definition),
          () => {},
        );
      }
      if (!base) return;
      if (error.status === 412 || error.status === 423) {
        const latest = await ask(
          api.GET("/api/v1/projects/{project}/graders/{key}", {
            params: { path: { project, key: base.key } },
          }),
        ).catch(() => null);
        if (latest?.locked) setBase({ ...base, locked: true });
        else if (latest && error.status === 412) setTheirs(latest);
      }
    },
  });
  const isKeyed = base !== null || /^[a-z0-9][a-z0-9._-]{0,63}$/.test(draft.key);
  const lacks = isKeyed
    ? definition === null && "give both ends of its range"
    : draft.key === ""
      ? "give it a key to save it"
      : "a key has small letters, digits, . _ and -";
  const canSave = isDirty && !lacks && !save.isPending;
  const submit = () => canSave && save.mutate(number);

  const act = useRef({ submit, run: () => {} });
  act.current = { submit, run: () => payload.current?.run() };
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!(event.metaKey || event.ctrlKey) || document.querySelector("dialog[open]")) return;
      if (event.key === "s") act.current.submit();
      else if (event.key === "Enter") act.current.run();
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
    window.setTimeout(() => editor.current?.jump(line));
  };
  const isConflict = save.error instanceof Problem && save.error.status === 412;

  return (
    <div className="page function-page">
      <div className="page-head">
        <h1>
          {base ? (
            <>
              <Link to={`/p/${project}/graders/${base.key}`}>{base.key}</Link>{" "}
              <span className="soft">version {base.latest.number}</span>
            </>
          ) : (
            "New function grader"
          )}
        </h1>
        <div className="row">
          <span className="soft" role="status">
            {save.isPending
              ? "Saving …"
              : isDirty
                ? `Unsaved changes${lacks ? `: ${lacks}` : ""}`
                : saved}
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
          <button type="button" className="primary" onClick={submit} disabled={!canSave}>
            Save <kbd aria-hidden="true">{META}S</kbd>
          </button>
        </div>
      </div>
      {isReadOnly && (
        <p className="panel notice">
          {isLocked
            ? "This grader is locked: it is shown as it is stored. Whoever may edit it can unlock it on its page."
            : base
              ? "You may read this grader; changing it needs the role of an editor."
              : "Storing a grader needs the role of an editor."}
        </p>
      )}
      {isRestored && isDirty && (
        <p className="panel notice">
          These are changes that you had not saved. <strong>Discard</strong> brings back what is
          stored.
        </p>
      )}
      {save.error && !save.isPending && !isConflict && <ProblemBox problem={save.error} />}
      <About draft={draft} change={change} isNew={base === null} isReadOnly={isReadOnly} />
      <div className="function-split">
        <section className="function-source" aria-label="Source">
          <div className="source-frame" hidden={isComparing}>
            <Suspense fallback={<Loading what="Loading the editor" />}>
              <SourceEditor
                ref={editor}
                source={draft.source}
                change={(source) => change({ source })}
                check={check}
                keys={keys}
                readOnly={isReadOnly}
              />
            </Suspense>
          </div>
          {isComparing && (
            <Suspense fallback={<Loading />}>
              <CompareView
                before={stored.source}
                after={draft.source}
                names={[`${base.key}@${base.latest.number}`, "Draft"]}
              />
            </Suspense>
          )}
          {checked && <Checks trial={checked} onLine={jump} />}
          <p className="soft editor-keys">
            <kbd>Esc</kbd> <kbd>Tab</kbd> leaves the editor · <kbd>{META}Space</kbd> completes
          </p>
        </section>
        <TestPayload
          ref={payload}
          project={project}
          kind="function"
          definition={isReadOnly && !may ? null : definition}
          savedVersion={base ? { key: base.key, number: base.latest.number } : undefined}
          onTrial={found}
          onLine={jump}
        />
      </div>
      {theirs && (
        <Conflict
          theirs={theirs}
          mine={draft.source}
          overwrite={() => save.mutate(theirs.latest.number)}
          take={() => reset(theirs)}
          close={() => setTheirs(null)}
        />
      )}
      <Leaving isDirty={isDirty} discard={() => reset(base)} />
    </div>
  );
}

/** Keys that the first row of a dataset has for `thread.metadata`. */
function useMetadataKeys(project: string, dataset: string | null): readonly string[] {
  const rows = useQuery({
    queryKey: ["rows", project, dataset, null, 1],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/datasets/{key}/rows", {
          params: { path: { project, key: dataset ?? "" }, query: { limit: 1, whole: true } },
          signal,
        }),
      ),
    enabled: dataset !== null,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const data = rows.data?.items[0]?.data ?? {};
  const metadata = typeof data.metadata === "object" && data.metadata ? data.metadata : {};
  const own = Object.keys(data).filter((field) => !ROW_FIELDS.includes(field));
  return [...new Set([...Object.keys(metadata), ...own, "expected"])];
}

const ROW_FIELDS = ["id", "answer", "messages", "completion", "question", "expected", "metadata"];

interface EditorProps {
  project: string;
  grader: Grader | null;
}
