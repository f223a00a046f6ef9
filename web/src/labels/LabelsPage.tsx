import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "react-router";
import { api, ask, type Schemas } from "../api/client";
import { Empty } from "../parts/Empty";
import { count, moment, percent, score, whole } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import { usePageTitle } from "../parts/title";
import { ExportButton } from "./ExportButton";
import "./labels.css";
import { LabelTabs } from "./LabelTabs";

export default function LabelsPage() {
  usePageTitle("Labels");
  const { project = "default" } = useParams();
  const sets = useQuery({
    queryKey: ["labels", project],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/projects/{project}/labels", { params: { path: { project } }, signal })),
  });
  return (
    <div className="page">
      <LabelTabs project={project} />
      <div className="page-head">
        <h1>Labels</h1>
        <Link className="button primary" to={`/p/${project}/labels/queue`}>
          Label answers
        </Link>
      </div>
      {sets.error && <ProblemBox problem={sets.error} retry={() => sets.refetch()} />}
      {sets.isLoading && <Loading what="Loading labels" />}
      {sets.data?.items.length === 0 && (
        <Empty
          title="Nobody has labelled anything yet"
          command="assay calibrate label answers.jsonl"
        >
          <p>
            What people say of some answers tells how far a grader can be trusted. Twenty are a
            beginning: label them here, one key each, or in a terminal.
          </p>
        </Empty>
      )}
      {sets.data && sets.data.items.length > 0 && (
        <div className="scrolls">
          <table>
            <thead>
              <tr>
                <th>Field</th>
                <th className="number">Items</th>
                <th>Labels</th>
                <th>Raters</th>
                <th>People agree</th>
                <th>Last</th>
                <th>
                  <span className="sr">What to do</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {sets.data.items.map((one) => (
                <SetRow key={one.field} project={project} set={one} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

function SetRow({ project, set }: { project: string; set: Schemas["LabelSet"] }) {
  const field = encodeURIComponent(set.field);
  const classes = classesOf(set);
  const more = new URLSearchParams({ field: set.field, ...(classes && { classes }) });
  return (
    <tr>
      <td>
        <Link to={`/p/${project}/labels/set?field=${field}`}>{set.field}</Link>
        {set.criterion && <div className="soft excerpt">{set.criterion}</div>}
      </td>
      <td className="number">{whole(set.items)}</td>
      <td>
        <span className="row tight">
          {Object.entries(set.labels).map(([label, times]) => (
            <span key={label} className="badge">
              {label} <strong>{whole(times)}</strong>
            </span>
          ))}
        </span>
      </td>
      <td>
        <span className="row tight">
          {set.raters.map(({ rater, items }) => (
            <span key={rater} className="badge">
              {rater} <strong>{whole(items)}</strong>
            </span>
          ))}
        </span>
      </td>
      <td className="nowrap">
        <Agreement set={set} />
      </td>
      <td className="nowrap soft">{moment(set.last_at)}</td>
      <td>
        <span className="row actions">
          <Link className="button" to={`/p/${project}/labels/queue?${more}`}>
            Continue
          </Link>
          <Link className="button" to={`/p/${project}/calibrations?new=1&field=${field}`}>
            Calibrate
          </Link>
          <ExportButton project={project} field={set.field} />
        </span>
      </td>
    </tr>
  );
}

/** The classes of a set: those that were used, unless they are of the usual ones. */
function classesOf(set: Schemas["LabelSet"]): string {
  const used = Object.keys(set.labels);
  const isUsual = used.every((label) => ["PASS", "FAIL", "NA"].includes(label));
  return isUsual || used.length < 2 ? "" : used.sort().join(",");
}

/** How far people agree, with how many items that rests on. */
export function Agreement({ set }: { set: Schemas["LabelSet"] }) {
  const { value, low, high, n } = set.agreed;
  if (n === 0) return <span className="soft">no item has two raters</span>;
  return (
    <>
      <strong>{percent(value)}</strong>{" "}
      <span className="soft">
        [{percent(low)}, {percent(high)}] of {count(n, "item")}
      </span>
      {set.alpha !== null && <span className="soft alpha"> alpha {score(set.alpha)}</span>}
    </>
  );
}
