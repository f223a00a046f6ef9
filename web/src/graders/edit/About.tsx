import { type ComponentProps, useId } from "react";
import { Field, INPUT, useTied } from "../../parts/Field";
import type { Draft } from "./useDraft";

/** What is said of a grader beside its definition: of a new one its key, of each its names and note. */
export function About({ draft, change, members }: AboutProps) {
  return (
    <div className="grid items-start gap-4 sm:grid-cols-2">
      {members.map((member) => (
        <Said
          key={member}
          {...FIELDS[member]}
          value={draft[member]}
          onChange={(value) => change({ [member]: value })}
        />
      ))}
    </div>
  );
}

const FIELDS = {
  key: {
    path: "key",
    label: "Key",
    about: "Lowercase letters, digits, `.`, `_` and `-`; it cannot be changed later.",
    input: {
      className: `${INPUT} font-mono`,
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
        className={INPUT}
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
  members: readonly (keyof typeof FIELDS)[];
}
