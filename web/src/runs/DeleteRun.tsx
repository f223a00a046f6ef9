import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, ask, type Schemas } from "../api/client";
import { useMay } from "../api/me";
import { Confirm } from "../parts/Dialog";
import { count } from "../parts/figures";
import { ProblemBox } from "../parts/ProblemBox";
import { runName } from "./names";

/** A button that deletes a run, after saying what goes with it; disabled for who may not. */
export function DeleteRun({ run, done }: { run: Schemas["RunRow"]; done: () => void }) {
  const may = useMay("editor", "default");
  const [isAsked, setAsked] = useState(false);
  const [keepsFiles, setKeepsFiles] = useState(false);
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: () =>
      ask(
        api.DELETE("/api/v1/runs/{run}", {
          params: { path: { run: run.id }, query: { keep_files: keepsFiles } },
        }),
      ),
    onSuccess: () => {
      setAsked(false);
      done();
      queries.removeQueries({ queryKey: ["run", run.id] });
      queries.invalidateQueries({ queryKey: ["runs"] });
    },
  });
  const close = () => {
    setAsked(false);
    remove.reset();
  };
  return (
    <>
      <button
        type="button"
        className="quiet"
        disabled={!may}
        title={may ? undefined : "Needs the role editor"}
        onClick={() => setAsked(true)}
      >
        Delete<span className="sr"> run {runName(run)}</span>
      </button>
      {isAsked && (
        <Confirm
          title={`Delete run ${runName(run)}?`}
          action="Delete for good"
          disabled={remove.isPending}
          close={close}
          confirm={() => remove.mutate()}
        >
          <p>
            {count(run.total, "result")} with their score trees and trajectories go, and cannot come
            back. Comparisons with it, and addresses of its cells, lead nowhere then.
          </p>
          <label className="row">
            <input
              type="checkbox"
              checked={keepsFiles}
              onChange={(event) => setKeepsFiles(event.target.checked)}
            />
            <span>Keep the files of its workspaces</span>
          </label>
          {remove.error && <ProblemBox problem={remove.error} />}
        </Confirm>
      )}
    </>
  );
}
