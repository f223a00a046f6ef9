import { useState } from "react";
import { $api } from "../../api/client";
import { useMay } from "../../api/me";
import { Button } from "../../parts/Button";
import { Command } from "../../parts/Command";
import { INPUT } from "../../parts/Field";
import { count } from "../../parts/figures";
import { ProblemBox } from "../../parts/ProblemBox";
import type { CellView } from "./asking";
import { Pop } from "./Pop";

/** Writes the work beside its case as a recording, which is played again for nothing. */
export function Promote({ cell }: { cell: CellView }) {
  const may = useMay("admin");
  const [name, setName] = useState("");
  const [force, setForce] = useState(false);
  const promote = $api.useMutation("post", "/api/v1/runs/{run}/cells/promote");
  const command = cell.commands.find((one) => one.command.startsWith("assay runs promote"));
  if (!command) return null;
  const done = promote.data;
  return (
    <Pop name="Keep as recording">
      <p className="text-soft">
        The answer, the trace and the changed files are written beside the case. The harness replay
        plays them: the same work is graded, no model is asked.
      </p>
      {may ? (
        <form
          className="grid justify-items-start gap-3"
          onSubmit={(event) => {
            event.preventDefault();
            const body = { ...cell.place, name, force };
            promote.mutate({ params: { path: { run: cell.run } }, body });
          }}
        >
          <label className="grid w-full gap-1 font-medium">
            Name of the recording
            <input
              required
              value={name}
              maxLength={200}
              placeholder="good"
              onChange={(event) => setName(event.target.value)}
              className={`${INPUT} font-normal`}
            />
          </label>
          <label className="flex min-h-8 items-center gap-2">
            <input
              type="checkbox"
              checked={force}
              onChange={(event) => setForce(event.target.checked)}
            />
            Replace one of that name
          </label>
          <Button type="submit" tone="primary" isPending={promote.isPending}>
            Write it
          </Button>
        </form>
      ) : (
        <>
          <p>This writes to the server's disk, for admins of all projects. The command there:</p>
          <Command text={command.command} />
        </>
      )}
      {done && (
        <output className="grid gap-2">
          <p className="wrap-anywhere">
            <code>{done.directory}</code>: {count(done.files, "file")} changed, {done.deleted}{" "}
            deleted
          </p>
          {done.left_out.map((line) => (
            <p key={line}>left out: {line}</p>
          ))}
          <Command text={done.play} />
        </output>
      )}
      {promote.error && <ProblemBox problem={promote.error} />}
    </Pop>
  );
}
