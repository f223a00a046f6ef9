import { useProject } from "../api/me";
import { useAddress } from "../parts/address";
import { Choice } from "../parts/Choice";
import { DataPage } from "./DataPage";
import { JobTable } from "./JobTable";
import { type Job, useJobs } from "./queries";

const STATES: readonly Job["status"][] = ["queued", "running", "finished", "failed", "cancelled"];

export default function JobsPage() {
  const project = useProject();
  const [at, change] = useAddress({ status: "" });
  const status = STATES.find((one) => one === at.status);
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
          change={(key) => change({ status: key })}
        />
      }
    >
      <JobTable project={project} jobs={jobs} />
    </DataPage>
  );
}
