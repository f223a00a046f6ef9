import { TextField, type TextFieldProps } from "../../parts/TextField";
import type { Draft } from "./useDraft";

/** What is said of a grader beside its definition: of a new one its key, of each its names and note. */
export function About({ draft, change, members }: AboutProps) {
  return (
    <div className="grid items-start gap-4 sm:grid-cols-2">
      {members.map((member) => (
        <TextField
          key={member}
          {...FIELDS[member]}
          value={draft[member]}
          change={(value) => change({ [member]: value })}
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
    className: "font-mono",
    required: true,
    autoFocus: true,
    autoComplete: "off",
    spellCheck: false,
    pattern: "[a-z0-9][a-z0-9._\\-]{0,63}",
    title: "Lowercase letters, digits, . _ and -",
  },
  name: {
    path: "name",
    label: "Name",
    about: "For people; the key by default.",
    maxLength: 200,
  },
  description: {
    path: "description",
    label: "Description",
    about: "What it is for.",
    maxLength: 10_000,
  },
  feedbackKey: {
    path: "feedback_key",
    label: "Feedback key",
    about: "The metric that its scores are written to; the key by default.",
    maxLength: 200,
  },
  note: {
    path: "note",
    label: "Note of this version",
    about: "What changes, and why.",
    maxLength: 10_000,
  },
} as const satisfies Record<string, Omit<TextFieldProps, "change">>;

interface AboutProps {
  draft: Draft;
  change: (values: Partial<Draft>) => void;
  members: readonly (keyof typeof FIELDS)[];
}
