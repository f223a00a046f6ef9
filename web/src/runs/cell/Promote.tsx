import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, ask } from "../../api/client";
import { useMay } from "../../api/me";
import { Command } from "../../parts/Command";
import { count } from "../../parts/figures";
import { ProblemBox } from "../../parts/ProblemBox";
import type { CellView } from "./asking";
import { Menu } from "./Menu";

/** Writes the work beside its case as a recording, which is played again for nothing. */
export function Promote({ cell }: { cell: CellView }) {
  const may = useMay("admin");
  const [name, setName] = useState("");
  const [force, setForce] = useState(false);
  const promote = useMutation({
    mutationFn: () =>
      ask(
        api.POST("/api/v1/runs/{run}/cells/promote", {
          params: { path: { run: cell.run } },
          body: { ...cell.place, name, force },
        }),
      ),
  });
  const command = cell.commands.find((one) => one.command.startsWith("assay runs promote"));
  if (!command) return null;
  const done = promote.data;
  return (
    <Menu name="Keep as recording">
      <p className="soft">
        The answer, the trace and the changed files are written beside the case. The harness replay
        plays them: the same work is graded, no model is asked.
      </p>
      {may ? (
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault();
            promote.mutate();
          }}
        >
          <label>
            <span>Name of the recording</span>
            <input
              required
              value={name}
              maxLength={200}
              placeholder="good"
              onChange={(event) => setName(event.target.value)}
            />
          </label>
          <label className="row">
            <input
              type="checkbox"
              checked={force}
              onChange={(event) => setForce(event.target.checked)}
            />
            Replace one of that name
          </label>
          <button type="submit" className="primary" disabled={promote.isPending}>
            Write it
          </button>
        </form>
      ) : (
        <>
          <p>This writes to the server's disk, for admins of all projects. The command there:</p>
          <Command text={command.command} />
        </>
      )}
      {done && (
        <output>
          <p>
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
    </Menu>
  );
}
