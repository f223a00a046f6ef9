import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useNavigate, useSearchParams } from "react-router";
import { api, ask, type Schemas } from "../api/client";
import { useEvents } from "../api/live";
import { Command } from "../parts/Command";
import { Empty } from "../parts/Empty";
import { count, whole } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import { Search } from "../parts/Search";
import { usePageTitle } from "../parts/title";
import { RunsTable } from "./RunsTable";
import "./runs.css";

type RunRow = Schemas["RunRow"];
type RunPage = Schemas["RunPage"];

const PART = 50;

export default function RunsPage() {
  usePageTitle("Runs");
  const [address, setAddress] = useSearchParams();
  const search = address.get("search") ?? "";
  const offset = Math.max(0, Number(address.get("offset")) || 0);
  const chosen = (address.get("select") ?? "").split(",").filter(Boolean);
  const queries = useQueryClient();
  const navigate = useNavigate();
  const key = ["runs", search, offset];
  const runs = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => {
      const query = { limit: PART, offset, search };
      return ask(api.GET("/api/v1/runs", { signal, params: { query } }));
    },
    placeholderData: keepPreviousData,
  });
  const total = runs.data?.total ?? 0;
  const [told, setTold] = useState({ total: 0, at: 0 });
  useEvents(runs.data ? "/api/v1/run-events" : null, ["runs"], (_, data) => {
    const { items, total } = data as { items: RunRow[]; total: number };
    const changed = new Map(items.map((run) => [run.id, run]));
    queries.setQueryData<RunPage>(
      key,
      (known) => known && { ...known, items: known.items.map((run) => changed.get(run.id) ?? run) },
      { updatedAt: runs.dataUpdatedAt },
    );
    setTold({ total, at: Date.now() });
  });

  // Rows come and go when they are asked for: what somebody looks at does not move.
  const isNewer = !search && runs.data && told.at > runs.dataUpdatedAt;
  const fresh = isNewer ? told.total - total : 0;

  const change = (changes: Record<string, string>) => {
    setAddress(
      (before) => {
        const next = new URLSearchParams(before);
        for (const [name, value] of Object.entries(changes)) {
          if (value) next.set(name, value);
          else next.delete(name);
        }
        return next;
      },
      { replace: true },
    );
  };
  const reload = () => queries.invalidateQueries({ queryKey: ["runs"] });
  const choose = (id: string) => {
    const rest = chosen.filter((one) => one !== id);
    const next = rest.length < chosen.length ? rest : [...chosen.slice(-1), id];
    change({ select: next.join(",") });
  };
  // The older one is what is compared with.
  const [a, b] = [...chosen].sort();

  return (
    <div className="page">
      <div className="page-head">
        <h1>Runs</h1>
        <div className="row">
          <Search
            label="Find runs by label, id or what was run"
            placeholder="Label, id or path"
            value={search}
            change={(text) => change({ search: text, offset: "" })}
          />
          <button
            type="button"
            className="primary"
            disabled={!(a && b)}
            title={a && b ? undefined : "Choose two runs"}
            onClick={() => navigate(`/compare?${new URLSearchParams({ a: a ?? "", b: b ?? "" })}`)}
          >
            Compare {chosen.length ? `${chosen.length} of 2` : "two"}
          </button>
        </div>
      </div>
      {fresh !== 0 && (
        <button type="button" className="news" onClick={reload}>
          {fresh > 0 ? count(fresh, "new run") : "Runs were deleted: show what there is"}
        </button>
      )}
      {!runs.data && !runs.error && <Loading what="Loading runs" />}
      {!runs.data && runs.error && <ProblemBox problem={runs.error} retry={() => runs.refetch()} />}
      {runs.data && runs.data.total === 0 && (
        <NoRuns search={search} clear={() => change({ search: "" })} />
      )}
      {runs.data && total > 0 && (
        <>
          <RunsTable runs={runs.data.items} chosen={chosen} choose={choose} />
          <Parts
            total={total}
            offset={offset}
            go={(to) => change({ offset: to ? String(to) : "" })}
          />
        </>
      )}
    </div>
  );
}

function NoRuns({ search, clear }: { search: string; clear: () => void }) {
  if (search) {
    return (
      <Empty title="No run is like that">
        <button type="button" onClick={clear}>
          Show all runs
        </button>
      </Empty>
    );
  }
  return (
    <Empty title="Nothing was run yet" command="assay run PATH">
      <p>Run cases with agents, or grade answers that you have; this page shows them as they go.</p>
      <Command text="assay grade answers.jsonl graders.yaml" />
      <p className="soft">A directory of examples to start from:</p>
      <Command text="assay init my-suite" />
    </Empty>
  );
}

function Parts({ total, offset, go }: { total: number; offset: number; go: (to: number) => void }) {
  if (total <= PART && !offset) return null;
  const last = Math.min(total, offset + PART);
  return (
    <nav className="row parts" aria-label="Pages of runs">
      <button type="button" disabled={offset === 0} onClick={() => go(Math.max(0, offset - PART))}>
        Newer
      </button>
      <span className="soft">
        {whole(Math.min(offset + 1, total))} to {whole(last)} of {whole(total)}
      </span>
      <button type="button" disabled={last >= total} onClick={() => go(offset + PART)}>
        Older
      </button>
      {offset >= total && <Link to="/runs">Show the newest</Link>}
    </nav>
  );
}
