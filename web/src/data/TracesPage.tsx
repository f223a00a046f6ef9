import { api, ask, type Schemas } from "../api/client";
import { useList } from "../api/lists";
import { useProject } from "../api/me";
import { Command } from "../parts/Command";
import { Empty } from "../parts/Empty";
import { whole } from "../parts/figures";
import { More } from "../parts/More";
import { Outcome } from "../parts/Outcome";
import { type Shown, Table } from "../parts/Table";
import { When } from "../parts/When";
import { DataPage } from "./DataPage";
import { size } from "./queries";

const COLUMNS: readonly Shown<Schemas["TraceRecord"]>[] = [
  {
    name: "Trace",
    kind: "name",
    show: (one) => one.name || "–",
    below: (one) => <code>{one.id}</code>,
  },
  {
    name: "State",
    show: (one) => (
      <>
        {one.whole ? "whole" : <span className="text-soft">its outermost span is missing</span>}
        {!one.gen_ai && <span className="text-soft">, nothing of a model in it</span>}
        {one.refused > 0 && <Outcome state="error" text={`${whole(one.refused)} spans refused`} />}
      </>
    ),
  },
  { name: "Spans", kind: "number", show: (one) => whole(one.spans) },
  { name: "Size", kind: "number", from: "md", show: (one) => size(one.size) },
  {
    name: "Last heard of",
    kind: "number",
    from: "md",
    show: (one) => <When at={one.updated_at} />,
  },
];

/** What tracers sent, until datasets are made of it. */
export default function TracesPage() {
  const project = useProject();
  const path = "/api/v1/projects/{project}/traces";
  const list = useList(["get", path, project], (rest, signal) => {
    const params = { path: { project }, query: { limit: 100, ...rest } };
    return ask(api.GET(path, { params, signal }));
  });
  const where = project === "default" ? "" : ` --project ${project}`;
  return (
    <DataPage
      title="Traces"
      actions={
        list.items.length > 0 && <Command text={`assay server collect traces answers${where}`} />
      }
    >
      {list.items.length > 0 ? (
        <Table columns={COLUMNS} items={list.items} keyOf={(one) => one.id} />
      ) : (
        <Empty
          title="No tracer has sent anything yet"
          command={`export OTEL_EXPORTER_OTLP_ENDPOINT=${window.location.origin}/api/v1/projects/${project}/otlp`}
        >
          <p>
            What agents and applications send by OpenTelemetry is kept here until a dataset is made
            of it.
          </p>
        </Empty>
      )}
      <More found={list} what="Show older ones" />
    </DataPage>
  );
}
