import { Link, useParams } from "react-router";
import { $api, type Schemas } from "../api/client";
import { useProject } from "../api/me";
import { ButtonLink } from "../parts/Button";
import { Command } from "../parts/Command";
import { Figure, Figures } from "../parts/Figures";
import { count, moment, percent, whole } from "../parts/figures";
import { Outcome } from "../parts/Outcome";
import { Notice, Page, Stack } from "../parts/Page";
import { Panel } from "../parts/Panel";
import { Table } from "../parts/Table";
import { price, State } from "./CalibrationsPage";
import { CardFacts } from "./CardFacts";
import { Confusion } from "./Confusion";
import { Disagreements } from "./Disagreements";
import { figureText, IntervalBar, number } from "./IntervalBar";

/** A card: how far a grader agrees with people, what that rests on, and what to read. */
export default function CalibrationPage() {
  const project = useProject();
  const { id = "" } = useParams();
  const card = $api.useSuspenseQuery("get", "/api/v1/projects/{project}/calibrations/{id}", {
    params: { path: { project, id } },
  }).data;
  const { summary, labels, comparison } = card;
  const again = new URLSearchParams({ new: "1", grader: summary.grader, field: labels.field });
  return (
    <Page
      title={summary.grader}
      tab={`Calibration of ${summary.grader}`}
      crumbs={<Link to={`/p/${project}/calibrations`}>Calibrations</Link>}
      facts={
        <>
          <State card={summary} />
          <span>made {moment(summary.created_at)}</span>
          <span>cost of 1,000: {price(summary)}</span>
          <Command text={`assay calibrate cards ${summary.id}`} />
        </>
      }
      actions={
        summary.state !== "unknown" &&
        labels.name === "the store" && (
          <ButtonLink tone="primary" to={`/p/${project}/calibrations?${again}`}>
            Calibrate again
          </ButtonLink>
        )
      }
    >
      {summary.state === "stale" && (
        <Notice>
          Measured before a change: {summary.changed.join("; ")}. Its scores are no longer covered:
          calibrate again.
        </Notice>
      )}
      <Stack>
        <Verdict card={card} />
        {comparison && <Comparison project={project} comparison={comparison} />}
        <div className="grid items-start gap-10 lg:grid-cols-[minmax(300px,2fr)_minmax(0,3fr)]">
          <Confusion card={card} />
          <Measures card={card} />
        </div>
        <CardFacts card={card} />
        <Disagreements card={card} />
      </Stack>
    </Page>
  );
}

/** What a card says in one look: kappa, and the rows that it rests on. */
function Verdict({ card }: { card: Schemas["CardDetail"] }) {
  const { summary, coverage, labels } = card;
  const { value, low, high } = summary.kappa;
  return (
    <div>
      <p className="mb-5 text-lg">{sentence(summary.words)}</p>
      <Figures>
        <Figure name="kappa" value={number(value)}>
          {low !== null && `${percent(card.confidence)} interval ${number(low)} to ${number(high)}`}
        </Figure>
        <Figure name="rows compared" value={whole(coverage.compared)}>
          of {whole(labels.rows)}, with {labels.field || "labels"} of {labels.name}, by{" "}
          {count(labels.raters, "person").replace("persons", "people")}
        </Figure>
      </Figures>
      <p className="mt-4 mb-0 flex flex-wrap gap-x-4 text-soft">
        {coverage.errors > 0 && (
          <>
            <Outcome
              state="error"
              text={`${count(coverage.errors, "row")} could not be graded, counted nowhere`}
            />
            <span>
              {Object.entries(coverage.causes)
                .map(([cause, times]) => `${whole(times)}× ${cause}`)
                .join("; ")}
            </span>
          </>
        )}
        {coverage.skipped > 0 && <span>{whole(coverage.skipped)} passed over by the grader</span>}
        {coverage.unlabelled > 0 && <span>{whole(coverage.unlabelled)} without a label</span>}
        {coverage.split > 0 && <span>people are split on {count(coverage.split, "row")}</span>}
        {coverage.malformed > 0 && <span>{whole(coverage.malformed)} malformed</span>}
      </p>
    </div>
  );
}

function sentence(words: string): string {
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}.`;
}

const WORDS = {
  better: ["pass", "better"],
  worse: ["fail", "worse"],
  unclear: ["skipped", "no clear difference"],
} as const;

/** Beside the card before: adopt a changed grader only if it is better. */
function Comparison({ project, comparison }: ComparisonProps) {
  const [state, words] = WORDS[comparison.verdict];
  return (
    <p className="m-0 rounded-lg bg-sunk p-4" data-testid="comparison">
      <Outcome state={state} text={words} /> {comparison.sentence}.{" "}
      {comparison.changed.length > 0 && `Changed: ${comparison.changed.join("; ")}. `}
      {comparison.verdict !== "better" &&
        comparison.changed.length > 0 &&
        "Adopt a change only if it is better. "}
      <Link to={`/p/${project}/calibrations/${comparison.id}`}>
        The card before, {moment(comparison.created_at)}
      </Link>
    </p>
  );
}

function Measures({ card }: { card: Schemas["CardDetail"] }) {
  const hasBefore = card.measures.some((one) => one.before !== null);
  return (
    <Panel title="Measures" note={`with ${percent(card.confidence)} intervals`}>
      <Table
        label="Measures"
        items={card.measures}
        keyOf={(one) => one.name}
        columns={[
          {
            name: "Measure",
            kind: "name",
            show: (one) => (
              <span className={one.name === "kappa" ? "" : "font-normal"}>{one.words}</span>
            ),
            below: (one) => one.note && one.note,
          },
          {
            name: hasBefore ? "0 to 1, grey: before" : "0 to 1",
            show: (one) => (
              <>
                <span className="whitespace-nowrap tabular-nums">{figureText(one.figure)}</span>
                {one.before && (
                  <span className="text-soft tabular-nums"> before {number(one.before.value)}</span>
                )}
                <IntervalBar figure={one.figure} before={one.before} />
              </>
            ),
          },
          { name: "n", kind: "number", from: "md", show: (one) => whole(one.figure.n) },
        ]}
      />
    </Panel>
  );
}

interface ComparisonProps {
  project: string;
  comparison: Schemas["CardComparison"];
}
