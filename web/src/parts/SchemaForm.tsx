import { type ComponentType, useId, useState } from "react";
import { Button } from "./Button";
import { AREA, Complaints, Described, Field, INPUT, NESTED, useIsFaulty, useTied } from "./Field";
import { isObject, type Json, type JsonObject, withMember } from "./json";

/** As much of JSON Schema as definitions of graders use, and hints how a member is best shown. */
export interface Schema {
  type?: string;
  title?: string;
  description?: string;
  enum?: Json[];
  const?: Json;
  default?: Json;
  anyOf?: Schema[];
  oneOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: boolean | Schema;
  label?: string;
  placeholder?: string;
  /** Lines of a text that is written in several. */
  rows?: number;
  isCode?: boolean;
  /** Whether it is shown at once although it may be left out; the others fold. */
  isShown?: boolean;
  /** What is shown instead of what follows from the schema. */
  control?: ComponentType<MemberProps>;
}

/**
 * The members of an object as fields, made of its JSON Schema. Mistakes are shown at the field
 * that the API names.
 *
 * @param omit Names that somebody else shows.
 */
export function SchemaForm({ schema, value, onChange, path, omit = [] }: FormProps) {
  const required = schema.required ?? [];
  const names = Object.keys(schema.properties ?? {}).filter((name) => !omit.includes(name));
  const isShown = (name: string) =>
    required.includes(name) || schema.properties?.[name]?.isShown === true;
  const folded = names.filter((name) => !isShown(name));
  const member = (name: string) => (
    <Member
      key={name}
      name={name}
      schema={schema.properties?.[name] ?? {}}
      value={value[name]}
      required={required.includes(name)}
      path={path ? `${path}.${name}` : name}
      onChange={(changed) => onChange(withMember(value, name, changed))}
    />
  );
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-4">
      {names.filter(isShown).map(member)}
      {folded.length > 0 && (
        <Folded names={folded} value={value} path={path} isAll={folded.length === names.length}>
          {folded.map(member)}
        </Folded>
      )}
    </div>
  );
}

function Folded({ names, value, path, isAll, children }: FoldedProps) {
  const given = names.filter((name) => value[name] !== undefined).length;
  const isFaulty = useIsFaulty(path);
  const [isOpen, setOpen] = useState(given > 0);
  return (
    <details open={isOpen || isFaulty} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="cursor-pointer py-1 text-accent">
        {isAll ? "Options" : "More options"}{" "}
        <span className="text-soft">
          {given > 0 ? `${given} of ${names.length} set` : names.length}
        </span>
      </summary>
      <div className="mt-3 grid grid-cols-[minmax(0,1fr)] gap-4">{children}</div>
    </details>
  );
}

const CAPITALS = /\b(url|usd|json|xml|id|na)\b/g;

export function labelOf(name: string): string {
  const words = name.replaceAll("_", " ").replace(CAPITALS, (word) => word.toUpperCase());
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}

/** One member: what stands for it follows from its schema. */
function Member(props: MemberProps) {
  const { value, onChange, path } = props;
  const schema = withoutNull(props.schema);
  const Own = schema.control;
  if (Own) return <Own {...props} />;
  const shapes = schema.anyOf ?? schema.oneOf;
  if (shapes) return <Choice {...props} schema={schema} shapes={shapes} />;
  if (schema.type === "object" && schema.properties) {
    return (
      <fieldset className={NESTED}>
        <legend>{labelOf(props.name)}</legend>
        {schema.description && (
          <p className="m-0 mb-3 text-sm text-soft">
            <Described text={schema.description} />
          </p>
        )}
        <SchemaForm
          schema={schema}
          value={isObject(value) ? value : {}}
          path={path}
          onChange={(changed) => onChange(Object.keys(changed).length ? changed : undefined)}
        />
      </fieldset>
    );
  }
  if (schema.type === "array" && schema.items) return <Items {...props} schema={schema} />;
  return <Control {...props} schema={schema} />;
}

/** A list: an item below the other, with a button to add one. */
function Items({ name, schema, value, onChange, path, required }: MemberProps) {
  const id = useId();
  const given = Array.isArray(value) ? value : undefined;
  const usual = Array.isArray(schema.default) ? schema.default : [];
  const items = given ?? usual;
  const inner = withoutNull(schema.items ?? {});
  const one = name.replace(/s$/, "");
  // As many as it has by default: a pair of numbers has neither more nor fewer.
  const isFixed = usual.length > 0;
  const put = (place: number, item: Json | undefined) =>
    onChange(items.map((other, at) => (at === place ? (item ?? blank(inner)) : other)));
  const without = (place: number) => {
    const left = items.filter((_, at) => at !== place);
    onChange(left.length || required ? left : undefined);
  };
  return (
    <fieldset className={NESTED}>
      <legend>
        {labelOf(name)}
        {required && <span className="font-normal text-soft"> (required)</span>}
      </legend>
      {schema.description && (
        <p className="m-0 mb-3 text-sm text-soft">
          <Described text={schema.description} />
        </p>
      )}
      <Complaints path={path} id={id} />
      {items.map((item, place) => (
        <div
          // biome-ignore lint/suspicious/noArrayIndexKey: an item of plain JSON is known by its place
          key={place}
          className={
            isFixed
              ? "mr-4 inline-block"
              : "mb-4 grid grid-cols-[minmax(0,1fr)_auto] items-start gap-2 border-b border-line pb-4"
          }
        >
          <Member
            name={isFixed ? (ENDS[place] ?? one) : `${one} ${place + 1}`}
            schema={inner}
            value={item}
            required={!isFixed}
            path={`${path}[${place}]`}
            onChange={(changed) => put(place, changed)}
          />
          {!isFixed && (
            <Button
              tone="quiet"
              onPress={() => without(place)}
              aria-label={`Remove ${labelOf(one)} ${place + 1}`}
            >
              Remove
            </Button>
          )}
        </div>
      ))}
      {!isFixed && (
        <Button icon="plus" onPress={() => onChange([...items, blank(inner)])}>
          Add {labelOf(one).toLowerCase()}
        </Button>
      )}
    </fieldset>
  );
}

/** Several shapes: a list to choose from, and the fields of what is chosen. */
function Choice(props: MemberProps & { shapes: Schema[] }) {
  const { name, shapes, value, onChange, path, required, schema } = props;
  const id = useId();
  const found = shapes.findIndex((shape) => fits(shape, value));
  const chosen = shapes[found];
  const tag = chosen && tagOf(chosen);
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-3">
      <Field
        id={id}
        label={labelOf(name)}
        path={path}
        about={schema.description}
        required={required}
      >
        <select
          {...useTied(id, path, schema.description)}
          className={`${INPUT} w-auto! min-w-50`}
          value={found}
          onChange={(event) => {
            const shape = shapes[Number(event.target.value)];
            onChange(shape && blank(shape));
          }}
        >
          {found < 0 && <option value={-1}>{required ? "Choose …" : "Not set"}</option>}
          {!required && found >= 0 && <option value={-1}>Not set</option>}
          {shapes.map((shape, place) => (
            <option key={titleOf(shape)} value={place}>
              {titleOf(shape)}
            </option>
          ))}
        </select>
      </Field>
      {chosen?.properties ? (
        <>
          {chosen.description && (
            <p className="m-0 mb-3 text-sm text-soft">
              <Described text={chosen.description} />
            </p>
          )}
          <SchemaForm
            schema={chosen}
            value={isObject(value) ? value : {}}
            path={path}
            omit={tag ? [tag] : []}
            onChange={onChange}
          />
        </>
      ) : (
        chosen && <Control {...props} name={titleOf(chosen)} schema={chosen} />
      )}
    </div>
  );
}

const ENDS = ["lowest", "highest"];
const LONG = /criteria|template|source|description|prompt|input|content|cmd|reasoning|output/;

/** One value. */
function Control({ name, schema, value, onChange, path, required }: MemberProps) {
  const id = useId();
  const tied = useTied(id, path, schema.description);
  const usual = schema.default === undefined || schema.default === null ? "" : schema.default;
  const shown = typeof usual === "object" ? JSON.stringify(usual) : String(usual);
  const field = (control: React.ReactNode) => (
    <Field
      id={id}
      label={schema.label ?? labelOf(name)}
      path={path}
      about={schema.description}
      required={required}
    >
      {control}
    </Field>
  );
  if (schema.enum) {
    const options = schema.enum;
    return field(
      <select
        {...tied}
        className={`${INPUT} w-auto! min-w-50`}
        value={value === undefined ? "" : JSON.stringify(value)}
        onChange={(event) =>
          onChange(event.target.value ? (JSON.parse(event.target.value) as Json) : undefined)
        }
      >
        {!(required && value !== undefined) && (
          <option value="">
            {required ? "Choose …" : shown ? `Default: ${shown}` : "Not set"}
          </option>
        )}
        {options.map((option) => (
          <option key={JSON.stringify(option)} value={JSON.stringify(option)}>
            {String(option)}
          </option>
        ))}
      </select>,
    );
  }
  if (schema.type === "boolean") {
    return (
      <div>
        <label className="flex min-h-8 items-center gap-2 font-medium">
          <input
            type="checkbox"
            {...tied}
            checked={value === undefined ? usual === true : value === true}
            onChange={(event) =>
              onChange(event.target.checked === (usual === true) ? undefined : event.target.checked)
            }
          />
          {labelOf(name)}
        </label>
        <Complaints path={path} id={id} />
        {schema.description && (
          <p id={`${id}-about`} className="m-0 text-sm text-soft">
            <Described text={schema.description} />
          </p>
        )}
      </div>
    );
  }
  if (schema.type === "integer" || schema.type === "number") {
    return field(
      <input
        {...tied}
        className={`${INPUT} max-w-40!`}
        inputMode="decimal"
        placeholder={shown}
        value={value === undefined ? "" : String(value)}
        onChange={(event) => onChange(numberOf(event.target.value))}
      />,
    );
  }
  if (schema.type === "string") {
    const text = {
      ...tied,
      placeholder: schema.placeholder ?? shown,
      spellCheck: false,
      value: typeof value === "string" ? value : "",
      onChange: (event: { target: { value: string } }) =>
        onChange(event.target.value || required ? event.target.value : undefined),
    };
    return field(
      schema.rows || LONG.test(name) ? (
        <textarea
          {...text}
          rows={schema.rows ?? 2}
          className={schema.isCode ? `${AREA} font-mono` : AREA}
        />
      ) : (
        <input {...text} className={INPUT} />
      ),
    );
  }
  return field(
    <AnyJson tied={tied} value={value} isObject={schema.type === "object"} onChange={onChange} />,
  );
}

/** Text is kept as it was typed while it is no number: the API says at this field what it wants. */
function numberOf(text: string): Json | undefined {
  if (text.trim() === "") return undefined;
  const number = Number(text);
  return Number.isFinite(number) && !/[.eE-]$|\.0*$/.test(text) ? number : text;
}

/** Any JSON; what is no JSON is a text, where it may be one. */
function AnyJson({ tied, value, isObject: mustBeObject, onChange }: AnyJsonProps) {
  const [text, setText] = useState(() => (value === undefined ? "" : written(value)));
  const [isWrong, setWrong] = useState(false);
  const change = (typed: string) => {
    setText(typed);
    setWrong(false);
    if (typed.trim() === "") return onChange(undefined);
    try {
      onChange(JSON.parse(typed) as Json);
    } catch {
      setWrong(mustBeObject);
      onChange(typed);
    }
  };
  return (
    <>
      <textarea
        {...tied}
        className={`${AREA} font-mono`}
        rows={1}
        spellCheck={false}
        placeholder={mustBeObject ? "{ }" : "Text, or JSON"}
        value={text}
        onChange={(event) => change(event.target.value)}
      />
      {isWrong && <p className="mt-1 mb-0 text-fail">Not JSON yet</p>}
    </>
  );
}

function written(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** A schema that may be null as the one that it is otherwise: null is to leave it out. */
function withoutNull(schema: Schema): Schema {
  const shapes = schema.anyOf;
  if (!shapes) return schema;
  const { anyOf: _, ...rest } = schema;
  const left = shapes.filter((shape) => shape.type !== "null");
  if (left.some((shape) => Object.keys(shape).length === 0)) return rest; // anything will do
  return left.length === 1 ? { ...left[0], ...rest } : { ...rest, anyOf: left };
}

function tagOf(schema: Schema): string | undefined {
  return Object.entries(schema.properties ?? {}).find(([, one]) => one.const !== undefined)?.[0];
}

function titleOf(schema: Schema): string {
  const tag = tagOf(schema);
  const named = tag && schema.properties?.[tag]?.const;
  if (schema.title || named) return schema.title ?? String(named);
  if (schema.enum) return schema.enum.map(String).join(" or ");
  const items = schema.items ? ` of ${titleOf(schema.items)}s` : "";
  return (schema.type ?? "JSON").replace("array", "list").replace("object", "mapping") + items;
}

function fits(schema: Schema, value: Json | undefined): boolean {
  if (value === undefined) return false;
  const tag = tagOf(schema);
  if (tag) return isObject(value) && value[tag] === schema.properties?.[tag]?.const;
  if (schema.enum) return schema.enum.includes(value);
  if (schema.type === "array") return Array.isArray(value);
  if (schema.type === "object") return isObject(value);
  if (schema.type === "integer" || schema.type === "number") return typeof value === "number";
  return schema.type === undefined || typeof value === schema.type;
}

/** What a value of a schema begins as. */
export function blank(schema: Schema): Json {
  if (schema.default !== undefined && schema.default !== null) return schema.default;
  if (schema.const !== undefined) return schema.const;
  const shape = schema.anyOf?.[0] ?? schema;
  if (shape.enum) return shape.enum[0] ?? null;
  if (shape.type === "object") {
    const tag = tagOf(shape);
    return tag ? { [tag]: shape.properties?.[tag]?.const ?? "" } : {};
  }
  if (shape.type === "array") return [];
  if (shape.type === "boolean") return false;
  if (shape.type === "integer" || shape.type === "number") return 0;
  return "";
}

interface FormProps {
  schema: Schema;
  value: JsonObject;
  onChange: (value: JsonObject) => void;
  path: string;
  omit?: readonly string[];
}

interface FoldedProps {
  names: string[];
  value: JsonObject;
  path: string;
  isAll: boolean;
  children: React.ReactNode;
}

export interface MemberProps {
  name: string;
  schema: Schema;
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
  path: string;
  required: boolean;
}

interface AnyJsonProps {
  tied: ReturnType<typeof useTied>;
  value: Json | undefined;
  isObject: boolean;
  onChange: (value: Json | undefined) => void;
}
