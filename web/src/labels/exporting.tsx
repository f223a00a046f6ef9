import { useMutation } from "@tanstack/react-query";
import { api, ask } from "../api/client";
import { filled } from "../api/pages";
import { Dialog } from "../parts/Dialog";
import { ProblemBox } from "../parts/ProblemBox";
import { saveFile } from "../parts/saveFile";

/** Saves the labelled rows as JSON lines, which `assay calibrate` reads. */
export function useExport(project: string, field: string) {
  const exported = useMutation({
    mutationFn: async () => {
      const path = "/api/v1/projects/{project}/labels/export";
      const part = (rest: { limit: number; after?: string }) =>
        ask(api.GET(path, { params: { path: { project }, query: { field, ...rest } } }));
      const whole = await filled(await part({ limit: 200 }), Number.POSITIVE_INFINITY, part);
      return whole.items;
    },
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
