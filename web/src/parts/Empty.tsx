import type { ReactNode } from "react";
import { Command } from "./Command";

/** Nothing is here yet: what it would be, and what to do next, with a command to copy. */
export function Empty({ title, command, children }: EmptyProps) {
  return (
    <div className="grid max-w-2xl justify-items-start gap-3 rounded-lg bg-sunk p-6 [&_p]:m-0">
      <h2 className="m-0 text-lg font-semibold">{title}</h2>
      {children && <div className="grid justify-items-start gap-2 text-soft">{children}</div>}
      {command && <Command text={command} />}
    </div>
  );
}

interface EmptyProps {
  title: string;
  command?: string;
  children?: ReactNode;
}
