import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { $api, type Schemas } from "../api/client";
import { useMay } from "../api/me";
import { Confirm } from "../parts/Dialog";
import { count } from "../parts/figures";
import { Menu } from "../parts/Menu";
import { toast } from "../parts/toast";
import { runName } from "./names";

/** Deletes a run, after saying what goes with it. */
export function DeleteRun({ run }: { run: Schemas["RunRow"] }) {
  const may = useMay("editor", "default");
  const [isAsked, setAsked] = useState(false);
  const [keepsFiles, setKeepsFiles] = useState(false);
  const queries = useQueryClient();
  const navigate = useNavigate();
  const name = runName(run);
  const remove = $api.useMutation("delete", "/api/v1/runs/{run}", {
    onSuccess: () => {
      setAsked(false);
      toast(`Run ${name} was deleted.`);
      navigate("/runs");
      void queries.invalidateQueries({ queryKey: ["get", "/api/v1/runs"] });
    },
  });
  const close = () => {
    setAsked(false);
    remove.reset();
  };
  return (
    <>
      <Menu
        label={`More about run ${name}`}
        offers={[
          {
            name: may ? "Delete …" : "Delete (needs the role editor)",
            act: () => setAsked(true),
            isDangerous: true,
            isDisabled: !may,
          },
        ]}
      />
      {isAsked && (
        <Confirm
          title={`Delete run ${name}?`}
          action="Delete for good"
          work={remove}
          close={close}
          confirm={() =>
            remove.mutate({
              params: { path: { run: run.id }, query: { keep_files: keepsFiles } },
            })
          }
        >
          <p>
            {count(run.total, "result")} with their score trees and trajectories go, and cannot come
            back. Comparisons with it, and addresses of its cells, lead nowhere then.
          </p>
          <label className="mt-3 flex min-h-8 items-center gap-2">
            <input
              type="checkbox"
              checked={keepsFiles}
              onChange={(event) => setKeepsFiles(event.target.checked)}
            />
            Keep the files of its workspaces
          </label>
        </Confirm>
      )}
    </>
  );
}
