import { TextField } from "./TextField";

/** What something new is called: its key, and its name for people. */
export interface Called {
  key: string;
  name: string;
}

export function KeyFields({ called: { key, name }, change }: KeyFieldsProps) {
  return (
    <>
      <TextField
        label="Key"
        required
        pattern="[a-z0-9][a-z0-9._\-]{0,63}"
        title="Small letters, digits, dots, dashes"
        value={key}
        change={(text) => change({ key: text, name })}
      />
      <TextField
        label="Name for people (optional)"
        maxLength={200}
        value={name}
        change={(text) => change({ key, name: text })}
      />
    </>
  );
}

interface KeyFieldsProps {
  called: Called;
  change: (called: Called) => void;
}
