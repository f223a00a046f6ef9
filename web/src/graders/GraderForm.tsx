import { type FormEvent, useEffect, useId, useRef, useState } from "react";
import { Link, useNavigate } from "react-router";
import { useMay } from "../api/me";
import { Problem } from "../api/problem";
import { Faults, Field, useTied } from "../parts/Field";
import type { JsonObject } from "../parts/json";
import { ProblemBox } from "../parts/ProblemBox";
import { DefinitionForm } from "./DefinitionForm";
import { keep, kept } from "./edit/kept";
import { Leaving } from "./edit/Leaving";
import { type PayloadHandle, TestPayload } from "./edit/TestPayload";
import { type Draft, type Grader, type Kinds, useSave } from "./queries";

/** Makes a grader, or a new version of one: the same form for both. */
export function GraderForm({ project, kinds, kind, start, grader, refetch }: FormProps) {
  const slot = `assay.form.${project}.${grader?.key ?? `${kind} ${JSON.stringify(start)}`}`;
  const opened: Written = {
    definition: start,
    said: NOTHING,
    note: "",
    seen: grader?.latest.number,
  };
  const [written, setWritten] = useState<Written>(() => kept<Written>(slot) ?? opened);
  const { definition, said, note, seen } = written;
  const set = (changed: Partial<Written>) => setWritten((before) => ({ ...before, ...changed }));
  const save = useSave(project, seen);
  const may = useMay("editor", project);
  const navigate = useNavigate();
  const top = useRef<HTMLDivElement>(null);
  const payload = useRef<PayloadHandle>(null);
  const isChanged =
    !save.isSuccess &&
    JSON.stringify([definition, said, note]) !== JSON.stringify([start, NOTHING, ""]);
  useEffect(() => keep(slot, isChanged ? written : null), [slot, isChanged, written]);
  const key = grader?.key ?? said.key;
  const draft: Draft = { ...said, key, kind, definition, note };
  const faults = save.error instanceof Problem ? save.error.faults : [];
  const isOvertaken = save.error instanceof Problem && save.error.status === 412;
  const submit = (event?: FormEvent) => {
    event?.preventDefault();
    if (!may || save.isPending) return;
    save.mutate(draft, {
      onSuccess: (stored) => {
        keep(slot, null);
        navigate(`/p/${project}/graders/${stored.key}`);
      },
      onError: () => top.current?.scrollIntoView({ block: "nearest" }),
    });
  };
  return (
    <Faults.Provider value={faults}>
      <form
        className="stack"
        onSubmit={submit}
        onKeyDown={(event) => {
          if (!event.ctrlKey && !event.metaKey) return;
          if (event.key === "s") event.currentTarget.requestSubmit();
          else if (event.key === "Enter") payload.current?.run();
          else return;
          event.preventDefault();
        }}
      >
        <Leaving isDirty={isChanged} discard={() => setWritten(opened)} />
        <div ref={top} className="tops">
          {isOvertaken ? (
            <Overtaken
              project={project}
              grader={grader}
              refetch={() => {
                refetch?.().then((found) => {
                  save.reset();
                  set({ seen: found.latest.number });
                });
              }}
            />
          ) : (
            save.error && <ProblemBox problem={save.error} />
          )}
        </div>
        {!grader && <Naming said={said} setSaid={(changed) => set({ said: changed })} />}
        <DefinitionForm
          project={project}
          kinds={kinds}
          kind={kind}
          value={definition}
          onChange={(changed) => set({ definition: changed })}
        />
        {kind !== "custom" && (
          <div className="panel">
            <TestPayload
              project={project}
              kind={kind}
              ref={payload}
              definition={definition}
              savedVersion={grader && { key, number: grader.latest.number }}
            />
          </div>
        )}
        <div className="save-bar">
          <input
            aria-label="Note of the version"
            placeholder={grader ? "What changes, and why" : "Why it is made (optional)"}
            maxLength={10_000}
            value={note}
            onChange={(event) => set({ note: event.target.value })}
          />
          <span className="soft">
            {!may
              ? "Storing a grader needs the role editor"
              : isChanged
                ? "Not saved; kept in this tab"
                : ""}
          </span>
          <Link
            className="button"
            to={grader ? `/p/${project}/graders/${key}` : ".."}
            relative="path"
          >
            Cancel
          </Link>
          <button type="submit" className="primary" disabled={!may || save.isPending}>
            {save.isPending
              ? "Checking …"
              : grader
                ? `Save as version ${(seen ?? 0) + 1}`
                : "Create grader"}
          </button>
        </div>
      </form>
    </Faults.Provider>
  );
}

/** Somebody saved meanwhile: look at theirs, or put this on top of it. */
function Overtaken({ project, grader, refetch }: OvertakenProps) {
  return (
    <div role="alert" className="panel problem">
      <h2>Somebody saved a version meanwhile</h2>
      <p>
        This was made from version {grader?.latest.number}. Nothing of yours is lost:{" "}
        <a href={`/p/${project}/graders/${grader?.key}`} target="_blank" rel="noreferrer">
          look at theirs
        </a>{" "}
        in a new tab, then save yours on top of it, or cancel.
      </p>
      <button type="button" onClick={refetch}>
        Mine goes on top of theirs
      </button>
    </div>
  );
}

function Naming({ said, setSaid }: { said: Said; setSaid: (said: Said) => void }) {
  const key = useId();
  const others = [
    ["name", "Name", "For people; the key by default."],
    ["description", "Description", "What it is for."],
    [
      "feedbackKey",
      "Feedback key",
      "The metric that its scores are written to; the key by default.",
    ],
  ] as const;
  return (
    <fieldset className="nested naming">
      <legend>What it is called</legend>
      <Field
        id={key}
        label="Key"
        path="key"
        required
        about="Lowercase letters, digits, `.`, `_` and `-`; it cannot be changed later."
      >
        <input
          {...useTied(key, "key", "yes")}
          className="mono"
          required
          pattern="[a-z0-9][a-z0-9._\-]{0,63}"
          title="Lowercase letters, digits, . _ and -"
          value={said.key}
          onChange={(event) => setSaid({ ...said, key: event.target.value })}
        />
      </Field>
      {others.map(([member, label, about]) => (
        <Text
          key={member}
          label={label}
          path={member === "feedbackKey" ? "feedback_key" : member}
          about={about}
          value={said[member]}
          onChange={(value) => setSaid({ ...said, [member]: value })}
        />
      ))}
    </fieldset>
  );
}

function Text({ label, path, about, value, onChange }: TextProps) {
  const id = useId();
  return (
    <Field id={id} label={label} path={path} about={about}>
      <input
        {...useTied(id, path, about)}
        maxLength={path === "description" ? 10_000 : 200}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </Field>
  );
}

const NOTHING: Said = { key: "", name: "", description: "", feedbackKey: "" };

type Said = Pick<Draft, "key" | "name" | "description" | "feedbackKey">;

/** What is being written, and the version that it was made from. */
interface Written {
  definition: JsonObject;
  said: Said;
  note: string;
  seen: number | undefined;
}

interface TextProps {
  label: string;
  path: string;
  about: string;
  value: string;
  onChange: (value: string) => void;
}

interface OvertakenProps {
  project: string;
  grader: Grader | undefined;
  refetch: () => void;
}

interface FormProps {
  project: string;
  kinds: Kinds;
  kind: string;
  start: JsonObject;
  grader?: Grader;
  refetch?: () => Promise<Grader>;
}
