import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { api, ask } from "../api/client";
import { every } from "../api/pages";
import { Dialog } from "../parts/Dialog";
import { Empty } from "../parts/Empty";
import { count } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import type { Dataset } from "./queries";

/** Chooses the grader that a job runs over a dataset. */
export function GradeDialog({ project, dataset, close }: Props) {
  const go = useNavigate();
  const known = useQueryClient();
  const [chosen, setChosen] = useState("");
  const graders = useQuery({
    queryKey: ["graders-to-run", project],
    queryFn: ({ signal }) =>
      every((how) =>
        ask(
          api.GET("/api/v1/projects/{project}/graders", {
            params: { path: { project }, query: how },
            signal,
          }),
        ),
      ),
  });
  // Scores of the kind `custom` come from elsewhere: there is nothing to run.
  const able = graders.data?.filter((one) => one.latest.kind !== "custom");
  const grader = chosen || able?.[0]?.key || "";
  const start = useMutation({
    mutationFn: () =>
      ask(
        api.POST("/api/v1/projects/{project}/jobs", {
          params: { path: { project } },
          body: { grader, dataset: dataset.key },
        }),
      ),
    onSuccess: async (job) => {
      await known.invalidateQueries({ queryKey: ["jobs", project] });
      go(`/p/${project}/jobs/${job.id}`);
    },
  });
  return (
    <Dialog title={`Grade ${dataset.key}`} close={close}>
      {graders.isPending && <Loading what="Loading graders" />}
      {graders.error && <ProblemBox problem={graders.error} />}
      {able?.length === 0 && (
        <Empty title="There is no grader to run yet" command="assay graders --help">
          <p>Make one under Graders, or store a file of graders.</p>
        </Empty>
      )}
      {able && able.length > 0 && (
        <label>
          <span>Grader</span>
          <select value={grader} onChange={(event) => setChosen(event.target.value)}>
            {able.map((one) => (
              <option key={one.key} value={one.key}>
                {one.key}@{one.latest.number} ({one.latest.kind}){one.name ? ` – ${one.name}` : ""}
              </option>
            ))}
          </select>
        </label>
      )}
      <p className="soft">
        The newest version grades {count(dataset.rows, "row")} in the background, also while this
        page is closed.
      </p>
      {start.error && <ProblemBox problem={start.error} />}
      <div className="row end">
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button
          type="button"
          className="primary"
          disabled={!grader || start.isPending}
          onClick={() => start.mutate()}
        >
          Start
        </button>
      </div>
    </Dialog>
  );
}

interface Props {
  project: string;
  dataset: Dataset;
  close: () => void;
}
