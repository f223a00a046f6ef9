import type { ReactNode } from "react";
import { Command } from "./Command";
import "./parts.css";

/** Nothing is here yet: what to do next, with a command to copy. */
export function Empty({ title, command, children }: EmptyProps) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
      {command && <Command text={command} />}
    </div>
  );
}

interface EmptyProps {
  title: string;
  command?: string;
  children?: ReactNode;
}
