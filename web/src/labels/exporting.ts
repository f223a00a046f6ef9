import { api, ask } from "../api/client";
import { filled } from "../api/pages";
import { useSaving } from "../parts/saving";

/** Saves the labelled rows as JSON lines, which `assay calibrate` reads. */
export function useExport(project: string, field: string) {
  return useSaving(async () => {
    const path = "/api/v1/projects/{project}/labels/export";
    const part = (rest: { limit: number; after?: string }) =>
      ask(api.GET(path, { params: { path: { project }, query: { field, ...rest } } }));
    const whole = await filled(await part({ limit: 200 }), Number.POSITIVE_INFINITY, part);
    return {
      name: `${field.replace(/[^A-Za-z0-9._-]+/g, "-")}.jsonl`,
      parts: whole.items.map(({ row }) => `${JSON.stringify(row)}\n`),
      type: "application/x-ndjson",
    };
  });
}
