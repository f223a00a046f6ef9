import { useLayoutEffect, useRef } from "react";
import { Outcome } from "../parts/Outcome";
import { Page, Stack } from "../parts/Page";
import { Panel } from "../parts/Panel";
import { CellFacts, Sentence } from "../runs/cell/CellHead";
import { Files } from "../runs/cell/Files";
import { Flags } from "../runs/cell/Flags";
import { ScoreTree } from "../runs/cell/ScoreTree";
import { StepCard } from "../runs/cell/StepCard";
import { Texts } from "../runs/cell/Texts";
import { Matrix } from "../runs/Matrix";
import { runName, trialName } from "../runs/names";
import { RunFacts, RunHead } from "../runs/RunHead";
import { RunSummary } from "../runs/RunSummary";
import type { OpenedCell, RunData } from "./data";
import { Foot } from "./Foot";

/** Everything that the file holds, one after another and unfolded, as paper needs it. */
export function Printed({ data }: { data: RunData }) {
  const box = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    for (const one of box.current?.querySelectorAll("details") ?? []) one.open = true;
  }, []);
  const { overview, matrix } = data;
  return (
    <main ref={box}>
      <Page title={runName(overview.run)} facts={<RunFacts run={overview.run} />}>
        <RunHead told={overview} now={overview.run} />
        <Stack>
          <RunSummary told={overview} />
          {overview.run.kind !== "dataset" && matrix.items.length > 0 && (
            <Panel title="Cases and agents">
              <Matrix matrix={matrix} leaderboard={overview.leaderboard} />
            </Panel>
          )}
          {data.left_out.map((said) => (
            <p key={said}>{said}</p>
          ))}
        </Stack>
        {data.opened.map((cell) => (
          <Cell key={JSON.stringify(cell.view.place)} cell={cell} />
        ))}
      </Page>
      <Foot />
    </main>
  );
}

const nowhere = () => undefined;

function Cell({ cell: { view, outline, steps, files } }: { cell: OpenedCell }) {
  return (
    <article className="grid break-before-page grid-cols-[minmax(0,1fr)] gap-4 pt-8" data-cell="">
      <h2 className="m-0 text-xl font-semibold">
        <Outcome state={view.state} text={view.state} /> {view.place.case}{" "}
        <span className="font-normal text-soft">{trialName(view.place)}</span>
      </h2>
      <p className="m-0 flex flex-wrap gap-x-4 text-sm text-soft">
        <CellFacts cell={view} />
      </p>
      <Flags cell={view} />
      <Sentence cell={view} />
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
