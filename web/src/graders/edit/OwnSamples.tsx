import { useId, useState } from "react";
import { count } from "../../parts/figures";
import type { Own } from "./given";

/** Samples that somebody pastes, or writes field by field. */
export function OwnSamples({ text, setText, read }: OwnProps) {
  const id = useId();
  const [isForm, setForm] = useState(false);
  return (
    <div className="own-samples">
      <div className="spread">
        <label htmlFor={id} className="label">
          JSON, or an object on each line
        </label>
        <button
          type="button"
          className="quiet"
          aria-expanded={isForm}
          onClick={() => setForm(!isForm)}
        >
          Write one field by field
        </button>
      </div>
      <textarea
        id={id}
        className="mono"
        rows={4}
        spellCheck={false}
        value={text}
        placeholder={'{"question": "2 + 2?", "answer": "4", "expected": "4", "metadata": {}}'}
        aria-invalid={read.fault !== ""}
        aria-describedby={`${id}-said`}
        onChange={(event) => setText(event.target.value)}
      />
      <p id={`${id}-said`} className={read.fault ? "fault" : "soft"} aria-live="polite">
        {read.fault || count(read.samples.length, "sample")}
      </p>
      {isForm && (
        <SampleForm
          add={(line) => setText(text.trim() ? `${text.trimEnd()}\n${line}` : line)}
          isList={text.trimStart().startsWith("[")}
        />
      )}
    </div>
  );
}

const FIELDS = [
  ["question", "Question", 1],
  ["answer", "Answer", 2],
  ["expected", "Expected", 1],
  ["messages", "Messages (JSON, instead of question)", 2],
  ["metadata", "Metadata (JSON)", 1],
] as const;

function SampleForm({ add, isList }: { add: (line: string) => void; isList: boolean }) {
  const [fields, setFields] = useState<Record<string, string>>({});
  const [fault, setFault] = useState("");
  const submit = () => {
    const sample: Record<string, unknown> = {};
    for (const [name, label] of FIELDS) {
      const value = fields[name] ?? "";
      if (value === "" && name !== "answer") continue;
      if (name === "messages" || name === "metadata") {
        try {
          sample[name] = JSON.parse(value);
        } catch (error) {
          setFault(`${label}: ${error instanceof Error ? error.message : "not JSON"}`);
          return;
        }
      } else if (name !== "answer" || value !== "" || !fields.messages) {
        sample[name] = value;
      }
    }
    setFault("");
    setFields({});
    add(JSON.stringify(sample));
  };
  return (
    <div className="sample-form">
      {FIELDS.map(([name, label, rows]) => (
        <label key={name}>
          <span>{label}</span>
          <textarea
            rows={rows}
            value={fields[name] ?? ""}
            onChange={(event) => setFields({ ...fields, [name]: event.target.value })}
          />
        </label>
      ))}
      {fault && (
        <p className="fault" role="alert">
          {fault}
        </p>
      )}
      <div className="row">
        <button type="button" onClick={submit} disabled={isList}>
          Add the sample
        </button>
        {isList && <span className="soft">What was pasted is a list: add it there.</span>}
      </div>
    </div>
  );
}

interface OwnProps {
  text: string;
  setText: (text: string) => void;
  read: Own;
}
