import { type ComponentProps, useId } from "react";
import { AREA, Field, INPUT, useTied } from "./Field";

/**
 * What somebody writes, with its label: in one line, or in `lines` and as many more as it takes.
 *
 * @param path Where the API says what is wrong with it.
 */
export function TextField({
  label,
  path = NOWHERE,
  about,
  lines,
  change,
  ...rest
}: TextFieldProps) {
  const id = useId();
  const tied = useTied(id, path, about);
  const { className = "", ...input } = rest;
  return (
    <Field id={id} label={label} path={path} about={about} required={rest.required}>
      {lines ? (
        <textarea
          {...(input as ComponentProps<"textarea">)}
          {...tied}
          rows={lines}
          className={`${AREA} ${className}`}
          onChange={(event) => change(event.target.value)}
        />
      ) : (
        <input
          {...input}
          {...tied}
          className={`${INPUT} ${className}`}
          onChange={(event) => change(event.target.value)}
        />
      )}
    </Field>
  );
}

const NOWHERE = "no field of the API";

export interface TextFieldProps extends Omit<ComponentProps<"input">, "onChange" | "id"> {
  label: string;
  path?: string;
  about?: string;
  lines?: number;
  change: (text: string) => void;
}
