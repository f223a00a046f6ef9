import {
  keepPreviousData,
  type QueryClient,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useEffect } from "react";
import { api, ask, type Schemas } from "../../api/client";
import type { CellName } from "../names";

export type CellView = Schemas["CellView"];
export type Step = Schemas["StepShown"];
export type OutlinedStep = Schemas["OutlinedStep"];

/** How many steps are asked for at once. */
export const PART = 200;

function asked(run: string, cell: CellName) {
  const { case: name, harness, model, trial } = cell;
  return { path: { run }, query: { case: name, harness, model, trial } };
}

function cellKey(run: string, cell: CellName) {
  return ["cell", run, cell.case, cell.harness, cell.model, cell.trial] as const;
}

function cellQuery(run: string, cell: CellName) {
  return {
    queryKey: [...cellKey(run, cell), "opened"],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      ask(api.GET("/api/v1/runs/{run}/cells/opened", { params: asked(run, cell), signal })),
    staleTime: 10_000,
  };
}

/** The cell, and its neighbours beforehand, so that `j` and `k` show them at once. */
export function useCell(run: string, cell: CellName) {
  const client = useQueryClient();
  const found = useQuery({ ...cellQuery(run, cell), placeholderData: keepPreviousData });
  const { before, after } = found.data ?? {};
  useEffect(() => {
    for (const place of [after, before]) {
      if (place) void client.prefetchQuery(cellQuery(run, place));
    }
  }, [client, run, before, after]);
  return found;
}

export function useOutline(run: string, cell: CellName) {
  return useQuery({
    queryKey: [...cellKey(run, cell), "outline"],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/runs/{run}/cells/outline", { params: asked(run, cell), signal })),
    staleTime: 60_000,
  });
}

/** What was shown of cells and runs is asked for again: a result or a decision is new. */
export function forgetCells(client: QueryClient): Promise<unknown> {
  const stale = ["cell", "runs", "run"];
  return client.invalidateQueries({
    predicate: (query) => stale.includes(String(query.queryKey[0])),
  });
}

/** One part of the steps; parts are counted from 0. */
export function stepsQuery(run: string, cell: CellName, part: number) {
  const { path, query } = asked(run, cell);
  return {
    queryKey: [...cellKey(run, cell), "steps", part],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      ask(
        api.GET("/api/v1/runs/{run}/cells/steps", {
          params: { path, query: { ...query, from: part * PART, n: PART } },
          signal,
        }),
      ),
    staleTime: 60_000,
  };
}

export function useFound(run: string, cell: CellName, words: string) {
  const { path, query } = asked(run, cell);
  return useQuery({
    queryKey: [...cellKey(run, cell), "found", words],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/runs/{run}/cells/steps/search", {
          params: { path, query: { ...query, q: words } },
          signal,
        }),
      ),
    enabled: words !== "",
    staleTime: 60_000,
  });
}

export function useFiles(run: string, cell: CellName) {
  return useQuery({
    queryKey: [...cellKey(run, cell), "files"],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/runs/{run}/cells/files", { params: asked(run, cell), signal })),
    staleTime: 60_000,
  });
}

export function useRaw(run: string, cell: CellName) {
  return useQuery({
    queryKey: [...cellKey(run, cell), "raw"],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/runs/{run}/cells/detail", { params: asked(run, cell), signal })),
    staleTime: 60_000,
  });
}

/** The whole of a text that was folded. */
export async function wholeText(run: string, cell: CellName, ref: string): Promise<string> {
  const { path, query } = asked(run, cell);
  const found = await ask(
    api.GET("/api/v1/runs/{run}/cells/text", { params: { path, query: { ...query, ref } } }),
  );
  return found.text;
}
