import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { $api } from "../../api/client";
import { useMay } from "../../api/me";
import { Button } from "../../parts/Button";
import { count } from "../../parts/figures";
import { ProblemBox } from "../../parts/ProblemBox";
import { type CellView, forgetCells } from "./asking";
import { Pop } from "./Pop";

const EVERY_MS = 500;
const PATH = "/api/v1/runs/{run}/regrade";

/** Grades this cell, or the whole run, again in the background of the server. */
export function Regrade({ cell }: { cell: CellView }) {
  const client = useQueryClient();
  const may = useMay("editor", "default");
  const init = { params: { path: { run: cell.run } } };
  const { data: state } = $api.useQuery("get", PATH, init, {
    refetchInterval: (query) => (query.state.data?.status === "running" ? EVERY_MS : false),
  });
  const begin = $api.useMutation("post", PATH, {
    onSuccess: (begun) => client.setQueryData($api.queryOptions("get", PATH, init).queryKey, begun),
  });
  const regrade = (isWhole: boolean) => {
    const body = isWhole ? { case: null, harness: "", model: "", trial: 1 } : cell.place;
    begin.mutate({ ...init, body });
  };
  const now = state?.status;
  const before = useRef(now);
  useEffect(() => {
    if (before.current === "running" && now !== "running") void forgetCells(client);
    before.current = now;
  }, [now, client]);
  const isRunning = now === "running" || begin.isPending;
  return (
    <Pop name="Grade again">
      <p className="text-soft">
        From what was kept, with the graders that the case has now. No agent runs; judges are asked
        again where the cache has no answer of theirs. The old results stay.
      </p>
      <div className="flex flex-wrap gap-2">
        <Button
          tone="primary"
          isDisabled={!may}
          isPending={isRunning}
          onPress={() => regrade(false)}
        >
          This cell
        </Button>
        <Button isDisabled={!may} isPending={isRunning} onPress={() => regrade(true)}>
          The whole run
        </Button>
      </div>
      {!may && <p className="text-soft">This needs the role editor.</p>}
      <output aria-live="polite">
        {now === "running" && state && (
          <>
            <progress
              aria-label="Graded again"
              value={state.done}
              max={state.total || undefined}
              className="h-1.5 w-full accent-accent"
            />{" "}
            {state.total
              ? `${state.done} of ${count(state.total, "cell")} graded again`
              : "reading the cases …"}
          </>
        )}
        {now === "finished" && state && `${count(state.done, "cell")} graded again.`}
        {state &&
          state.left_out > 0 &&
          now !== "running" &&
          ` ${state.left_out} kept nothing to grade.`}
      </output>
      {now === "failed" && state && (
        <p role="alert" className="text-fail">
          It was not graded again: {state.message}
        </p>
      )}
      {begin.error && <ProblemBox problem={begin.error} />}
    </Pop>
  );
}
