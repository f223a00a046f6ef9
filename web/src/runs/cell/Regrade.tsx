import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { api, ask } from "../../api/client";
import { useMay } from "../../api/me";
import { count } from "../../parts/figures";
import { ProblemBox } from "../../parts/ProblemBox";
import { type CellView, forgetCells } from "./asking";
import { Menu } from "./Menu";

const EVERY_MS = 500;

/** Grades this cell, or the whole run, again in the background of the server. */
export function Regrade({ cell }: { cell: CellView }) {
  const client = useQueryClient();
  const may = useMay("editor", "default");
  const key = ["regrade", cell.run];
  const state = useQuery({
    queryKey: key,
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/runs/{run}/regrade", { params: { path: { run: cell.run } }, signal })),
    refetchInterval: (query) => (query.state.data?.status === "running" ? EVERY_MS : false),
  });
  const begin = useMutation({
    mutationFn: (isWhole: boolean) =>
      ask(
        api.POST("/api/v1/runs/{run}/regrade", {
          params: { path: { run: cell.run } },
          body: isWhole ? { case: null, harness: "", model: "", trial: 1 } : cell.place,
        }),
      ),
    onSuccess: (begun) => client.setQueryData(key, begun),
  });
  const now = state.data?.status;
  const before = useRef(now);
  useEffect(() => {
    if (before.current === "running" && now !== "running") void forgetCells(client);
    before.current = now;
  }, [now, client]);
  const isRunning = now === "running" || begin.isPending;
  return (
    <Menu name="Grade again">
      <p className="soft">
        From what was kept, with the graders that the case has now. No agent runs; judges are asked
        again where the cache has no answer of theirs. The old results stay.
      </p>
      <div className="row">
        <button type="button" disabled={!may || isRunning} onClick={() => begin.mutate(false)}>
          This cell
        </button>
        <button type="button" disabled={!may || isRunning} onClick={() => begin.mutate(true)}>
          The whole run
        </button>
      </div>
      {!may && <p className="soft">This needs the role editor.</p>}
      <output aria-live="polite">
        {now === "running" && state.data && (
          <>
            <progress
              aria-label="Graded again"
              value={state.data.done}
              max={state.data.total || undefined}
            />{" "}
            {state.data.total
              ? `${state.data.done} of ${count(state.data.total, "cell")} graded again`
              : "reading the cases …"}
          </>
        )}
        {now === "finished" && state.data && `${count(state.data.done, "cell")} graded again.`}
        {(state.data?.left_out ?? 0) > 0 &&
          now !== "running" &&
          ` ${state.data?.left_out} kept nothing to grade.`}
      </output>
      {now === "failed" && state.data && (
        <p role="alert" className="failed">
          It was not graded again: {state.data.message}
        </p>
      )}
      {begin.error && <ProblemBox problem={begin.error} />}
    </Menu>
  );
}
