import { useQueryClient } from "@tanstack/react-query";
import { $api } from "../api/client";
import { Confirm } from "../parts/Dialog";
import { count, whole } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import { DATASETS, type Dataset } from "./queries";

/** Says what would be lost with a dataset, and deletes it. */
export function DeleteDataset({ project, dataset, close, done }: Props) {
  const known = useQueryClient();
  const path = { project, key: dataset.key };
  const use = $api.useQuery(
    "get",
    "/api/v1/projects/{project}/datasets/{key}/use",
    { params: { path } },
    { staleTime: 0 },
  );
  const remove = $api.useMutation("delete", "/api/v1/projects/{project}/datasets/{key}", {
    onSuccess: async () => {
      done();
      await known.invalidateQueries(DATASETS);
    },
  });
  const isUsed = (use.data?.jobs ?? 0) > 0;
  return (
    <Confirm
      title={`Delete ${dataset.key}?`}
      action="Delete"
      isDisabled={!use.data}
      work={remove}
      close={close}
      confirm={() => remove.mutate({ params: { path, query: { force: isUsed } } })}
    >
      {use.isPending && <Loading what="Looking who uses it" />}
      {use.error && <ProblemBox problem={use.error} />}
      {use.data && (
        <ul className="m-0 list-disc pl-5">
          <li>{count(dataset.rows, "row")} will be gone for good.</li>
          {isUsed && (
            <li>
              {count(use.data.jobs, "job")} graded it: the {count(use.data.scores, "score")} of
              these stay, but no row can be read beside them any more.
            </li>
          )}
          {use.data.active > 0 && (
            <li>{whole(use.data.active)} of them at work will be cancelled.</li>
          )}
        </ul>
      )}
    </Confirm>
  );
}

interface Props {
  project: string;
  dataset: Dataset;
  close: () => void;
  done: () => void;
}
