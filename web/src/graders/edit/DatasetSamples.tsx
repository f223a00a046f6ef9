import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link, useSearchParams } from "react-router";
import { api, ask, type Schemas } from "../../api/client";
import { Empty } from "../../parts/Empty";
import { whole } from "../../parts/figures";
import { ProblemBox } from "../../parts/ProblemBox";

const MOST = 200;
const PAGE = 8;

export interface DatasetChoice {
  dataset: string | null;
  rows: number[];
  take: number;
}

/** Which rows of which dataset, as the address says. */
export function datasetChoice(query: URLSearchParams): DatasetChoice {
  const mode = query.get("mode") ?? "first";
  const number = (name: string, otherwise: number) => {
    const found = Number.parseInt(query.get(name) ?? "", 10);
    return Number.isFinite(found) && found >= 0 ? found : otherwise;
  };
  const rows = (query.get("rows") ?? "").split(",").map(Number).filter(Number.isInteger);
  return {
    dataset: query.get("dataset"),
    rows: mode === "chosen" ? rows.filter((row) => row > 0) : [],
    take: mode === "chosen" ? 0 : Math.min(MOST, number("take", 5)),
  };
}

/** Chooses a stored dataset, and rows of it. */
export function DatasetSamples({ project }: { project: string }) {
  const [address, setAddress] = useSearchParams();
  // The address follows a moment later, too late for what somebody types.
  const [query, setQuery] = useState(address);
  const choice = datasetChoice(query);
  const mode = query.get("mode") ?? "first";
  const datasets = useQuery({
    queryKey: ["datasets", project, "all"],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/datasets", {
          params: { path: { project }, query: { limit: 200 } },
          signal,
        }),
      ),
  });
  const set = (values: Record<string, string>) => {
    const changed = (before: URLSearchParams) =>
      new URLSearchParams({ ...Object.fromEntries(before), ...values });
    setQuery(changed);
    setAddress(changed, { replace: true });
  };
  const items = datasets.data?.items ?? [];
  const only = items.length === 1 && choice.dataset === null ? items[0]?.key : undefined;
  useEffect(() => {
    if (only) set({ dataset: only });
  });

  if (datasets.error) return <ProblemBox problem={datasets.error} retry={datasets.refetch} />;
  if (datasets.data && items.length === 0) {
    return (
      <Empty title="No dataset is stored yet">
        <p>
          <Link to={`/p/${project}/datasets`}>Upload recorded answers</Link>, a JSON object on each
          line, to try graders on them.
        </p>
      </Empty>
    );
  }
  return (
    <div className="dataset-samples">
      <label>
        <span>Dataset</span>
        <select
          value={choice.dataset ?? ""}
          onChange={(event) => set({ dataset: event.target.value, rows: "" })}
        >
          <option value="" disabled>
            {datasets.data ? "choose" : "…"}
          </option>
          {items.map((one) => (
            <option key={one.key} value={one.key}>
              {one.key} ({whole(one.rows)})
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>Rows</span>
        <select value={mode} onChange={(event) => set({ mode: event.target.value })}>
          <option value="first">the first</option>
          <option value="chosen">chosen</option>
        </select>
      </label>
      {mode !== "chosen" && (
        <label>
          <span>How many</span>
          <input
            type="number"
            min={1}
            max={MOST}
            value={query.get("take") ?? choice.take}
            onChange={(event) => set({ take: event.target.value })}
          />
        </label>
      )}
      {mode === "chosen" && choice.dataset && (
        <ChosenRows
          key={choice.dataset}
          project={project}
          dataset={choice.dataset}
          chosen={choice.rows}
          choose={(rows) => set({ rows: rows.join(",") })}
        />
      )}
    </div>
  );
}

function ChosenRows({ project, dataset, chosen, choose }: ChosenProps) {
  const [cursors, setCursors] = useState<(string | null)[]>([null]);
  const cursor = cursors.at(-1) ?? null;
  const rows = useQuery({
    queryKey: ["rows", project, dataset, cursor, PAGE],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/datasets/{key}/rows", {
          params: { path: { project, key: dataset }, query: { limit: PAGE, after: cursor } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
  });
  const toggle = (number: number) =>
    choose(
      chosen.includes(number)
        ? chosen.filter((one) => one !== number)
        : [...chosen, number].sort((a, b) => a - b),
    );
  if (rows.error) return <ProblemBox problem={rows.error} retry={rows.refetch} />;
  const next = rows.data?.next;
  return (
    <div className="chosen-rows">
      <ul>
        {rows.data?.items.map((row) => (
          <li key={row.number}>
            <label className="row">
              <input
                type="checkbox"
                checked={chosen.includes(row.number)}
                disabled={!chosen.includes(row.number) && chosen.length >= MOST}
                onChange={() => toggle(row.number)}
              />
              <span className="soft number">{row.number}</span>
              <span className="clip">{excerpt(row)}</span>
            </label>
          </li>
        ))}
      </ul>
      <div className="row">
        <button
          type="button"
          disabled={cursors.length === 1}
          onClick={() => setCursors(cursors.slice(0, -1))}
        >
          Back
        </button>
        <button
          type="button"
          disabled={!next}
          onClick={() => next && setCursors([...cursors, next])}
        >
          More rows
        </button>
        <span className="soft">{chosen.length} chosen</span>
        {chosen.length > 0 && (
          <button type="button" className="quiet" onClick={() => choose([])}>
            None
          </button>
        )}
      </div>
    </div>
  );
}

function excerpt({ question, answer, fault, id }: Schemas["RowGlimpse"]): string {
  return [question, answer].filter(Boolean).join(" → ").slice(0, 200) || fault || id;
}

interface ChosenProps {
  project: string;
  dataset: string;
  chosen: number[];
  choose: (rows: number[]) => void;
}
