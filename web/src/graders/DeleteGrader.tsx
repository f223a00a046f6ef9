import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { api, ask } from "../api/client";
import { Confirm } from "../parts/Dialog";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import { useForget, useUsage } from "./queries";

/** Deletes a grader: says first what that means; its key is typed where something depends on it. */
export function DeleteGrader({ project, grader, close }: DeleteProps) {
  const usage = useUsage(project, grader);
  const [typed, setTyped] = useState("");
  const forget = useForget();
  const navigate = useNavigate();
  const isActive = (usage.data?.use.active_jobs ?? 0) > 0;
  const isUsed = isActive || (usage.data?.use.scores ?? 0) > 0;
  const remove = useMutation({
    mutationFn: () =>
      ask(
        api.DELETE("/api/v1/projects/{project}/graders/{key}", {
          params: { path: { project, key: grader }, query: { force: isActive } },
        }),
      ),
    onSuccess: () => {
      navigate(`/p/${project}/graders`, { replace: true });
      forget(project);
    },
    onError: () => usage.refetch(),
  });
  return (
    <Confirm
      title={`Delete ${grader}?`}
      action="Delete"
      disabled={!usage.data || (isUsed && typed !== grader) || remove.isPending}
      close={close}
      confirm={() => remove.mutate()}
    >
      {usage.error && <ProblemBox problem={usage.error} retry={() => usage.refetch()} />}
      {usage.isPending && <Loading what="Looking what depends on it" />}
      {usage.data && (
        <ul>
          {usage.data.consequences.map((said) => (
            <li key={said}>{said}</li>
          ))}
        </ul>
      )}
      {isUsed && (
        <label className="field">
          <span>Type the key to delete it all the same</span>
          <input
            className="mono"
            autoComplete="off"
            spellCheck={false}
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
        </label>
      )}
      {remove.error && <ProblemBox problem={remove.error} />}
    </Confirm>
  );
}

interface DeleteProps {
  project: string;
  grader: string;
  close: () => void;
}
