import { Link } from "react-router";
import { api, ask, type Schemas } from "../api/client";
import { useList } from "../api/lists";
import { useProject } from "../api/me";
import { useAddress } from "../parts/address";
import { Button, ButtonLink } from "../parts/Button";
import { Command } from "../parts/Command";
import { Empty } from "../parts/Empty";
import { count, percent } from "../parts/figures";
import { More } from "../parts/More";
import { Page } from "../parts/Page";
import { Boundary } from "../parts/Panel";
import { Segments } from "../parts/Segments";
import { Table } from "../parts/Table";
import { useExport } from "./exporting";
import { SeenText, visible } from "./SeenText";
import { Said, useSets } from "./sets";

const WHICH = [
  ["all", "All"],
  ["several", "Of several people"],
  ["disagreed", "People differ"],
] as const;

type Which = (typeof WHICH)[number][0];

/** The items of a field, with what everybody said of them. */
export default function LabelSetPage() {
  const project = useProject();
  const [{ field, which: asked }, change] = useAddress({ field: "label", which: "all" });
  const which: Which = WHICH.find(([one]) => one === asked)?.[0] ?? "all";
  const exported = useExport(project, field);
  const set = useSets(project).find((one) => one.field === field);
  return (
    <Page
      title={field}
      tab={`Labels ${field}`}
      crumbs={<Link to={`/p/${project}/labels`}>Labels</Link>}
      facts={
        set && (
          <>
            {set.agreed.value !== null && (
              <span>
                people agree in <b>{percent(set.agreed.value)}</b> of {count(set.agreed.n, "item")}
              </span>
            )}
            {set.criterion && <span>Criterion: {set.criterion}</span>}
          </>
        )
      }
      actions={
        <>
          <Button onPress={exported.save} isPending={exported.isPending}>
            Export
          </Button>
          <ButtonLink
            tone="primary"
            to={`/p/${project}/calibrations?new=1&field=${encodeURIComponent(field)}`}
          >
            Calibrate a grader
          </ButtonLink>
        </>
      }
    >
      {exported.problem}
      <div className="mb-4">
        <Segments
          label="Which items"
          options={WHICH}
          isOn={(one) => one === which}
          press={(one) => change({ which: one }, { isStep: true })}
        />
      </div>
      <Boundary what="Loading items" place={which}>
        <Items project={project} field={field} which={which} />
      </Boundary>
    </Page>
  );
}

function Items({ project, field, which }: { project: string; field: string; which: Which }) {
  const path = "/api/v1/projects/{project}/labels/items";
  const list = useList(["get", path, project, field, which], (rest, signal) => {
    const params = { path: { project }, query: { field, which, limit: 50, ...rest } };
    return ask(api.GET(path, { params, signal }));
  });
  const rows = list.items;
  if (rows.length === 0) return <Nothing which={which} field={field} />;
  return (
    <>
      <Table
        label="Items"
        items={rows}
        keyOf={(row) => row.item}
        columns={[
          { name: "What was read", kind: "name", show: (row) => <Read row={row} /> },
          {
            name: "What people said",
            show: (row) => <Said said={row.said} odd={!row.agreed} />,
          },
          { name: "Item", from: "md", show: (row) => <code>{row.id}</code> },
        ]}
      />
      <More found={list} what="Show more" />
    </>
  );
}

function Nothing({ which, field }: { which: Which; field: string }) {
  if (which === "all") {
    const name = /^[\w.-]+$/.test(field) ? field : "NAME";
    return (
      <Empty
        title={`There are no labels ${field}`}
        command={`assay calibrate label answers.jsonl --label ${name}`}
      />
    );
  }
  return (
    <Empty
      title={which === "several" ? "No item has two raters" : "People say the same of every item"}
    >
      <p>
        Let a second person label the same items: their agreement is the most a judge can reach.
      </p>
      {which === "several" && <Command text="assay calibrate label answers.jsonl --rater bo" />}
    </Empty>
  );
}

function Read({ row }: { row: Schemas["LabelledRow"] }) {
  const text = (name: string) => row.parts.find((part) => part.name === name)?.text ?? "";
  return (
    <details className="font-normal">
      <summary className="cursor-pointer">
        <span className="text-soft">{visible(text("question").slice(0, 120))}</span>{" "}
        {visible(text("answer").slice(0, 200))}
      </summary>
      {row.parts.map((part) => (
        <SeenText key={part.name} name={part.name} text={part.text} />
      ))}
    </details>
  );
}
