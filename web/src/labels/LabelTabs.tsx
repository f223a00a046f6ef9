import { PageTabs } from "../parts/Tabs";

/** What people said, and how far graders agree with it. */
export function LabelTabs({ project }: { project: string }) {
  const pages = [
    [`/p/${project}/labels`, "Label sets"],
    [`/p/${project}/calibrations`, "Calibrations"],
  ] as const;
  return <PageTabs label="Labels" pages={pages} />;
}
