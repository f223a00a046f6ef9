import type { Draft } from "./draft";

/** What is said of a function beside its source: key, names, note, how it is run. */
export function About({ draft, change, isNew, isReadOnly }: AboutProps) {
  const field = (name: keyof Draft, label: string, more: Partial<Field> = {}) => (
    <label className={more.wide ? "wide" : undefined}>
      <span>{label}</span>
      <input
        value={draft[name]}
        placeholder={more.hint}
        maxLength={more.most ?? 200}
        pattern={more.pattern}
        required={more.required}
        autoFocus={more.required}
        inputMode={more.isNumber ? "decimal" : undefined}
        disabled={isReadOnly}
        spellCheck={false}
        autoComplete="off"
        onChange={(event) => change({ [name]: event.target.value })}
      />
    </label>
  );
  const { low, high } = draft;
  return (
    <div className="about-function">
      {isNew &&
        field("key", "Key", {
          hint: "exact-answer",
          pattern: "[a-z0-9][a-z0-9._\\-]{0,63}",
          required: true,
          most: 64,
        })}
      {field("name", "Name", { hint: draft.key || "as the key" })}
      {field("description", "Description", { hint: "What it is for", wide: true, most: 10_000 })}
      {field("note", "Note of this version", { hint: isNew ? "First version" : "What changed" })}
      <details className="function-options">
        <summary>More: scores {low !== "" || high !== "" ? `${low} to ${high}` : "0 to 1"}</summary>
        <div className="row">
          {field("feedbackKey", "Feedback key", { hint: draft.key || "as the key" })}
          <label>
            <span>Run in</span>
            <select
              value={draft.isolation}
              disabled={isReadOnly}
              onChange={(event) => change({ isolation: event.target.value as Draft["isolation"] })}
            >
              <option value="call">a process for each call</option>
              <option value="batch">one process for many calls</option>
            </select>
          </label>
          {field("low", "Lowest score", { hint: "0", isNumber: true, most: 20 })}
          {field("high", "Highest score", { hint: "1", isNumber: true, most: 20 })}
        </div>
        {(low === "") !== (high === "") && (
          <p className="fault">Give both ends of the range, or none.</p>
        )}
      </details>
    </div>
  );
}

interface Field {
  hint: string;
  pattern: string;
  required: boolean;
  wide: boolean;
  isNumber: boolean;
  most: number;
}

interface AboutProps {
  draft: Draft;
  change: (values: Partial<Draft>) => void;
  isNew: boolean;
  isReadOnly: boolean;
}
