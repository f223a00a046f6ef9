import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { $api } from "../../api/client";
import { useMay } from "../../api/me";
import { Button } from "../../parts/Button";
import { INPUT } from "../../parts/Field";
import { moment, score } from "../../parts/figures";
import { ProblemBox } from "../../parts/ProblemBox";
import { type CellView, forgetCells } from "./asking";

/** Somebody decides whether a flagged or held cell earned its reward, as in `assay runs review`. */
export function Decide({ cell }: { cell: CellView }) {
  const client = useQueryClient();
  const may = useMay("editor", "default");
  const [note, setNote] = useState("");
  const decide = $api.useMutation("post", "/api/v1/runs/{run}/cells/decide", {
    onSuccess: () => setNote(""),
    onSettled: () => forgetCells(client),
  });
  const rule = (ruling: "ok" | "zero") => {
    if (decide.isPending) return; // a button that is disabled loses the focus
    const body = { ...cell.place, ruling, note, seen: cell.seen };
    decide.mutate({ params: { path: { run: cell.run } }, body });
  };
  const said = cell.decision;
  return (
    <section aria-label="Decision" className="grid gap-2 rounded-lg bg-sunk px-4 py-3 [&_p]:m-0">
      {said && (
        <p className="wrap-anywhere">
          <b className="font-semibold">
            {said.by} decided: {said.ruling === "ok" ? "the reward stands" : "0"}
          </b>{" "}
          <span className="text-soft">{moment(said.at)}</span>
          {said.note && <span className="block">{said.note}</span>}
        </p>
      )}
      {cell.held !== null && !said && (
        <p>Its reward, {score(cell.held)}, is held back until somebody decides.</p>
      )}
      <form
        className="flex flex-wrap items-center gap-2"
        onSubmit={(event) => event.preventDefault()}
      >
        <input
          aria-label="Note beside the decision"
          placeholder="Why (kept beside the decision)"
          value={note}
          maxLength={4000}
          disabled={!may}
          onChange={(event) => setNote(event.target.value)}
          className={`${INPUT} flex-[1_1_240px]`}
        />
        <Button isDisabled={!may} onPress={() => rule("ok")}>
          Let the reward stand
        </Button>
        <Button tone="danger" isDisabled={!may} onPress={() => rule("zero")}>
          Make it 0
        </Button>
        {!may && <span className="text-soft">This needs the role editor.</span>}
      </form>
      {decide.error && <ProblemBox problem={decide.error} />}
    </section>
  );
}
