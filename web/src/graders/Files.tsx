import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, ask } from "../api/client";
import { Dialog } from "../parts/Dialog";
import { Drop } from "../parts/Drop";
import { count } from "../parts/figures";
import { ProblemBox } from "../parts/ProblemBox";
import { saveFile } from "../parts/saveFile";
import { useForget } from "./queries";
import { zipped } from "./zip";

const MOST_BYTES = 2 << 20;

/** Every grader, or some, as the files that `assay graders export` writes. */
export function ExportGraders({ project, keys, label = "Export" }: ExportProps) {
  const exported = useMutation({
    mutationFn: () =>
      ask(
        api.GET("/api/v1/projects/{project}/graders/export", {
          params: { path: { project }, query: keys ? { keys: keys.join(",") } : {} },
        }),
      ),
    onSuccess: ({ files }) => {
      const [only, ...others] = Object.entries(files);
      if (!only) return;
      if (others.length) saveFile(`${keys?.[0] ?? "graders"}.zip`, zipped(files));
      else saveFile(only[0], new Blob([only[1]], { type: "text/plain" }));
    },
  });
  return (
    <>
      <button type="button" onClick={() => exported.mutate()} disabled={exported.isPending}>
        {label}
      </button>
      {exported.error && (
        <Dialog title="Nothing was exported" close={() => exported.reset()}>
          <ProblemBox problem={exported.error} />
          <div className="row end">
            <button type="button" onClick={() => exported.reset()}>
              Close
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}

/** Stores the graders of files: dropped, or chosen. All of them, or none. */
export function ImportGraders({ project, close }: { project: string; close: () => void }) {
  const [files, setFiles] = useState<File[]>([]);
  const forget = useForget();
  const imported = useMutation({
    mutationFn: async (chosen: File[]) => {
      const texts = await Promise.all(
        chosen.map(async (file) => [file.name, await file.text()] as const),
      );
      return ask(
        api.POST("/api/v1/projects/{project}/graders/import", {
          params: { path: { project } },
          body: { files: Object.fromEntries(texts), update: true },
        }),
      );
    },
    onSuccess: () => forget(project),
  });
  const take = (chosen: readonly File[]) => {
    imported.reset();
    setFiles(chosen.filter((file) => /\.(ya?ml|py)$/.test(file.name)));
  };
  const size = files.reduce((sum, file) => sum + file.size, 0);
  return (
    <Dialog title="Import graders" close={close}>
      <p>
        <code>KEY.yaml</code>, and <code>KEY.py</code> for the source of a function. All of them are
        stored, or none; a grader that is there gets a new version.
      </p>
      <Drop
        words="Drop files here, or choose them"
        label="Files of graders"
        accept=".yaml,.yml,.py"
        multiple
        take={take}
      />
      {files.length > 0 && (
        <ul className="soft">
          {files.slice(0, 8).map((file) => (
            <li key={file.name}>{file.name}</li>
          ))}
          {files.length > 8 && <li>and {files.length - 8} more</li>}
        </ul>
      )}
      {size > MOST_BYTES && (
        <p className="fault">These are more than 2 MB: import fewer at once.</p>
      )}
      {imported.error && <ProblemBox problem={imported.error} />}
      {imported.data && (
        <output>{count(imported.data.items.length, "grader")} stored as the files say.</output>
      )}
      <div className="row end">
        <button type="button" onClick={close}>
          {imported.data ? "Done" : "Cancel"}
        </button>
        {!imported.data && (
          <button
            type="button"
            className="primary"
            disabled={files.length === 0 || size > MOST_BYTES || imported.isPending}
            onClick={() => imported.mutate(files)}
          >
            {imported.isPending ? "Checking …" : "Import"}
          </button>
        )}
      </div>
    </Dialog>
  );
}

interface ExportProps {
  project: string;
  keys?: string[];
  label?: string;
}
