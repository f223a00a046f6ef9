import type { ReactNode } from "react";
import { usePageTitle } from "./title";

/**
 * A page: where one is, what it is called, what is said of it in a line, and what one does here.
 *
 * @param tab What the browser's tab says, where the title is no text.
 * @param crumbs Leads back.
 * @param facts What is known of it, small.
 */
export function Page({ title, tab, crumbs, facts, actions, children }: PageProps) {
  usePageTitle(tab ?? (typeof title === "string" ? title : "assay"));
  return (
    <div className="mx-auto max-w-[1440px] px-4 pt-5 pb-16 md:px-8 md:pt-8">
      <header className="mb-6 flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
        <div className="min-w-0 flex-[1_1_360px]">
          {crumbs && <p className="m-0 mb-1 text-sm text-soft [&_a]:no-underline">{crumbs}</p>}
          {title && (
            <h1 className="m-0 text-xl font-semibold tracking-tight wrap-anywhere">{title}</h1>
          )}
          {facts && <Facts>{facts}</Facts>}
        </div>
        {actions && (
          // What is done seldom begins a row at its end, and none on a phone, where it is read from its beginning.
          <div className="flex flex-wrap items-center gap-2 max-md:[&>[aria-haspopup]]:order-last">
            {actions}
          </div>
        )}
      </header>
      {children}
    </div>
  );
}

interface PageProps {
  title: ReactNode;
  tab?: string;
  crumbs?: ReactNode;
  facts?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

/** Small truths in a line; a `b` in it is what they are about. */
export function Facts({ children }: { children: ReactNode }) {
  return (
    <p
      className="mt-1.5 mb-0 flex flex-wrap items-center gap-x-4 gap-y-1 text-sm text-soft wrap-anywhere [&_b]:font-medium
        [&_b]:text-ink [&_b]:tabular-nums"
    >
      {children}
    </p>
  );
}

/** Parts of a page, with room between them. */
export function Stack({ children }: { children: ReactNode }) {
  return <div className="grid grid-cols-[minmax(0,1fr)] gap-10">{children}</div>;
}

/** Something that the reader has to know before the rest. */
export function Notice({ tone = "error", children }: NoticeProps) {
  const look = { error: "bg-error-soft text-error", accent: "bg-accent-soft text-accent" }[tone];
  return (
    <div className={`mb-4 rounded-lg px-4 py-2.5 wrap-anywhere [&_a]:text-inherit ${look}`}>
      {children}
    </div>
  );
}

interface NoticeProps {
  tone?: "error" | "accent";
  children: ReactNode;
}

/** A word beside a name: a kind, a state. */
export function Badge({ tone = "plain", title, children }: BadgeProps) {
  const look = {
    plain: "bg-fill text-soft",
    error: "bg-error-soft text-error",
    accent: "bg-accent-soft text-accent",
    flag: "bg-flag-soft text-flag",
  }[tone];
  return (
    <span
      title={title}
      className={`inline-flex max-w-full items-center gap-1 rounded-full px-2 text-xs leading-5 font-normal ${look}`}
    >
      {children}
    </span>
  );
}

interface BadgeProps {
  tone?: "plain" | "error" | "accent" | "flag";
  title?: string;
  children: ReactNode;
}

/** Names with what is said of each. */
export function Named({ rows }: { rows: readonly (readonly [ReactNode, ReactNode])[] }) {
  return (
    <dl className="m-0 grid grid-cols-[minmax(96px,max-content)_minmax(0,1fr)] gap-x-6 gap-y-2">
      {rows.map(([name, value], place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a row is known by its place
        <div key={place} className="contents">
          <dt className="text-soft">{name}</dt>
          <dd className="m-0 wrap-anywhere">{value}</dd>
        </div>
      ))}
    </dl>
  );
}
