import { type ReactNode, useId, useState } from "react";
import { Button } from "./Button";
import { Pick } from "./Choice";
import { AREA, Complaints, Described, Field, INPUT, NESTED, useIsFaulty, useTied } from "./Field";
import { isFrom, isObject, type Json, type JsonObject, withMember } from "./json";
import {
  blank,
  fits,
  labelOf,
  type MemberProps,
  type Schema,
  tagOf,
  titleOf,
  withoutNull,
} from "./schema";

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

interface FormProps {
  schema: Schema;
  value: JsonObject;
  onChange: (value: JsonObject) => void;
  path: string;
  omit?: readonly string[];
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

interface FoldedProps {
  names: string[];
  value: JsonObject;
  path: string;
  isAll: boolean;
  children: ReactNode;
}

/** Where what one does with a field stands: at the end of the line of its label. */
const CORNER = "absolute -top-1.5 right-0";

/** One member: written here, or where in the row it stands. */
function Member(props: MemberProps) {
  const { name, value, onChange } = props;
  const schema = withoutNull(props.schema);
  const places = schema.fromRow;
  if (!places) return <Written {...props} schema={schema} />;
  const isGiven = isFrom(value);
  return (
    <div className="relative">
      {isGiven ? <FromRow {...props} schema={schema} /> : <Written {...props} schema={schema} />}
      <span className={schema.type === "boolean" && !isGiven ? "absolute top-0 right-0" : CORNER}>
        <Button
          tone="quiet"
          onPress={() => onChange(isGiven ? undefined : { from: places[0] ?? "" })}
        >
          {isGiven ? "Write it here" : "From the row"}
          <span className="sr-only"> for {labelOf(name)}</span>
        </Button>
      </span>
    </div>
  );
}

/** A place in the row that an option is taken from: `{from: expected}`. */
function FromRow({ name, schema, value, onChange, path, required }: MemberProps) {
  const id = useId();
  const at = `${path}.from`;
  return (
    <Field
      id={id}
      label={schema.label ?? labelOf(name)}
      path={at}
      about="Taken from each row or case: `expected`, `question` or `metadata.FIELD`."
      required={required}
    >
      <Pick
        {...useTied(id, at, "told")}
        isFree
        value={isFrom(value) ? String(value.from) : ""}
        options={schema.fromRow ?? []}
        change={(place) => onChange({ from: place })}
      />
      <Complaints path={path} id={`${id}-option`} />
    </Field>
  );
}

/** A value that is written: what stands for it follows from its schema. */
function Written(props: MemberProps) {
  const { schema, value, onChange, path } = props;
  const Own = schema.control;
  if (Own) return <Own {...props} />;
  const shapes = schema.anyOf ?? schema.oneOf;
  if (shapes) return <Choice {...props} shapes={shapes} />;
  if (schema.type === "object" && schema.properties) {
    return (
      <fieldset className={NESTED}>
        <legend>{labelOf(props.name)}</legend>
        <About schema={schema} />
        <SchemaForm
          schema={schema}
          value={isObject(value) ? value : {}}
          path={path}
          onChange={(changed) => onChange(Object.keys(changed).length ? changed : undefined)}
        />
      </fieldset>
    );
  }
  if (schema.type === "array" && schema.items) return <Items {...props} />;
  return <Control {...props} />;
}

/** What fields that belong together are for. */
function About({ schema }: { schema: Schema }) {
  if (!schema.description) return null;
  return (
    <p className="m-0 mb-3 text-sm text-soft">
      <Described text={schema.description} />
    </p>
  );
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
      <About schema={schema} />
      <Complaints path={path} id={id} />
      {items.map((item, place) => (
        <div
          // biome-ignore lint/suspicious/noArrayIndexKey: an item of plain JSON is known by its place
          key={place}
          className={isFixed ? "mr-4 inline-block" : "relative mb-4 border-b border-line pb-4"}
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
            <span className={CORNER}>
              <Button
                tone="quiet"
                onPress={() => without(place)}
                aria-label={`Remove ${labelOf(one)} ${place + 1}`}
              >
                Remove
              </Button>
            </span>
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
  const { shapes, value, onChange, path, required } = props;
  const found = shapes.findIndex((shape) => fits(shape, value));
  const chosen = shapes[found];
  const tag = chosen && tagOf(chosen);
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-3">
      <OneOf
        {...props}
        chosen={found}
        names={shapes.map(titleOf)}
        none={required ? (chosen ? null : "Choose …") : "Not set"}
        choose={(place) => {
          const shape = shapes[place];
          onChange(shape && blank(shape));
        }}
      />
      {chosen?.properties ? (
        <>
          <About schema={chosen} />
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

/** A list of a few names, by their places; none of them is -1, where that may be chosen. */
function OneOf({ chosen, names, none, choose, ...props }: OneOfProps) {
  return (
    <Labelled {...props}>
      {(tied) => (
        <select
          {...tied}
          className={`${INPUT} w-auto! min-w-50`}
          value={chosen}
          onChange={(event) => choose(Number(event.target.value))}
        >
          {none !== null && <option value={-1}>{none}</option>}
          {names.map((name, place) => (
            <option key={name} value={place}>
              {name}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  );
}

interface OneOfProps extends MemberProps {
  chosen: number;
  names: readonly string[];
  /** What it is called that none is chosen; null where one has to be. */
  none: string | null;
  choose: (place: number) => void;
}

/** A control with its label, what it is for, and what is wrong with it. */
function Labelled({ name, schema, path, required, children }: LabelledProps) {
  const id = useId();
  const tied = useTied(id, path, schema.description);
  return (
    <Field
      id={id}
      label={schema.label ?? labelOf(name)}
      path={path}
      about={schema.description}
      required={required}
    >
      {children(tied)}
    </Field>
  );
}

type Tied = ReturnType<typeof useTied>;
type LabelledProps = MemberProps & { children: (tied: Tied) => ReactNode };

const ENDS = ["lowest", "highest"];
const LONG = /criteria|template|source|description|prompt|input|content|cmd|reasoning|output/;

/** One value. */
function Control(props: MemberProps) {
  const { name, schema, value, onChange, required } = props;
  const usual = schema.default ?? "";
  const shown = typeof usual === "object" ? JSON.stringify(usual) : String(usual);
  if (schema.enum) {
    const options = schema.enum;
    const unset = required ? "Choose …" : shown ? `Default: ${shown}` : "Not set";
    return (
      <OneOf
        {...props}
        chosen={value === undefined ? -1 : options.indexOf(value)}
        names={options.map(String)}
        none={required && value !== undefined ? null : unset}
        choose={(place) => onChange(options[place])}
      />
    );
  }
  if (schema.type === "boolean") return <Check {...props} />;
  return (
    <Labelled {...props}>
      {(tied) => {
        if (schema.type === "integer" || schema.type === "number") {
          return (
            <input
              {...tied}
              className={`${INPUT} max-w-40!`}
              inputMode="decimal"
              placeholder={shown}
              value={value === undefined ? "" : String(value)}
              onChange={(event) => onChange(numberOf(event.target.value))}
            />
          );
        }
        if (schema.type !== "string") {
          const isPlain = schema.type === "object";
          return <AnyJson tied={tied} value={value} isObject={isPlain} onChange={onChange} />;
        }
        const text = {
          ...tied,
          placeholder: schema.placeholder ?? shown,
          spellCheck: false,
          value: typeof value === "string" ? value : "",
          onChange: (event: { target: { value: string } }) =>
            onChange(event.target.value || required ? event.target.value : undefined),
        };
        if (!schema.rows && !LONG.test(name)) return <input {...text} className={INPUT} />;
        const look = schema.isCode ? `${AREA} font-mono` : AREA;
        return <textarea {...text} rows={schema.rows ?? 2} className={look} />;
      }}
    </Labelled>
  );
}

/** Yes or no; what is as usual is not written. */
function Check({ name, schema, value, onChange, path }: MemberProps) {
  const id = useId();
  const isUsual = schema.default === true;
  return (
    <div>
      <label className="flex min-h-8 items-center gap-2 font-medium">
        <input
          type="checkbox"
          {...useTied(id, path, schema.description)}
          checked={value === undefined ? isUsual : value === true}
          onChange={({ target }) =>
            onChange(target.checked === isUsual ? undefined : target.checked)
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

interface AnyJsonProps extends Pick<MemberProps, "value" | "onChange"> {
  tied: Tied;
  isObject: boolean;
}
