import { type FormEvent, useEffect, useId, useRef, useState } from "react";
import { Link, useNavigate } from "react-router";
import { Problem } from "../api/problem";
import { Faults, Field, useTied } from "../parts/Field";
import type { JsonObject } from "../parts/json";
import { ProblemBox } from "../parts/ProblemBox";
import { DefinitionForm } from "./DefinitionForm";
import { TestPayload } from "./edit/TestPayload";
import { type Draft, type Grader, type Kinds, useSave } from "./queries";

/** Makes a grader, or a new version of one: the same form for both. */
export function GraderForm({ project, kinds, kind, start, grader, refetch }: FormProps) {
  const [definition, setDefinition] = useState<JsonObject>(start);
  const [said, setSaid] = useState({ key: "", name: "", description: "", feedbackKey: "" });
  const [note, setNote] = useState("");
  const seen = grader?.latest.number;
  const save = useSave(project, seen);
  const navigate = useNavigate();
  const top = useRef<HTMLDivElement>(null);
  const isChanged = useUnsaved(JSON.stringify([definition, said, note]), save.isSuccess);
  const key = grader?.key ?? said.key;
  const draft: Draft = { ...said, key, kind, definition, note };
  const faults = save.error instanceof Problem ? save.error.faults : [];
  const isOvertaken = save.error instanceof Problem && save.error.status === 412;
  const change = (changed: JsonObject) => setDefinition(changed);
  const submit = (event?: FormEvent) => {
    event?.preventDefault();
    if (save.isPending) return;
    save.mutate(draft, {
      onSuccess: (stored) => navigate(`/p/${project}/graders/${stored.key}`),
      onError: () => top.current?.scrollIntoView({ block: "nearest" }),
    });
  };
  return (
    <Faults.Provider value={faults}>
      <form
        className="stack"
        onSubmit={submit}
        onKeyDown={(event) => {
          const isSave = (event.ctrlKey || event.metaKey) && event.key === "s";
          if (!isSave) return;
          event.preventDefault();
          submit();
        }}
      >
        <div ref={top} className="tops">
          {isOvertaken ? (
            <Overtaken
              project={project}
              grader={grader}
              refetch={() => {
                save.reset();
                refetch();
              }}
            />
          ) : (
            save.error && <ProblemBox problem={save.error} />
          )}
        </div>
        {!grader && <Naming said={said} setSaid={setSaid} />}
        <DefinitionForm
          project={project}
          kinds={kinds}
          kind={kind}
          value={definition}
          onChange={change}
        />
        {kind !== "custom" && (
          <div className="panel">
            <TestPayload
              project={project}
              kind={kind}
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
            onChange={(event) => setNote(event.target.value)}
          />
          <span className="soft">{isChanged ? "Not saved" : ""}</span>
          <Link
            className="button"
            to={grader ? `/p/${project}/graders/${key}` : ".."}
            relative="path"
          >
            Cancel
          </Link>
          <button type="submit" className="primary" disabled={save.isPending}>
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

/** Whether what is written differs from what was opened; the browser asks before it is lost. */
function useUnsaved(now: string, isSaved: boolean): boolean {
  const [opened] = useState(now);
  const isChanged = now !== opened && !isSaved;
  useEffect(() => {
    if (!isChanged) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
  }, [isChanged]);
  return isChanged;
}

type Said = Pick<Draft, "key" | "name" | "description" | "feedbackKey">;

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
  refetch: () => void;
}
