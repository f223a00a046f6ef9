import { keepPreviousData, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { $api, type Schemas } from "../api/client";
import { useEvents } from "../api/live";
import { useAddress } from "../parts/address";
import { Button, ButtonLink } from "../parts/Button";
import { Command } from "../parts/Command";
import { Empty } from "../parts/Empty";
import { count, whole } from "../parts/figures";
import { Page } from "../parts/Page";
import { Boundary } from "../parts/Panel";
import { Search } from "../parts/Search";
import { RunsTable } from "./RunsTable";

const PART = 50;
const USUAL = { search: "", offset: 0, select: [] as readonly string[] };

export default function RunsPage() {
  const [at, change] = useAddress(USUAL);
  // The older one is what is compared with.
  const [a, b] = [...at.select].sort();
  const chosen = at.select.length;
  return (
    <Page
      title="Runs"
      actions={
        <>
          <Search
            label="Find runs by label, id or what was run"
            placeholder="Label, id or path"
            value={at.search}
            change={(search) => change({ search, offset: 0 })}
          />
          {a && b ? (
            <ButtonLink tone="primary" to={`/compare?${new URLSearchParams({ a, b })}`}>
              Compare 2 of 2
            </ButtonLink>
          ) : (
            <Button isDisabled>{chosen ? "Compare 1 of 2" : "Compare two"}</Button>
          )}
        </>
      }
    >
      <Boundary what="Loading runs">
        <Listed at={at} change={change} />
      </Boundary>
    </Page>
  );
}

type At = typeof USUAL;

function Listed({ at, change }: { at: At; change: (changes: Partial<At>) => void }) {
  const queries = useQueryClient();
  const { search, offset } = at;
  const init = { params: { query: { limit: PART, offset, search } } };
  const { queryKey } = $api.queryOptions("get", "/api/v1/runs", init);
  const runs = $api.useQuery("get", "/api/v1/runs", init, {
    placeholderData: keepPreviousData,
    throwOnError: (_, query) => query.state.data === undefined,
  });
  const total = runs.data?.total ?? 0;
  const [told, setTold] = useState({ total: 0, at: 0 });
  useEvents(runs.data ? "/api/v1/run-events" : null, ["runs"], (_, data) => {
    const news = data as { items: Schemas["RunRow"][]; total: number };
    const changed = new Map(news.items.map((run) => [run.id, run]));
    queries.setQueryData<Schemas["RunPage"]>(
      queryKey,
      (known) => known && { ...known, items: known.items.map((run) => changed.get(run.id) ?? run) },
      { updatedAt: runs.dataUpdatedAt },
    );
    setTold({ total: news.total, at: Date.now() });
  });
  if (!runs.data) return null;
  // Rows come and go when they are asked for: what somebody looks at does not move.
  const fresh = !search && told.at > runs.dataUpdatedAt ? told.total - total : 0;
  const choose = (id: string) => {
    const rest = at.select.filter((one) => one !== id);
    change({ select: rest.length < at.select.length ? rest : [...at.select.slice(-1), id] });
  };
  return (
    <>
      {fresh !== 0 && (
        <News press={() => void runs.refetch()}>
          {fresh > 0 ? count(fresh, "new run") : "Runs were deleted: show what there is"}
        </News>
      )}
      {total === 0 ? (
        <NoRuns search={search} clear={() => change({ search: "" })} />
      ) : (
        <RunsTable runs={runs.data.items} chosen={at.select} choose={choose} />
      )}
      <Parts total={total} offset={offset} size={PART} go={(to) => change({ offset: to })} />
    </>
  );
}

/** Says that there is something new, and shows it when somebody wants to see it. */
export function News({ press, children }: { press: () => void; children: string }) {
  return (
    <div className="mb-3">
      <Button icon="up" onPress={press}>
        {children}
      </Button>
    </div>
  );
}

function NoRuns({ search, clear }: { search: string; clear: () => void }) {
  if (search) {
    return (
      <Empty title="No run is like that">
        <Button onPress={clear}>Show all runs</Button>
      </Empty>
    );
  }
  return (
    <Empty title="Nothing was run yet" command="assay run PATH">
      <p>Run cases with agents, or grade answers that you have; this page shows them as they go.</p>
      <Command text="assay grade answers.jsonl graders.yaml" />
      <p>A directory of examples to start from:</p>
      <Command text="assay init my-suite" />
    </Empty>
  );
}

/** Leads to the other parts of a long list. */
export function Parts({ total, offset, size, go }: PartsProps) {
  if (total <= size && !offset) return null;
  const last = Math.min(total, offset + size);
  return (
    <nav
      className="mt-3 flex flex-wrap items-center gap-3 text-soft tabular-nums"
      aria-label="Parts"
    >
      <Button isDisabled={offset === 0} onPress={() => go(Math.max(0, offset - size))}>
        Before
      </Button>
      {whole(Math.min(offset + 1, total))} to {whole(last)} of {whole(total)}
      <Button isDisabled={last >= total} onPress={() => go(offset + size)}>
        After
      </Button>
    </nav>
  );
}

interface PartsProps {
  total: number;
  offset: number;
  size: number;
  go: (to: number) => void;
}
