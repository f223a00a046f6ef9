import { useMutation } from "@tanstack/react-query";
import { api, ask } from "../api/client";
import { every } from "../api/pages";
import { Dialog } from "../parts/Dialog";
import { ProblemBox } from "../parts/ProblemBox";
import { saveFile } from "../parts/saveFile";

/** Saves the labelled rows as JSON lines, which `assay calibrate` reads. */
export function useExport(project: string, field: string) {
  const exported = useMutation({
    mutationFn: () =>
      every((part) =>
        ask(
          api.GET("/api/v1/projects/{project}/labels/export", {
            params: { path: { project }, query: { field, ...part } },
          }),
        ),
      ),
    onSuccess: (items) => {
      const lines = items.map(({ row }) => `${JSON.stringify(row)}\n`);
      const name = `${field.replace(/[^A-Za-z0-9._-]+/g, "-")}.jsonl`;
      saveFile(name, new Blob(lines, { type: "application/x-ndjson" }));
    },
  });
  return {
    save: () => exported.mutate(),
    isPending: exported.isPending,
    problem: exported.error && (
      <Dialog title="Nothing was exported" close={exported.reset}>
        <ProblemBox problem={exported.error} />
      </Dialog>
    ),
  };
}
