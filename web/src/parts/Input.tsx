import type { InputHTMLAttributes } from "react";
import { INPUT } from "./Field";

/** A line that is written, below its label. */
export function Input({ label, value, change, ...rest }: InputProps) {
  return (
    <label className="grid gap-1 font-medium">
      {label}
      <input
        {...rest}
        data-rac=""
        value={value}
        onChange={(event) => change(event.target.value)}
        className={`${INPUT} font-normal`}
      />
    </label>
  );
}

interface InputProps extends Omit<InputHTMLAttributes<HTMLInputElement>, "onChange" | "className"> {
  label: string;
  value: string;
  change: (value: string) => void;
}

/** Fields beside each other with the button that they are for; below each other on a phone. */
export const FORM_ROW =
  "grid items-end gap-3 md:flex md:flex-wrap md:[&>*]:min-w-44 md:[&>button]:min-w-0";
