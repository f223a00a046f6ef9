import { useId, useState } from "react";
import { Button } from "../../parts/Button";
import { Disclosure } from "../../parts/Disclosure";
import { AREA } from "../../parts/Field";
import { count } from "../../parts/figures";
import { TextField } from "../../parts/TextField";
import type { Own } from "./given";

/** Samples that somebody pastes, or writes field by field. */
export function OwnSamples({ text, setText, read }: OwnProps) {
  const id = useId();
  return (
    <div>
      <label htmlFor={id} className="mb-1 block font-medium">
        JSON, or an object on each line
      </label>
      <textarea
        id={id}
        className={`${AREA} font-mono`}
        rows={4}
        spellCheck={false}
        value={text}
        placeholder={'{"question": "2 + 2?", "answer": "4", "expected": "4", "metadata": {}}'}
        aria-invalid={read.fault !== ""}
        aria-describedby={`${id}-said`}
        onChange={(event) => setText(event.target.value)}
      />
      <p
        id={`${id}-said`}
        className={`mt-1 mb-2 ${read.fault ? "text-fail" : "text-soft"}`}
        aria-live="polite"
      >
        {read.fault || count(read.samples.length, "sample")}
      </p>
      <Disclosure head="Write one field by field">
        {() => (
          <SampleForm
            add={(line) => setText(text.trim() ? `${text.trimEnd()}\n${line}` : line)}
            isList={text.trimStart().startsWith("[")}
          />
        )}
      </Disclosure>
    </div>
  );
}

const FIELDS = [
  ["question", "Question"],
  ["answer", "Answer"],
  ["expected", "Expected"],
  ["messages", "Messages (JSON, instead of question)"],
  ["metadata", "Metadata (JSON)"],
] as const;

function SampleForm({ add, isList }: { add: (line: string) => void; isList: boolean }) {
  const [fields, setFields] = useState<Record<string, string>>({});
  const [fault, setFault] = useState("");
  const submit = () => {
    const sample: Record<string, unknown> = {};
    for (const [name, label] of FIELDS) {
      const value = fields[name] ?? "";
      if (value === "" && (name !== "answer" || fields.messages)) continue;
      try {
        const isJson = name === "messages" || name === "metadata";
        sample[name] = isJson ? JSON.parse(value) : value;
      } catch (error) {
        return setFault(`${label}: ${error instanceof Error ? error.message : "not JSON"}`);
      }
    }
    setFault("");
    setFields({});
    add(JSON.stringify(sample));
  };
  return (
    <div className="grid gap-3">
      {FIELDS.map(([name, label]) => (
        <TextField
          key={name}
          label={label}
          lines={1}
          value={fields[name] ?? ""}
          change={(text) => setFields({ ...fields, [name]: text })}
        />
      ))}
      {fault && (
        <p className="m-0 text-fail" role="alert">
          {fault}
        </p>
      )}
      <div className="flex flex-wrap items-center gap-2">
        <Button onPress={submit} isDisabled={isList}>
          Add the sample
        </Button>
        {isList && <span className="text-soft">What was pasted is a list: add it there.</span>}
      </div>
    </div>
  );
}

interface OwnProps {
  text: string;
  setText: (text: string) => void;
  read: Own;
}
