import { useLayoutEffect, useRef } from "react";
import { Outcome } from "../parts/Outcome";
import { Verdict } from "../runs/cell/CellHead";
import { Files } from "../runs/cell/Files";
import { Flags } from "../runs/cell/Flags";
import { ScoreTree } from "../runs/cell/ScoreTree";
import { StepCard } from "../runs/cell/StepCard";
import { Texts } from "../runs/cell/Texts";
import { Matrix } from "../runs/Matrix";
import { trialName } from "../runs/names";
import { RunHead } from "../runs/RunHead";
import { RunSummary } from "../runs/RunSummary";
import type { OpenedCell, RunData } from "./data";
import { Foot } from "./Foot";
import "../runs/runs.css";
import "../runs/cell/cell.css";

/** Everything that the file holds, one after another and unfolded, as paper needs it. */
export function Printed({ data }: { data: RunData }) {
  const box = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    for (const one of box.current?.querySelectorAll("details") ?? []) one.open = true;
  }, []);
  const { overview, matrix } = data;
  return (
    <main ref={box} className="page run printed stack">
      <RunHead told={overview} now={overview.run} />
      <RunSummary told={overview} />
      {overview.run.kind !== "dataset" && matrix.items.length > 0 && (
        <Matrix matrix={matrix} leaderboard={overview.leaderboard} />
      )}
      {data.left_out.map((said) => (
        <p key={said}>{said}</p>
      ))}
      {data.opened.map((cell) => (
        <Cell key={JSON.stringify(cell.view.place)} cell={cell} />
      ))}
      <Foot />
    </main>
  );
}

const nowhere = () => undefined;

function Cell({ cell: { view, outline, steps, files } }: { cell: OpenedCell }) {
  return (
    <article className="cell">
      <h2>
        <Outcome state={view.state} text={view.state} /> {view.place.case}{" "}
        <span className="agent">{trialName(view.place)}</span>
      </h2>
      <Flags cell={view} />
      <Verdict cell={view} />
      <ScoreTree scores={view.scores} />
      <Texts cell={view} />
      {outline.steps.map((one, place) => {
        const step = steps.steps[place];
        return (
          <StepCard
            key={step?.index ?? place}
            step={step}
            index={place}
            outlined={one}
            isOpen
            isHere={false}
            open={nowhere}
          />
        );
      })}
      {files && <Files found={files} />}
    </article>
  );
}
