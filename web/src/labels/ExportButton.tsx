import { useMutation } from "@tanstack/react-query";
import { api, ask } from "../api/client";
import { every } from "../api/pages";
import { Button } from "../parts/Button";
import { saveFile } from "../parts/saveFile";

/** Saves the labelled rows as JSON lines, which `assay calibrate` reads. */
export function ExportButton({ project, field }: { project: string; field: string }) {
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
  return (
    <>
      <Button onPress={() => exported.mutate()} isDisabled={exported.isPending}>
        {exported.isPending ? "Exporting …" : "Export"}
      </Button>
      {exported.error && <span role="alert">{exported.error.message}</span>}
    </>
  );
}
