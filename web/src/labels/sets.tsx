import { $api, type Schemas } from "../api/client";
import { count, moment, percent, score } from "../parts/figures";
import { Badge } from "../parts/Page";
import { Below } from "../parts/Table";
import { PageTabs } from "../parts/Tabs";
import { visible } from "./SeenText";

/** Every field that people labelled. */
export function useSets(project: string): Schemas["LabelSet"][] {
  const params = { path: { project } };
  return $api.useSuspenseQuery("get", "/api/v1/projects/{project}/labels", { params }).data.items;
}

/** What people said, and how far graders agree with it. */
export function LabelTabs({ project }: { project: string }) {
  const pages = [
    [`/p/${project}/labels`, "Label sets"],
    [`/p/${project}/calibrations`, "Calibrations"],
  ] as const;
  return <PageTabs label="Labels" pages={pages} />;
}

/** How far people agree, with how many items that rests on. */
export function Agreement({ set }: { set: Schemas["LabelSet"] }) {
  const { value, low, high, n } = set.agreed;
  if (n === 0) return <span className="text-soft">no item has two raters</span>;
  return (
    <span className="tabular-nums">
      <strong className="font-medium">{percent(value)}</strong>{" "}
      <span className="whitespace-nowrap text-soft">
        [{percent(low)}, {percent(high)}]
      </span>
      <Below>
        of {count(n, "item")}
        {set.alpha !== null && `, alpha ${score(set.alpha)}`}
      </Below>
    </span>
  );
}

/** What each person said, with their notes. */
export function Said({ said, odd }: { said: readonly Schemas["SaidLabel"][]; odd: boolean }) {
  return (
    <span className="flex flex-wrap gap-1">
      {said.map(({ rater, label, note, created_at }) => (
        <Badge key={rater} tone={odd ? "error" : "plain"} title={moment(created_at)}>
          {rater}: <strong className="font-medium">{label}</strong>
          {note && ` “${visible(note)}”`}
        </Badge>
      ))}
    </span>
  );
}
