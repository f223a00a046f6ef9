import { Link } from "react-router";
import { $api, type Schemas } from "../api/client";
import { useProject } from "../api/me";
import { useAddress } from "../parts/address";
import { Button, ButtonLink } from "../parts/Button";
import { Empty } from "../parts/Empty";
import { money, whole } from "../parts/figures";
import { Outcome } from "../parts/Outcome";
import { Badge, Page, Stack } from "../parts/Page";
import { Boundary } from "../parts/Panel";
import { Below, type Shown, Table } from "../parts/Table";
import { When } from "../parts/When";
import { CalibrationStart } from "./CalibrationStart";
import { figureText, IntervalBar } from "./IntervalBar";
import { LabelTabs } from "./sets";

/** How far graders agree with people: a card each time it was measured. */
export default function CalibrationsPage() {
  const project = useProject();
  const [asked, change] = useAddress({ grader: "", new: "" });
  const isNew = asked.new !== "";
  return (
    <Page
      title="Calibrations"
      actions={
        !isNew && (
          <Button tone="primary" onPress={() => change({ new: "1" }, { isStep: true })}>
            Calibrate a grader
          </Button>
        )
      }
    >
      <LabelTabs project={project} />
      <Stack>
        {isNew && (
          <Boundary>
            <CalibrationStart project={project} />
          </Boundary>
        )}
        <Boundary what="Loading cards" place={asked.grader}>
          <Cards project={project} grader={isNew ? "" : asked.grader} isNew={isNew} />
        </Boundary>
      </Stack>
    </Page>
  );
}

function Cards({ project, grader, isNew }: CardsProps) {
  const cards = $api.useSuspenseQuery("get", "/api/v1/projects/{project}/calibrations", {
    params: { path: { project }, query: { limit: 200, ...(grader && { grader }) } },
  }).data.items;
  if (cards.length === 0 && isNew) return null;
  if (cards.length === 0) {
    return (
      <Empty title="No grader was measured against people yet" command="assay calibrate judge.yaml">
        <p>
          A card says how far a grader agrees with people, and stands beside every score that it
          gives. Label some answers first, then calibrate.
        </p>
        <ButtonLink to={`/p/${project}/labels/queue?goal=20`}>Label 20 examples</ButtonLink>
      </Empty>
    );
  }
  return (
    <div>
      {grader && (
        <p className="mb-3">
          Of <strong className="font-medium">{grader}</strong> alone.{" "}
          <Link to={`/p/${project}/calibrations`}>Show all</Link>
        </p>
      )}
      <Table label="Cards" columns={columnsOf(project)} items={cards} keyOf={(card) => card.id} />
    </div>
  );
}

function columnsOf(project: string): Shown<Schemas["CardSummary"]>[] {
  return [
    {
      name: "Grader",
      kind: "name",
      show: (card) => (
        <>
          <Link to={`/p/${project}/calibrations/${card.id}`}>{card.grader}</Link>{" "}
          <State card={card} />
        </>
      ),
      below: (card) => <When at={card.created_at} />,
    },
    {
      name: "Kappa, 0 to 1",
      show: (card) => (
        <>
          <span className="tabular-nums">{figureText(card.kappa)}</span>
          <IntervalBar figure={card.kappa} />
        </>
      ),
    },
    { name: "In words", from: "md", show: (card) => card.words },
    {
      name: "Rows",
      kind: "number",
      from: "md",
      show: (card) => (
        <>
          {whole(card.n)}
          {card.errors > 0 && (
            <Below>
              <Outcome state="error" text={whole(card.errors)} />
            </Below>
          )}
        </>
      ),
    },
    { name: "Labels", from: "lg", show: (card) => card.field || card.labels },
    { name: "Cost of 1,000", kind: "number", from: "lg", show: price },
  ];
}

export function price(card: Schemas["CardSummary"]): string {
  return card.asks_models ? money(card.usd_per_thousand) : "no model is asked";
}

/** Whether a card is still of the grader as it is now. */
export function State({ card }: { card: Schemas["CardSummary"] }) {
  if (card.state === "unknown") return null;
  return card.state === "stale" ? <Badge tone="error">stale</Badge> : <Badge>current</Badge>;
}

interface CardsProps {
  project: string;
  grader: string;
  isNew: boolean;
}
