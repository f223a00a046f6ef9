import { useState } from "react";
import { api, ask } from "../api/client";
import { saveFile } from "../parts/saveFile";

/** Saves the labelled rows as JSON lines, which `assay calibrate` reads. */
export function ExportButton({ project, field }: { project: string; field: string }) {
  const [state, setState] = useState("");
  const save = async () => {
    setState("Exporting …");
    try {
      const lines: string[] = [];
      let after: string | null = null;
      do {
        const page: { items: { row: unknown }[]; next: string | null } = await ask(
          api.GET("/api/v1/projects/{project}/labels/export", {
            params: { path: { project }, query: { field, limit: 200, ...(after && { after }) } },
          }),
        );
        for (const { row } of page.items) lines.push(`${JSON.stringify(row)}\n`);
        after = page.next;
      } while (after);
      const name = `${field.replace(/[^A-Za-z0-9._-]+/g, "-")}.jsonl`;
      saveFile(name, new Blob(lines, { type: "application/x-ndjson" }));
      setState("");
    } catch (error) {
      setState(error instanceof Error ? error.message : "The export failed");
    }
  };
  return (
    <>
      <button type="button" onClick={save} disabled={state === "Exporting …"}>
        Export
      </button>
      {state && <span role="status">{state}</span>}
    </>
  );
}
