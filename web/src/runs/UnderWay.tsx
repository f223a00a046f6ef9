import { Link } from "react-router";
import { $api } from "../api/client";
import { count, duration } from "../parts/figures";
import { Panel } from "../parts/Panel";
import { Table } from "../parts/Table";
import { agentName, cellAddress } from "./names";

const EVERY_MS = 1_000;

/** What agents work on now, which has no result yet; each leads to its steps as they come. */
export function UnderWay({ run }: { run: string }) {
  const init = { params: { path: { run } } };
  const { data, dataUpdatedAt } = $api.useQuery("get", "/api/v1/runs/{run}/cells/under-way", init, {
    refetchInterval: EVERY_MS,
  });
  if (!data?.cells.length) return null;
  return (
    <Panel title="At work now" note={count(data.cells.length, "cell")}>
      <Table
        label="Cells under way"
        items={data.cells}
        keyOf={({ place }) => JSON.stringify(place)}
        columns={[
          {
            name: "Case",
            kind: "name",
            show: ({ place }) => (
              <Link to={`${cellAddress(run, place)}&live=true`}>{place.case}</Link>
            ),
          },
          {
            name: "For",
            kind: "number",
            show: ({ began }) =>
              duration(Math.max(0, Math.round((dataUpdatedAt - Date.parse(began)) / 1_000))),
          },
          { name: "Agent", show: ({ place }) => agentName(place) },
          { name: "Trial", kind: "number", show: ({ place }) => place.trial },
        ]}
      />
    </Panel>
  );
}
