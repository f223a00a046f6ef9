import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { $api, api, ask } from "../api/client";
import { every } from "../api/pages";
import { Choice } from "../parts/Choice";
import { FormDialog } from "../parts/Dialog";
import { Empty } from "../parts/Empty";
import { count } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import { type Dataset, JOBS } from "./queries";

/** Chooses the grader that a job runs over a dataset. */
export function GradeDialog({ project, dataset, close }: Props) {
  const go = useNavigate();
  const known = useQueryClient();
  const [chosen, setChosen] = useState("");
  const graders = useQuery({
    queryKey: ["graders-to-run", project],
    queryFn: ({ signal }) =>
      every((query) =>
        ask(
          api.GET("/api/v1/projects/{project}/graders", {
            params: { path: { project }, query },
            signal,
          }),
        ),
      ),
  });
  // Scores of the kind `custom` come from elsewhere: there is nothing to run.
  const able = graders.data?.filter((one) => one.latest.kind !== "custom");
  const grader = chosen || able?.[0]?.key || "";
  const start = $api.useMutation("post", "/api/v1/projects/{project}/jobs", {
    onSuccess: async (job) => {
      await known.invalidateQueries(JOBS);
      go(`/p/${project}/jobs/${job.id}`);
    },
  });
  return (
    <FormDialog
      title={`Grade ${dataset.key}`}
      action="Start"
      isDisabled={!grader}
      work={start}
      close={close}
      submit={() =>
        start.mutate({ params: { path: { project } }, body: { grader, dataset: dataset.key } })
      }
    >
      {graders.isPending && <Loading what="Loading graders" />}
      {graders.error && <ProblemBox problem={graders.error} />}
      {able?.length === 0 && (
        <Empty title="There is no grader to run yet" command="assay graders --help">
          <p>Make one under Graders, or store a file of graders.</p>
        </Empty>
      )}
      {able && able.length > 0 && (
        <Choice
          label="Grader"
          value={grader}
          options={able.map(
            ({ key, name, latest }) =>
              [key, `${key}@${latest.number} (${latest.kind})${name ? ` – ${name}` : ""}`] as const,
          )}
          change={setChosen}
        />
      )}
      <p className="m-0 text-soft">
        The newest version grades {count(dataset.rows, "row")} in the background, also while this
        page is closed.
      </p>
    </FormDialog>
  );
}

interface Props {
  project: string;
  dataset: Dataset;
  close: () => void;
}
