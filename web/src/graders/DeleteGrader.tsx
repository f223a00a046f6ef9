import { useState } from "react";
import { useNavigate } from "react-router";
import { $api } from "../api/client";
import { Confirm } from "../parts/Dialog";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import { TextField } from "../parts/TextField";
import { useForget } from "./queries";

/** Deletes a grader: says first what that means; its key is typed where something depends on it. */
export function DeleteGrader({ project, grader, close }: DeleteProps) {
  const path = { project, key: grader };
  const usage = $api.useQuery("get", "/api/v1/projects/{project}/graders/{key}/use", {
    params: { path },
  });
  const [typed, setTyped] = useState("");
  const forget = useForget();
  const navigate = useNavigate();
  const isActive = (usage.data?.use.active_jobs ?? 0) > 0;
  const isUsed = isActive || (usage.data?.use.scores ?? 0) > 0;
  const remove = $api.useMutation("delete", "/api/v1/projects/{project}/graders/{key}", {
    onSuccess: () => {
      navigate(`/p/${project}/graders`, { replace: true });
      forget();
    },
    onError: () => usage.refetch(),
  });
  return (
    <Confirm
      title={`Delete ${grader}?`}
      action="Delete"
      isDisabled={!usage.data || (isUsed && typed !== grader)}
      work={remove}
      close={close}
      confirm={() => remove.mutate({ params: { path, query: { force: isActive } } })}
    >
      {usage.error && <ProblemBox problem={usage.error} retry={() => usage.refetch()} />}
      {usage.isPending && <Loading what="Looking what depends on it" />}
      <ul className="m-0 list-disc pl-5">
        {usage.data?.consequences.map((said) => (
          <li key={said}>{said}</li>
        ))}
      </ul>
      {isUsed && (
        <div className="mt-4">
          <TextField
            label="Type the key to delete it all the same"
            className="font-mono"
            autoComplete="off"
            spellCheck={false}
            value={typed}
            change={setTyped}
          />
        </div>
      )}
    </Confirm>
  );
}

interface DeleteProps {
  project: string;
  grader: string;
  close: () => void;
}
