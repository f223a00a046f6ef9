import {
  keepPreviousData,
  type QueryClient,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useEffect } from "react";
import { $api, api, ask, type Schemas } from "../../api/client";
import type { CellName } from "../names";

export type CellView = Schemas["CellView"];
export type Step = Schemas["StepShown"];
export type OutlinedStep = Schemas["OutlinedStep"];

/** How many steps are asked for at once. */
export const PART = 200;

/** How often an agent that is at work is looked at. */
const EVERY_MS = 1_000;
const FRESH_MS = 60_000;

/** A cell of a run, as every request about it names it. */
export function asked(run: string, { case: name, harness, model, trial }: CellName) {
  return { path: { run }, query: { case: name, harness, model, trial } };
}

function cellQuery(run: string, cell: CellName) {
  return $api.queryOptions(
    "get",
    "/api/v1/runs/{run}/cells/opened",
    { params: asked(run, cell) },
    { staleTime: 10_000 },
  );
}

/** The cell, and its neighbours beforehand, so that `j` and `k` show them at once. */
export function useCell(run: string, cell: CellName, enabled: boolean) {
  const client = useQueryClient();
  const found = useQuery({ ...cellQuery(run, cell), enabled, placeholderData: keepPreviousData });
  const { before, after } = found.data ?? {};
  useEffect(() => {
    for (const place of [after, before]) {
      if (place) void client.prefetchQuery(cellQuery(run, place));
    }
  }, [client, run, before, after]);
  return found;
}

/** The steps of a cell without their texts; again and again while its agent is at work. */
export function useOutline(run: string, cell: CellName) {
  const init = { params: asked(run, cell) };
  return $api.useSuspenseQuery("get", "/api/v1/runs/{run}/cells/outline", init, {
    staleTime: FRESH_MS,
    refetchInterval: (query) => (query.state.data?.under_way ? EVERY_MS : false),
  }).data;
}

/** The pictures of a cell. */
export function usePictures(run: string, cell: CellName) {
  const init = { params: asked(run, cell) };
  return $api.useSuspenseQuery("get", "/api/v1/runs/{run}/cells/pictures", init, {
    staleTime: FRESH_MS,
  }).data;
}

/** What was shown of cells and runs is asked for again: a result or a decision is new. */
export function forgetCells(client: QueryClient): Promise<unknown> {
  return client.invalidateQueries({
    predicate: ({ queryKey }) => String(queryKey[1]).startsWith("/api/v1/runs"),
  });
}

/** One part of the steps; parts are counted from 0. Of steps that come, the last is never old. */
export function stepsQuery(run: string, cell: CellName, part: number, isLast: boolean) {
  const { path, query } = asked(run, cell);
  return $api.queryOptions(
    "get",
    "/api/v1/runs/{run}/cells/steps",
    { params: { path, query: { ...query, from: part * PART, n: PART } } },
    isLast ? { refetchInterval: EVERY_MS } : { staleTime: FRESH_MS },
  );
}

export function useFound(run: string, cell: CellName, words: string) {
  const { path, query } = asked(run, cell);
  const init = { params: { path, query: { ...query, q: words } } };
  return $api.useQuery("get", "/api/v1/runs/{run}/cells/steps/search", init, {
    enabled: words !== "",
    staleTime: FRESH_MS,
  }).data;
}

/** The whole of a text that was folded. */
export async function wholeText(run: string, cell: CellName, ref: string): Promise<string> {
  const { path, query } = asked(run, cell);
  const params = { path, query: { ...query, ref } };
  return (await ask(api.GET("/api/v1/runs/{run}/cells/text", { params }))).text;
}
