import { useId } from "react";
import { Complaints, Field, useTied } from "../parts/Field";
import { isObject, type Json, type JsonObject, withMember } from "../parts/json";
import { SchemaForm } from "../parts/SchemaForm";
import type { KindProps } from "./DefinitionForm";
import { JudgePreview } from "./JudgePreview";
import { ModelField } from "./ModelField";

const OWN = ["criteria", "judge_model", "examples", "system_template", "user_template"];

/** A criterion, who judges by it, examples and templates; beside them what the judge is sent. */
export function JudgeForm({ project, schema, value, onChange }: KindProps) {
  const set = (name: string) => (member: Json | undefined) =>
    onChange(withMember(value, name, member));
  return (
    <div className="form-beside">
      <section className="panel fields">
        <Text
          label="Criterion"
          name="criteria"
          required
          rows={3}
          about="What makes an answer pass, in plain words. One thing, that two people would decide alike."
          placeholder="The response directly answers the question, without going off topic."
          value={value.criteria}
          onChange={set("criteria")}
        />
        <ModelField project={project} value={value} onChange={onChange} />
        <Examples value={value.examples} onChange={set("examples")} />
        <details className="folded" open={Boolean(value.user_template || value.system_template)}>
          <summary>Templates of your own</summary>
          <div className="fields">
            <Text
              label="User template"
              name="user_template"
              mono
              rows={8}
              about="Handlebars. Without one, the question and the answer are shown in assay's words. Whatever comes from outside is fenced; the criterion and the form of the reply stand last."
              value={value.user_template}
              onChange={set("user_template")}
            />
            <Text
              label="System template"
              name="system_template"
              mono
              rows={3}
              about="Stands behind what every judge is told."
              value={value.system_template}
              onChange={set("system_template")}
            />
          </div>
        </details>
        <SchemaForm
          schema={schema}
          value={value}
          onChange={onChange}
          path="definition"
          omit={OWN}
        />
      </section>
      <JudgePreview project={project} definition={value} />
    </div>
  );
}

function Text({ label, name, about, rows, mono, required, ...rest }: TextProps) {
  const id = useId();
  const path = `definition.${name}`;
  const { value, onChange, placeholder } = rest;
  return (
    <Field id={id} label={label} path={path} about={about} required={required}>
      <textarea
        {...useTied(id, path, about)}
        className={mono ? "grows mono" : "grows"}
        rows={rows}
        placeholder={placeholder}
        spellCheck={!mono}
        value={typeof value === "string" ? value : ""}
        onChange={(event) => onChange(event.target.value || (required ? "" : undefined))}
      />
    </Field>
  );
}

/** Answers that people decided about: passing and failing ones, each with why. */
function Examples({ value, onChange }: ExamplesProps) {
  const id = useId();
  const examples = Array.isArray(value) ? value.filter(isObject) : [];
  const put = (place: number, changed: JsonObject) =>
    onChange(examples.map((one, at) => (at === place ? changed : one)));
  const add = (pass: boolean) =>
    onChange([...examples, { input: "", output: "", pass, reasoning: "" }]);
  return (
    <fieldset className="nested">
      <legend>Few-shot examples</legend>
      <p className="about soft">
        Answers that people decided about, the best first. Give passing and failing ones, each with
        why: a judge is shown up to 8, and never the answer that it judges.
      </p>
      <Complaints path="definition.examples" id={id} />
      {examples.map((example, place) => (
        <Example
          // biome-ignore lint/suspicious/noArrayIndexKey: an example is known by its place
          key={place}
          place={place}
          value={example}
          onChange={(changed) => put(place, changed)}
          remove={() => {
            const left = examples.filter((_, at) => at !== place);
            onChange(left.length ? left : undefined);
          }}
        />
      ))}
      <div className="row">
        <button type="button" onClick={() => add(true)}>
          Add a passing example
        </button>
        <button type="button" onClick={() => add(false)}>
          Add a failing example
        </button>
      </div>
    </fieldset>
  );
}

function Example({ place, value, onChange, remove }: ExampleProps) {
  const path = `definition.examples[${place}]`;
  const isPass = value.pass === true;
  return (
    <div className={`example ${isPass ? "passes" : "fails"}`}>
      <div className="spread">
        <label className="row">
          <span className="sr">Verdict of example {place + 1}</span>
          <select
            value={isPass ? "pass" : "fail"}
            onChange={(event) => onChange({ ...value, pass: event.target.value === "pass" })}
          >
            <option value="pass">✓ Pass</option>
            <option value="fail">✗ Fail</option>
          </select>
        </label>
        <button
          type="button"
          className="quiet"
          onClick={remove}
          aria-label={`Remove example ${place + 1}`}
        >
          Remove
        </button>
      </div>
      {(["input", "output", "reasoning"] as const).map((name) => (
        <Part
          key={name}
          label={PARTS[name]}
          path={`${path}.${name}`}
          value={value[name]}
          required={name === "output" && !value.input && !value.output}
          onChange={(text) => onChange({ ...value, [name]: text })}
        />
      ))}
    </div>
  );
}

const PARTS = { input: "Question", output: "Answer", reasoning: "Why" };

/** A text of an example; a conversation of several messages is kept as it is. */
function Part({ label, path, value, required, onChange }: PartProps) {
  const id = useId();
  const tied = useTied(id, path);
  const only = Array.isArray(value) && value.length === 1 && isObject(value[0]) && value[0];
  const isPlain = typeof value === "string" || value === undefined;
  const asked = only && only.role === "user" && typeof only.content === "string";
  const text = isPlain ? (value ?? "") : asked ? String(only.content) : JSON.stringify(value);
  return (
    <Field id={id} label={label} path={path}>
      <textarea
        {...tied}
        className="grows"
        rows={1}
        readOnly={!isPlain && !asked}
        required={required}
        value={text}
        onChange={(event) => onChange(event.target.value)}
      />
    </Field>
  );
}

interface TextProps {
  label: string;
  name: string;
  about: string;
  rows: number;
  mono?: boolean;
  required?: boolean;
  placeholder?: string;
  value: Json | undefined;
  onChange: (value: string | undefined) => void;
}

interface ExamplesProps {
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
}

interface ExampleProps {
  place: number;
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
