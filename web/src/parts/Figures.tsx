import type { ReactNode } from "react";

/** The numbers that a page is about, side by side: few, large, each with what it rests on. */
export function Figures({ children }: { children: ReactNode }) {
  return (
    <dl className="m-0 grid grid-cols-[repeat(auto-fit,minmax(148px,1fr))] gap-x-6 gap-y-6 md:gap-x-8">
      {children}
    </dl>
  );
}

/** One of them. */
export function Figure({ name, value, children }: FigureProps) {
  return (
    <div className="min-w-0">
      <dt className="text-sm text-soft">{name}</dt>
      {value !== undefined && (
        <dd className="m-0 text-2xl font-semibold tracking-tight tabular-nums">{value}</dd>
      )}
      {children && <dd className="m-0 mt-1 text-sm text-soft tabular-nums">{children}</dd>}
    </div>
  );
}

interface FigureProps {
  name: ReactNode;
  value?: ReactNode;
  children?: ReactNode;
}
