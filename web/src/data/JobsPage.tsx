import { useSearchParams } from "react-router";
import { useProject } from "../api/me";
import { usePageTitle } from "../parts/title";
import { DataTabs } from "./DataTabs";
import { JobTable } from "./JobTable";
import { type Job, useJobs } from "./queries";

const STATES: readonly Job["status"][] = ["queued", "running", "finished", "failed", "cancelled"];

export default function JobsPage() {
  usePageTitle("Jobs");
  const project = useProject();
  const [view, setView] = useSearchParams();
  const status = STATES.find((one) => one === view.get("status"));
  const jobs = useJobs(project, status ? { status } : {});
  return (
    <div className="page">
      <DataTabs />
      <div className="page-head">
        <h1>Jobs</h1>
        <label className="row">
          <span className="soft">State</span>
          <select
            value={status ?? ""}
            onChange={(event) => setView(event.target.value ? { status: event.target.value } : {})}
          >
            <option value="">all</option>
            {STATES.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
      </div>
      <JobTable project={project} jobs={jobs} />
    </div>
  );
}
