import { type ReactNode, useId } from "react";
import {
  Button as Base,
  ComboBox,
  Input,
  ListBox,
  ListBoxItem,
  Popover,
} from "react-aria-components";
import { INPUT } from "./Field";
import { Icon } from "./Icon";
import { OPTION, POPOVER } from "./Menu";

/** One of a few, known beforehand: the browser's own list, which every phone shows well. */
export function Choice<Key extends string>({
  label,
  isInline,
  value,
  options,
  change,
  ...rest
}: ChoiceProps<Key>) {
  const id = useId();
  return (
    <span className={isInline ? "inline-flex items-center gap-2" : "grid gap-1"}>
      <label
        htmlFor={id}
        className={isInline === "hidden" ? "sr-only" : isInline ? "text-soft" : "font-medium"}
      >
        {label}
      </label>
      <select
        {...rest}
        id={id}
        value={value}
        onChange={(event) => change(event.target.value as Key)}
        className={isInline ? `${INPUT} w-auto` : INPUT}
      >
        {options.map(([key, name]) => (
          <option key={key} value={key}>
            {name}
          </option>
        ))}
      </select>
    </span>
  );
}

interface ChoiceProps<Key extends string> {
  label: string;
  /** Whether the label stands beside it, or is for who cannot see it alone. */
  isInline?: boolean | "hidden";
  value: Key;
  options: readonly (readonly [Key, string])[];
  change: (key: Key) => void;
  disabled?: boolean;
}

/** One of many, found by writing; what is written counts, too, where `isFree`. */
export function Pick({
  label,
  value,
  options,
  change,
  isFree = false,
  placeholder,
  note,
  ...tied
}: PickProps) {
  return (
    <ComboBox
      {...(label === undefined ? {} : { "aria-label": label })}
      inputValue={value}
      onInputChange={change}
      allowsCustomValue={isFree}
      menuTrigger="focus"
      className="relative w-full max-w-xl"
    >
      <Input {...tied} {...(placeholder ? { placeholder } : {})} className={`${INPUT} pr-8`} />
      <Base className="absolute inset-y-0 right-0 grid w-8 place-items-center border-0 bg-transparent text-soft">
        <Icon name="down" size={14} />
      </Base>
      <Popover className={`${POPOVER} w-(--trigger-width)`}>
        <ListBox className="max-h-72 overflow-auto outline-none">
          {options.map((name) => (
            <ListBoxItem
              key={name}
              id={name}
              textValue={name}
              className={`${OPTION} justify-between`}
            >
              <span className="truncate">{name}</span>
              {note && <span className="text-sm text-soft">{note(name)}</span>}
            </ListBoxItem>
          ))}
        </ListBox>
      </Popover>
    </ComboBox>
  );
}

interface PickProps {
  label?: string;
  value: string;
  options: readonly string[];
  change: (value: string) => void;
  isFree?: boolean;
  placeholder?: string;
  note?: (name: string) => ReactNode;
  id?: string;
}
