import { useInfiniteQuery } from "@tanstack/react-query";
import { api, ask } from "../api/client";
import { useProject } from "../api/me";
import { Command } from "../parts/Command";
import { Empty } from "../parts/Empty";
import { moment, whole } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { Outcome } from "../parts/Outcome";
import { ProblemBox } from "../parts/ProblemBox";
import { usePageTitle } from "../parts/title";
import { DataTabs } from "./DataTabs";
import { size } from "./queries";

/** What tracers sent, until datasets are made of it. */
export default function TracesPage() {
  usePageTitle("Traces");
  const project = useProject();
  const found = useInfiniteQuery({
    queryKey: ["traces", project],
    initialPageParam: "",
    queryFn: ({ signal, pageParam }) =>
      ask(
        api.GET("/api/v1/projects/{project}/traces", {
          params: {
            path: { project },
            query: { limit: 100, ...(pageParam ? { after: pageParam } : {}) },
          },
          signal,
        }),
      ),
    getNextPageParam: (last) => last.next ?? undefined,
  });
  const traces = found.data?.pages.flatMap((part) => part.items);
  const where = project === "default" ? "" : ` --project ${project}`;
  return (
    <div className="page">
      <DataTabs />
      <div className="page-head">
        <h1>Traces</h1>
        {traces && traces.length > 0 && (
          <Command text={`assay server collect traces answers${where}`} />
        )}
      </div>
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
        <table>
          <thead>
            <tr>
              <th scope="col">Trace</th>
              <th scope="col">Name</th>
              <th scope="col">State</th>
              <th scope="col" className="number">
                Spans
              </th>
              <th scope="col" className="number">
                Size
              </th>
              <th scope="col">Last heard of</th>
            </tr>
          </thead>
          <tbody>
            {traces.map((one) => (
              <tr key={one.id}>
                <td className="mono">{one.id}</td>
                <td className="anywhere">{one.name || "–"}</td>
                <td>
                  {one.whole ? (
                    "whole"
                  ) : (
                    <span className="soft">its outermost span is missing</span>
                  )}
                  {!one.gen_ai && <span className="soft">, nothing of a model in it</span>}
                  {one.refused > 0 && (
                    <Outcome state="error" text={`${whole(one.refused)} spans refused`} />
                  )}
                </td>
                <td className="number">{whole(one.spans)}</td>
                <td className="number">{size(one.size)}</td>
                <td className="nowrap soft">{moment(one.updated_at)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {found.hasNextPage && (
        <button type="button" disabled={found.isFetching} onClick={() => found.fetchNextPage()}>
          Show older ones
        </button>
      )}
    </div>
  );
}
