import { strToU8, zipSync } from "fflate";
import { useState } from "react";
import { $api, api, ask } from "../api/client";
import { FormDialog } from "../parts/Dialog";
import { Drop } from "../parts/Drop";
import { count } from "../parts/figures";
import { useSaving } from "../parts/saving";
import { toast } from "../parts/toast";
import { useForget } from "./queries";

const MOST_BYTES = 2 << 20;

/** Saves every grader, or one, as the files that `assay graders export` writes: in one archive. */
export function useExport(project: string, key?: string) {
  return useSaving(async () => {
    const params = { path: { project }, query: key ? { keys: key } : {} };
    const { files } = await ask(api.GET("/api/v1/projects/{project}/graders/export", { params }));
    const texts = Object.entries(files);
    const [only, ...others] = texts;
    if (!only) return null;
    if (others.length === 0) return { name: only[0], parts: [only[1]], type: "" };
    const packed = zipSync(Object.fromEntries(texts.map(([name, text]) => [name, strToU8(text)])));
    return { name: `${key ?? "graders"}.zip`, parts: [packed], type: "application/zip" };
  });
}

/** Stores the graders of files: dropped, or chosen. All of them, or none. */
export function ImportGraders({ project, close }: { project: string; close: () => void }) {
  const [files, setFiles] = useState<File[]>([]);
  const forget = useForget();
  const imported = $api.useMutation("post", "/api/v1/projects/{project}/graders/import", {
    onSuccess: ({ items }) => {
      forget();
      toast(`${count(items.length, "grader")} stored as the files say.`);
      close();
    },
  });
  const size = files.reduce((sum, file) => sum + file.size, 0);
  const store = async () => {
    const texts = await Promise.all(files.map(async (file) => [file.name, await file.text()]));
    imported.mutate({
      params: { path: { project } },
      body: { files: Object.fromEntries(texts), update: true },
    });
  };
  return (
    <FormDialog
      title="Import graders"
      action={imported.isPending ? "Checking …" : "Import"}
      isDisabled={files.length === 0 || size > MOST_BYTES}
      work={imported}
      close={close}
      submit={store}
    >
      <p className="m-0">
        <code>KEY.yaml</code>, and <code>KEY.py</code> for the source of a function. All of them are
        stored, or none; a grader that is there gets a new version.
      </p>
      <Drop
        words="Drop files here, or choose them"
        label="Files of graders"
        accept=".yaml,.yml,.py"
        multiple
        take={(chosen) => {
          imported.reset();
          setFiles(chosen.filter((file) => /\.(ya?ml|py)$/.test(file.name)));
        }}
      />
      <ul className="text-soft">
        {files.slice(0, 8).map((file) => (
          <li key={file.name}>{file.name}</li>
        ))}
        {files.length > 8 && <li>and {files.length - 8} more</li>}
      </ul>
      {size > MOST_BYTES && (
        <p className="m-0 text-fail">These are more than 2 MB: import fewer at once.</p>
      )}
    </FormDialog>
  );
}
