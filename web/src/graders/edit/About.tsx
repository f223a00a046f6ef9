import { type ComponentProps, useId } from "react";
import { Field, useTied } from "../../parts/Field";
import type { Draft } from "./useDraft";

/** What is said of a grader beside its definition: key, names, note. */
export function About({ draft, change, isNew }: AboutProps) {
  const said = (member: keyof typeof FIELDS) => (
    <Said
      key={member}
      {...FIELDS[member]}
      value={draft[member]}
      onChange={(value) => change({ [member]: value })}
    />
  );
  return (
    <div className="about-grader">
      {isNew && said("key")}
      {said("name")}
      {said("description")}
      {said("feedbackKey")}
      {said("note")}
    </div>
  );
}

const FIELDS = {
  key: {
    path: "key",
    label: "Key",
    about: "Lowercase letters, digits, `.`, `_` and `-`; it cannot be changed later.",
    input: {
      className: "mono",
      required: true,
      autoFocus: true,
      autoComplete: "off",
      spellCheck: false,
      pattern: "[a-z0-9][a-z0-9._\\-]{0,63}",
      title: "Lowercase letters, digits, . _ and -",
    },
  },
  name: {
    path: "name",
    label: "Name",
    about: "For people; the key by default.",
    input: { maxLength: 200 },
  },
  description: {
    path: "description",
    label: "Description",
    about: "What it is for.",
    input: { maxLength: 10_000 },
  },
  feedbackKey: {
    path: "feedback_key",
    label: "Feedback key",
    about: "The metric that its scores are written to; the key by default.",
    input: { maxLength: 200 },
  },
  note: {
    path: "note",
    label: "Note of this version",
    about: "What changes, and why.",
    input: { maxLength: 10_000 },
  },
} as const satisfies Record<string, About>;

function Said({ path, label, about, input, value, onChange }: SaidProps) {
  const id = useId();
  return (
    <Field id={id} label={label} path={path} about={about} required={input.required}>
      <input
        {...useTied(id, path, about)}
        {...input}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </Field>
  );
}

interface About {
  path: string;
  label: string;
  about: string;
  input: ComponentProps<"input">;
}

interface SaidProps extends About {
  value: string;
  onChange: (value: string) => void;
}

interface AboutProps {
  draft: Draft;
  change: (values: Partial<Draft>) => void;
  isNew: boolean;
}
