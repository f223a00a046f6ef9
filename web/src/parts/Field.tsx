import { createContext, type ReactNode, useContext } from "react";
import type { Fault } from "../api/problem";

/** What the API said is wrong, for the fields of a form to find what is theirs. */
export const Faults = createContext<readonly Fault[]>([]);

export function useFaults(path: string): Fault[] {
  return useContext(Faults).filter((fault) => fault.field === path);
}

/** Whether something is wrong with a field or with what is in it. */
export function useIsFaulty(path: string): boolean {
  return useContext(Faults).some(
    (fault) =>
      fault.field === path ||
      fault.field.startsWith(`${path}.`) ||
      fault.field.startsWith(`${path}[`),
  );
}

/** How everything looks that is written into or chosen from. */
export const INPUT = `min-h-8 w-full max-w-xl rounded-md border border-edge/60 bg-page px-2.5 py-1 text-base text-ink
  placeholder:text-soft hover:border-edge aria-invalid:border-fail disabled:bg-fill disabled:text-soft
  pointer-coarse:min-h-10 pointer-coarse:text-lg`;

/** How a text of several lines looks, which grows as it is written. */
export const AREA = `${INPUT} block max-h-120 max-w-none! field-sizing-content`;

/** How fields look that belong together inside a form. */
export const NESTED =
  "m-0 min-w-0 rounded-lg bg-sunk p-4 [&>legend]:float-left [&>legend]:mb-2 [&>legend]:w-full [&>legend]:font-medium [&>legend+*]:clear-both";

/** Fields beside each other with the button that they are for; below each other on a phone. */
export const FORM_ROW =
  "grid items-end gap-3 md:flex md:flex-wrap md:[&>*]:min-w-44 md:[&>button]:min-w-0";

/** A label, its control, what it is for, and what is wrong with it. */
export function Field({ id, label, path, about, required, children }: FieldProps) {
  return (
    <div className="min-w-0">
      <label htmlFor={id} className="mb-1 block font-medium">
        {label}
        {required && <span className="font-normal text-soft"> (required)</span>}
      </label>
      {children}
      <Complaints path={path} id={id} />
      {about && (
        <p id={`${id}-about`} className="mt-1 mb-0 text-sm text-soft">
          <Described text={about} />
        </p>
      )}
    </div>
  );
}

/** What is wrong with one field. */
export function Complaints({ path, id }: { path: string; id: string }) {
  const faults = useFaults(path);
  if (faults.length === 0) return null;
  return (
    <p id={`${id}-fault`} className="mt-1 mb-0 text-fail wrap-anywhere" role="alert">
      {faults.map((fault) => (
        <span key={fault.message} className="block">
          {fault.message}
          {fault.fix && ` – ${fault.fix}`}
        </span>
      ))}
    </p>
  );
}

/** Attributes that tie a control to what is said of it. */
export function useTied(id: string, path: string, about?: string) {
  const isWrong = useFaults(path).length > 0;
  const told = [isWrong ? `${id}-fault` : "", about ? `${id}-about` : ""].filter(Boolean).join(" ");
  return { id, "aria-invalid": isWrong || undefined, "aria-describedby": told || undefined };
}

/** A sentence of assay's own documentation, with its code marked. */
export function Described({ text }: { text: string }) {
  const parts = text.split(/`{1,2}/);
  return parts.map((part, place) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text have no other name
    place % 2 ? <code key={place}>{part}</code> : <span key={place}>{part}</span>,
  );
}

interface FieldProps {
  id: string;
  label: string;
  path: string;
  about?: string | undefined;
  required?: boolean | undefined;
  children: ReactNode;
}
