import type { ReactNode } from "react";

/** A part of a panel, under a small heading. */
export function Titled({ title, beside, children }: TitledProps) {
  return (
    <div className="min-w-0">
      <div className="mb-1.5 flex flex-wrap items-baseline justify-between gap-x-4">
        <h3 className="m-0 text-sm font-medium text-soft">{title}</h3>
        {beside}
      </div>
      {children}
    </div>
  );
}

interface TitledProps {
  title: ReactNode;
  beside?: ReactNode;
  children: ReactNode;
}
