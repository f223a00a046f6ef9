import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { useProject } from "../api/me";
import { ButtonLink } from "../parts/Button";
import { Empty } from "../parts/Empty";
import { whole } from "../parts/figures";
import { Menu } from "../parts/Menu";
import { Badge, Page } from "../parts/Page";
import { Boundary } from "../parts/Panel";
import { type Shown, Table } from "../parts/Table";
import { When } from "../parts/When";
import { useExport } from "./exporting";
import { Agreement, LabelTabs, useSets } from "./sets";

/** What people said of answers, field by field. */
export default function LabelsPage() {
  const project = useProject();
  return (
    <Page
      title="Labels"
      actions={
        <ButtonLink tone="primary" to={`/p/${project}/labels/queue`}>
          Label answers
        </ButtonLink>
      }
    >
      <LabelTabs project={project} />
      <Boundary what="Loading labels" place={project}>
        <Sets project={project} />
      </Boundary>
    </Page>
  );
}

function Sets({ project }: { project: string }) {
  const sets = useSets(project);
  if (sets.length === 0) {
    return (
      <Empty title="Nobody has labelled anything yet" command="assay calibrate label answers.jsonl">
        <p>
          What people say of some answers tells how far a grader can be trusted. Twenty are a
          beginning: label them here, one key each, or in a terminal.
        </p>
      </Empty>
    );
  }
  return (
    <Table
      label="Label sets"
      columns={columnsOf(project)}
      items={sets}
      keyOf={(one) => one.field}
    />
  );
}

function columnsOf(project: string): Shown<Schemas["LabelSet"]>[] {
  return [
    {
      name: "Field",
      kind: "name",
      show: (set) => (
        <Link to={`/p/${project}/labels/set?field=${encodeURIComponent(set.field)}`}>
          {set.field}
        </Link>
      ),
      below: (set) => (
        <>
          <span className="line-clamp-2">{set.criterion}</span>
          {whole(set.items)} items, last <When at={set.last_at} />
        </>
      ),
    },
    { name: "People agree", show: (set) => <Agreement set={set} /> },
    { name: "Labels", from: "md", show: (set) => <Counts of={Object.entries(set.labels)} /> },
    {
      name: "Raters",
      from: "md",
      show: (set) => <Counts of={set.raters.map(({ rater, items }) => [rater, items])} />,
    },
    {
      name: "What to do",
      isMute: true,
      show: (set) => <Deeds project={project} set={set} />,
    },
  ];
}

function Counts({ of }: { of: readonly (readonly [string, number])[] }) {
  return (
    <span className="flex flex-wrap gap-1">
      {of.map(([name, times]) => (
        <Badge key={name}>
          {name} <strong className="font-medium tabular-nums">{whole(times)}</strong>
        </Badge>
      ))}
    </span>
  );
}

function Deeds({ project, set }: { project: string; set: Schemas["LabelSet"] }) {
  const exported = useExport(project, set.field);
  const used = Object.keys(set.labels);
  const isUsual = used.every((label) => ["PASS", "FAIL", "NA"].includes(label));
  const classes = isUsual || used.length < 2 ? "" : used.sort().join(",");
  const more = new URLSearchParams({ field: set.field, ...(classes && { classes }) });
  return (
    <>
      <Menu
        label={`What to do with ${set.field}`}
        offers={[
          { name: "Continue labelling", to: `/p/${project}/labels/queue?${more}` },
          {
            name: "Calibrate a grader",
            to: `/p/${project}/calibrations?new=1&field=${encodeURIComponent(set.field)}`,
          },
          { name: "Export", act: exported.save },
        ]}
      />
      {exported.problem}
    </>
  );
}
