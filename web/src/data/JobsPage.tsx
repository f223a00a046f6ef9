import { useSearchParams } from "react-router";
import { useProject } from "../api/me";
import { Choice } from "../parts/Choice";
import { DataPage } from "./DataPage";
import { JobTable } from "./JobTable";
import { type Job, useJobs } from "./queries";

const STATES: readonly Job["status"][] = ["queued", "running", "finished", "failed", "cancelled"];

export default function JobsPage() {
  const project = useProject();
  const [view, setView] = useSearchParams();
  const status = STATES.find((one) => one === view.get("status"));
  const jobs = useJobs(project, status ? { status } : {});
  return (
    <DataPage
      title="Jobs"
      actions={
        <Choice
          label="State"
          isInline
          value={status ?? ""}
          options={[["", "all"] as const, ...STATES.map((one) => [one, one] as const)]}
          change={(key) => setView(key ? { status: key } : {})}
        />
      }
    >
      <JobTable project={project} jobs={jobs} />
    </DataPage>
  );
}
