import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useSearchParams } from "react-router";
import { api, ask, type Schemas } from "../api/client";
import { Empty } from "../parts/Empty";
import { moment, money, whole } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { Outcome } from "../parts/Outcome";
import { ProblemBox } from "../parts/ProblemBox";
import { usePageTitle } from "../parts/title";
import { CalibrationStart } from "./CalibrationStart";
import { figureText, IntervalBar } from "./IntervalBar";
import "./labels.css";
import { LabelTabs } from "./LabelTabs";

export default function CalibrationsPage() {
  usePageTitle("Calibrations");
  const { project = "default" } = useParams();
  const [search, setSearch] = useSearchParams();
  const grader = search.get("grader") ?? "";
  const isNew = search.has("new");
  const cards = useQuery({
    queryKey: ["calibrations", project, isNew ? "" : grader],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/calibrations", {
          params: {
            path: { project },
            query: { limit: 200, ...(!isNew && grader && { grader }) },
          },
          signal,
        }),
      ),
  });
  const begin = () => setSearch(new URLSearchParams({ new: "1", ...(grader && { grader }) }));
  return (
    <div className="page">
      <LabelTabs project={project} />
      <div className="page-head">
        <h1>Calibrations</h1>
        {!isNew && (
          <button type="button" className="primary" onClick={begin}>
            Calibrate a grader
          </button>
        )}
      </div>
      <div className="stack">
        {isNew && <CalibrationStart project={project} />}
        {grader && !isNew && (
          <p className="row">
            Of <strong>{grader}</strong> alone.
            <Link to={`/p/${project}/calibrations`}>Show all</Link>
          </p>
        )}
        {cards.error && <ProblemBox problem={cards.error} retry={() => cards.refetch()} />}
        {cards.isLoading && <Loading what="Loading cards" />}
        {cards.data?.items.length === 0 && !isNew && (
          <Empty
            title="No grader was measured against people yet"
            command="assay calibrate judge.yaml"
          >
            <p>
              A card says how far a grader agrees with people, and stands beside every score that it
              gives. Label some answers first, then calibrate.
            </p>
          </Empty>
        )}
        {cards.data && cards.data.items.length > 0 && (
          <div className="scrolls">
            <table>
              <thead>
                <tr>
                  <th>Grader</th>
                  <th>Kappa, 0 to 1</th>
                  <th className="number">Kappa</th>
                  <th>In words</th>
                  <th className="number">n</th>
                  <th className="number">Errors</th>
                  <th>Labels</th>
                  <th className="number">1,000 cost</th>
                  <th>Made</th>
                </tr>
              </thead>
              <tbody>
                {cards.data.items.map((card) => (
                  <CardRow key={card.id} project={project} card={card} />
                ))}
              </tbody>
            </table>
          </div>
        )}
      </div>
    </div>
  );
}

function CardRow({ project, card }: { project: string; card: Schemas["CardSummary"] }) {
  return (
    <tr>
      <td>
        <Link to={`/p/${project}/calibrations/${card.id}`}>{card.grader}</Link>{" "}
        <State card={card} />
      </td>
      <td>
        <IntervalBar figure={card.kappa} />
      </td>
      <td className="number">{figureText(card.kappa)}</td>
      <td>{card.words}</td>
      <td className="number">{whole(card.n)}</td>
      <td className="number">
        {card.errors > 0 ? <Outcome state="error" text={whole(card.errors)} /> : "0"}
      </td>
      <td>{card.field || card.labels}</td>
      <td className="number">{price(card)}</td>
      <td className="nowrap soft">{moment(card.created_at)}</td>
    </tr>
  );
}

export function price(card: Schemas["CardSummary"]): string {
  return card.asks_models ? money(card.usd_per_thousand) : "no model";
}

/** Whether a card is still of the grader as it is now. */
export function State({ card }: { card: Schemas["CardSummary"] }) {
  if (card.state === "unknown") return null;
  return card.state === "stale" ? (
    <span className="badge warns">↻ stale</span>
  ) : (
    <span className="badge">current</span>
  );
}
