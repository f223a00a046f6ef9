import { useProject } from "../api/me";
import { PageTabs } from "../parts/Tabs";
import "./data.css";

/** What there is beside datasets. */
export function DataTabs() {
  const project = useProject();
  const pages = [
    [`/p/${project}/datasets`, "Datasets"],
    [`/p/${project}/jobs`, "Jobs"],
    [`/p/${project}/traces`, "Traces"],
  ] as const;
  return <PageTabs label="Data" pages={pages} />;
}
