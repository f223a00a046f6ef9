import { $api, type Schemas } from "../api/client";
import { useProject } from "../api/me";
import { IN_PARTS } from "../api/pages";
import { Command } from "../parts/Command";
import { Empty } from "../parts/Empty";
import { whole } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { More } from "../parts/More";
import { Outcome } from "../parts/Outcome";
import { ProblemBox } from "../parts/ProblemBox";
import { Below, type Shown, Table } from "../parts/Table";
import { When } from "../parts/When";
import { DataPage } from "./DataPage";
import { size } from "./queries";

const COLUMNS: readonly Shown<Schemas["TraceRecord"]>[] = [
  {
    name: "Trace",
    kind: "name",
    show: (one) => (
      <>
        {one.name || "–"}
        <Below>
          <code>{one.id}</code>
        </Below>
      </>
    ),
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
  const found = $api.useInfiniteQuery(
    "get",
    "/api/v1/projects/{project}/traces",
    { params: { path: { project }, query: { limit: 100 } } },
    IN_PARTS,
  );
  const traces = found.data?.pages.flatMap((part) => part.items);
  const where = project === "default" ? "" : ` --project ${project}`;
  return (
    <DataPage
      title="Traces"
      actions={
        traces &&
        traces.length > 0 && <Command text={`assay server collect traces answers${where}`} />
      }
    >
      {found.isPending && <Loading what="Loading traces" />}
      {found.error && <ProblemBox problem={found.error} retry={() => found.refetch()} />}
      {traces?.length === 0 && (
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
      {traces && traces.length > 0 && (
        <Table columns={COLUMNS} items={traces} keyOf={(one) => one.id} />
      )}
      <More found={found} what="Show older ones" />
    </DataPage>
  );
}
