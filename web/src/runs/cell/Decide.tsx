import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, ask } from "../../api/client";
import { useMay } from "../../api/me";
import { moment, score } from "../../parts/figures";
import { ProblemBox } from "../../parts/ProblemBox";
import { type CellView, forgetCells } from "./asking";

/** Somebody decides whether a flagged or held cell earned its reward, as in `assay runs review`. */
export function Decide({ cell }: { cell: CellView }) {
  const client = useQueryClient();
  const may = useMay("editor", "default");
  const [note, setNote] = useState("");
  const decide = useMutation({
    mutationFn: (ruling: "ok" | "zero") =>
      ask(
        api.POST("/api/v1/runs/{run}/cells/decide", {
          params: { path: { run: cell.run } },
          body: { ...cell.place, ruling, note, seen: cell.seen },
        }),
      ),
    onSuccess: () => setNote(""),
    onSettled: () => forgetCells(client),
  });
  const rule = (ruling: "ok" | "zero") => {
    if (!decide.isPending) decide.mutate(ruling); // a button that is disabled loses the focus
  };
  const said = cell.decision;
  return (
    <section className="decide" aria-label="Decision">
      {said && (
        <p>
          <strong>
            {said.by} decided: {said.ruling === "ok" ? "the reward stands" : "0"}
          </strong>{" "}
          <span className="soft">{moment(said.at)}</span>
          {said.note && <span className="quote">{said.note}</span>}
        </p>
      )}
      {cell.held !== null && !said && (
        <p>Its reward, {score(cell.held)}, is held back until somebody decides.</p>
      )}
      <form className="row" onSubmit={(event) => event.preventDefault()}>
        <input
          aria-label="Note beside the decision"
          placeholder="Why (kept beside the decision)"
          value={note}
          maxLength={4000}
          disabled={!may}
          onChange={(event) => setNote(event.target.value)}
        />
        <button type="button" disabled={!may} onClick={() => rule("ok")}>
          Let the reward stand
        </button>
        <button type="button" className="danger" disabled={!may} onClick={() => rule("zero")}>
          Make it 0
        </button>
        {!may && <span className="soft">This needs the role editor.</span>}
      </form>
      {decide.error && <ProblemBox problem={decide.error} />}
    </section>
  );
}
