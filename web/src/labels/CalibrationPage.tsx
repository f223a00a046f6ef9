import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "react-router";
import { api, ask, type Schemas } from "../api/client";
import { Command } from "../parts/Command";
import { count, moment, percent, whole } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { Outcome } from "../parts/Outcome";
import { ProblemBox } from "../parts/ProblemBox";
import { usePageTitle } from "../parts/title";
import { price, State } from "./CalibrationsPage";
import { CardFacts } from "./CardFacts";
import { Confusion } from "./Confusion";
import { Disagreements } from "./Disagreements";
import { figureText, IntervalBar, number } from "./IntervalBar";
import { LabelTabs } from "./LabelTabs";
import "./labels.css";

export default function CalibrationPage() {
  const { project = "default", id = "" } = useParams();
  const card = useQuery({
    queryKey: ["calibration", project, id],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/calibrations/{id}", {
          params: { path: { project, id } },
          signal,
        }),
      ),
  });
  usePageTitle(card.data ? `Calibration of ${card.data.summary.grader}` : "Calibration");
  if (card.error) {
    return (
      <div className="page">
        <ProblemBox problem={card.error} retry={() => card.refetch()} />
      </div>
    );
  }
  if (!card.data) return <Loading what="Loading the card" />;
  return <Card project={project} card={card.data} />;
}

function Card({ project, card }: { project: string; card: Schemas["CardDetail"] }) {
  const { summary, coverage, labels, comparison } = card;
  return (
    <div className="page">
      <LabelTabs project={project} />
      <div className="page-head">
        <h1 className="row">
          {summary.grader} <State card={summary} />
        </h1>
        <span className="row">
          <Command text={`assay calibrate cards ${summary.id}`} />
          {summary.state !== "unknown" && labels.name === "the store" && (
            <Link
              className="button"
              to={`/p/${project}/calibrations?${new URLSearchParams({ new: "1", grader: summary.grader, field: labels.field })}`}
            >
              Calibrate again
            </Link>
          )}
        </span>
      </div>
      <div className="stack">
        <section>
          <div className="headline">
            <span className="value">
              <span className="soft">kappa</span> {number(summary.kappa.value)}
            </span>
            {summary.kappa.low !== null && (
              <span>
                {percent(card.confidence)} interval {number(summary.kappa.low)} to{" "}
                {number(summary.kappa.high)}
              </span>
            )}
            <strong>{summary.words}</strong>
          </div>
          <p className="soft">
            {whole(coverage.compared)} of {count(labels.rows, "row")} compared with{" "}
            {labels.field || "labels"} of {labels.name}, by{" "}
            {count(labels.raters, "person").replace("persons", "people")}
            {coverage.skipped > 0 && `; ${whole(coverage.skipped)} passed over by the grader`}
            {coverage.unlabelled > 0 && `; ${whole(coverage.unlabelled)} without a label`}
            {coverage.split > 0 && `; on ${whole(coverage.split)} people are split`}
            {coverage.malformed > 0 && `; ${whole(coverage.malformed)} malformed`}
            {" · "}made {moment(summary.created_at)} · 1,000 judgements: {price(summary)}
          </p>
          {coverage.errors > 0 && (
            <p>
              <Outcome
                state="error"
                text={`${count(coverage.errors, "row")} could not be graded, counted nowhere`}
              />{" "}
              <span className="soft">
                {Object.entries(coverage.causes)
                  .map(([cause, times]) => `${whole(times)}× ${cause}`)
                  .join("; ")}
              </span>
            </p>
          )}
          {summary.state === "stale" && (
            <p className="panel">
              <State card={summary} /> Measured before a change: {summary.changed.join("; ")}. Its
              scores are no longer covered: calibrate again.
            </p>
          )}
          {comparison && <Comparison project={project} comparison={comparison} />}
        </section>
        <div className="card-grid">
          <Confusion card={card} />
          <Measures card={card} />
        </div>
        <CardFacts card={card} />
        <Disagreements card={card} />
      </div>
    </div>
  );
}

const WORDS = {
  better: ["pass", "better"],
  worse: ["fail", "worse"],
  unclear: ["skipped", "no clear difference"],
} as const;

interface ComparisonProps {
  project: string;
  comparison: Schemas["CardComparison"];
}

/** Beside the card before: adopt a changed grader only if it is better. */
function Comparison({ project, comparison }: ComparisonProps) {
  const [state, words] = WORDS[comparison.verdict];
  return (
    <p className="panel" data-testid="comparison">
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
    <section>
      <h2>Measures</h2>
      <table>
        <thead>
          <tr>
            <th>Measure</th>
            <th className="number">{percent(card.confidence)} interval</th>
            <th>0 to 1{hasBefore && ", ○ before"}</th>
            {hasBefore && <th className="number">Before</th>}
            <th className="number">n</th>
          </tr>
        </thead>
        <tbody>
          {card.measures.map((one) => (
            <tr key={one.name}>
              <td>
                {one.name === "kappa" ? <strong>{one.words}</strong> : one.words}
                {one.note && <div className="soft">{one.note}</div>}
              </td>
              <td className="number">{figureText(one.figure)}</td>
              <td>
                <IntervalBar figure={one.figure} before={one.before} />
              </td>
              {hasBefore && <td className="number soft">{number(one.before?.value)}</td>}
              <td className="number">{whole(one.figure.n)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
