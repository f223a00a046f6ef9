import { useId } from "react";
import { Button } from "../../parts/Button";
import { Choice } from "../../parts/Choice";
import { Complaints, NESTED } from "../../parts/Field";
import { isObject, type Json, type JsonObject } from "../../parts/json";
import type { MemberProps } from "../../parts/schema";
import { TextField } from "../../parts/TextField";

const PARTS = [
  ["input", "Question"],
  ["output", "Answer"],
  ["reasoning", "Why"],
] as const;

const VERDICTS = [
  ["pass", "✓ Pass"],
  ["fail", "✗ Fail"],
] as const;

/** Answers that people decided about: passing and failing ones, each with why. */
export function Examples({ value, onChange, path }: MemberProps) {
  const id = useId();
  const examples = Array.isArray(value) ? value.filter(isObject) : [];
  const put = (place: number, ...changed: JsonObject[]) => {
    const left = examples.toSpliced(place, 1, ...changed);
    onChange(left.length ? left : undefined);
  };
  const add = (pass: boolean) =>
    onChange([...examples, { input: "", output: "", pass, reasoning: "" }]);
  return (
    <fieldset className={NESTED}>
      <legend>Few-shot examples</legend>
      <p className="m-0 mb-3 text-sm text-soft">
        Answers that people decided about, the best first. Give passing and failing ones, each with
        why: a judge is shown up to 8, and never the answer that it judges.
      </p>
      <Complaints path={path} id={id} />
      {examples.map((example, place) => (
        <Example
          // biome-ignore lint/suspicious/noArrayIndexKey: an example is known by its place
          key={place}
          number={place + 1}
          path={`${path}[${place}]`}
          value={example}
          onChange={(changed) => put(place, changed)}
          remove={() => put(place)}
        />
      ))}
      <div className="flex flex-wrap gap-2">
        <Button icon="plus" onPress={() => add(true)}>
          Add a passing example
        </Button>
        <Button icon="plus" onPress={() => add(false)}>
          Add a failing example
        </Button>
      </div>
    </fieldset>
  );
}

function Example({ number, path, value, onChange, remove }: ExampleProps) {
  const isPass = value.pass === true;
  return (
    <div
      className={`mb-4 grid gap-3 border-l-2 pl-4 ${isPass ? "border-l-pass" : "border-l-fail"}`}
    >
      <div className="flex flex-wrap items-center justify-between gap-2">
        <Choice
          label={`Verdict of example ${number}`}
          isInline="hidden"
          value={isPass ? "pass" : "fail"}
          options={VERDICTS}
          change={(verdict) => onChange({ ...value, pass: verdict === "pass" })}
        />
        <Button tone="quiet" onPress={remove} aria-label={`Remove example ${number}`}>
          Remove
        </Button>
      </div>
      {PARTS.map(([name, label]) => (
        <Part
          key={name}
          label={label}
          path={`${path}.${name}`}
          value={value[name]}
          required={name === "output" && !value.input && !value.output}
          onChange={(text) => onChange({ ...value, [name]: text })}
        />
      ))}
    </div>
  );
}

/** A text of an example; a conversation of several messages is kept as it is. */
function Part({ label, path, value, required, onChange }: PartProps) {
  const only = Array.isArray(value) && value.length === 1 && isObject(value[0]) && value[0];
  const isPlain = typeof value === "string" || value === undefined;
  const asked = only && only.role === "user" && typeof only.content === "string";
  const text = isPlain ? (value ?? "") : asked ? String(only.content) : JSON.stringify(value);
  return (
    <TextField
      label={label}
      path={path}
      lines={1}
      readOnly={!isPlain && !asked}
      required={required}
      value={text}
      change={onChange}
    />
  );
}

interface ExampleProps {
  number: number;
  path: string;
  value: JsonObject;
  onChange: (value: JsonObject) => void;
  remove: () => void;
}

interface PartProps {
  label: string;
  path: string;
  /** Whether it must be there: an example of nothing teaches a judge something wrong. */
  required: boolean;
  value: Json | undefined;
  onChange: (value: string) => void;
}
