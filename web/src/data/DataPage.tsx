import type { ReactNode } from "react";
import { useProject } from "../api/me";
import { Page } from "../parts/Page";
import { PageTabs } from "../parts/Tabs";

/** A page beside datasets, jobs and traces, which stand above it. */
export function DataPage({ title, actions, children }: DataPageProps) {
  const project = useProject();
  const pages = [
    [`/p/${project}/datasets`, "Datasets"],
    [`/p/${project}/jobs`, "Jobs"],
    [`/p/${project}/traces`, "Traces"],
  ] as const;
  return (
    <Page title={title} actions={actions}>
      <PageTabs label="Data" pages={pages} />
      {children}
    </Page>
  );
}

interface DataPageProps {
  title: string;
  actions?: ReactNode;
  children: ReactNode;
}

/** What is chosen in a list beside it; on a phone below. */
export function Beside({ list, children }: { list: ReactNode; children: ReactNode }) {
  return (
    <div
      className={`grid grid-cols-[minmax(0,1fr)] items-start gap-6 ${
        children ? "lg:grid-cols-[minmax(0,1fr)_minmax(360px,42%)]" : ""
      }`}
    >
      {list}
      {children}
    </div>
  );
}
