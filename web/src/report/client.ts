import createQueries, { type OpenapiQueryClient } from "openapi-react-query";
import { Problem } from "../api/problem";
import type { components, paths } from "../api/schema";
import type { Chosen } from "../runs/chosen";
import { type OpenedCell, runData } from "./data";

export type Schemas = components["schemas"];

type CellRow = Schemas["CellRow"];
type End = CellRow["ended"];
type Query = Record<string, unknown>;

interface Asked {
  params?: { path?: unknown; query?: unknown };
}

/** Answers what the pages ask their server, from the file that they are in. */
const answers: Record<string, (query: Query) => unknown> = {
  "/api/v1/runs/{run}": () => runData().record,
  "/api/v1/runs/{run}/overview": () => runData().overview,
  "/api/v1/runs/{run}/matrix": matrix,
  "/api/v1/runs/{run}/scores": () => runData().scores ?? missing(),
  "/api/v1/runs/{run}/trainability": () => runData().trainability ?? missing(),
  "/api/v1/runs/{run}/cells": cells,
  "/api/v1/runs/{run}/cells/opened": (query) => opened(query).view,
  "/api/v1/runs/{run}/cells/outline": (query) => opened(query).outline,
  "/api/v1/runs/{run}/cells/files": (query) => opened(query).files,
  "/api/v1/runs/{run}/cells/pictures": (query) => opened(query).pictures ?? { pictures: [] },
  "/api/v1/runs/{run}/cells/steps": steps,
  "/api/v1/runs/{run}/cells/steps/search": search,
};

export const api = {
  async GET(path: string, asked: Asked): Promise<{ data: unknown; response: Response }> {
    const answer = answers[path];
    const data = (answer ?? missing)((asked.params?.query ?? {}) as Query);
    return { data, response: new Response() };
  },
};

export const $api = createQueries(api as never) as OpenapiQueryClient<paths>;

export async function ask<T>(asked: Promise<{ data?: T }>): Promise<T> {
  return (await asked).data as T;
}

function missing(): never {
  const command = `assay view ${runData().record.id}`;
  throw new Problem(404, "This is not in the file", `See it with: ${command}`);
}

function matrix(query: Query): Schemas["RunMatrix"] {
  const { matrix: whole, worst } = runData();
  const [offset, limit] = [Number(query.offset), Number(query.limit)];
  const every =
    query.sort === "worst" ? worst.flatMap((place) => whole.items[place] ?? []) : whole.items;
  return { ...whole, items: every.slice(offset, offset + limit) };
}

function opened(query: Query): OpenedCell {
  const found = runData().opened.find(
    ({ view: { place } }) =>
      place.case === query.case &&
      place.harness === query.harness &&
      place.model === query.model &&
      place.trial === query.trial,
  );
  if (found) return found;
  // Its name is not part of the command: whoever wrote it would have it typed into a shell.
  const command = `assay report ${runData().record.id} --case ID`;
  throw new Problem(404, "This cell is not in this file", `See it with: ${command}`);
}

function steps(query: Query): Schemas["StepPart"] {
  const { steps: every, total } = opened(query).steps;
  const from = Number(query.from);
  return { steps: every.slice(from, from + Number(query.n)), total };
}

function search(query: Query): Schemas["FoundSteps"] {
  const words = String(query.q).toLowerCase();
  const places = opened(query)
    .steps.steps.filter((step) => `${step.label}\n${step.text.text}`.toLowerCase().includes(words))
    .map((step) => step.index);
  return { places, total: places.length };
}

const ENDS: Record<End, keyof Schemas["Ends"]> = {
  pass: "passed",
  fail: "failed",
  error: "errors",
  skipped: "skipped",
  scored: "scored",
};
const NO_ENDS = { passed: 0, failed: 0, errors: 0, skipped: 0, scored: 0 };

type Wanted = Omit<Chosen, "outcome"> & { outcome: string; limit: number; offset: number };

/** The cells that suit what is chosen, sorted, as the server finds them. */
function cells(query: Query): Schemas["CellPage"] {
  const wanted = query as unknown as Wanted;
  const { rows, overview, causes } = runData();
  const ends = wanted.outcome.split(",").filter(Boolean);
  const suits = (row: CellRow, but = "") =>
    (but === "end" || ends.length === 0 || ends.includes(row.ended)) &&
    (but === "agent" ||
      ((wanted.harness ?? row.harness) === row.harness &&
        (wanted.model ?? row.model) === row.model)) &&
    (!wanted.flagged || row.flag_count > 0) &&
    (!wanted.held || row.held) &&
    (!wanted.case || row.case === wanted.case) &&
    row.case.toLowerCase().includes(wanted.search.toLowerCase());
  const isCaused = (place: number) => !wanted.cause || causes[place] === wanted.cause;
  const found = rows.filter((row, place) => isCaused(place) && suits(row)).sort(by(wanted));
  const counted = { ...NO_ENDS };
  const agents = new Map<string, Schemas["AgentCount"]>();
  for (const row of rows.filter((_, place) => isCaused(place))) {
    if (suits(row, "end")) counted[ENDS[row.ended]] += 1;
    const key = JSON.stringify([row.harness, row.model]);
    const agent = agents.get(key) ?? { harness: row.harness, model: row.model, count: 0 };
    if (suits(row, "agent")) agent.count += 1;
    agents.set(key, agent);
  }
  return {
    items: found.slice(wanted.offset, wanted.offset + wanted.limit),
    total: found.length,
    next: null,
    counts: {
      cells: overview.run.total,
      ends: counted,
      agents: [...agents.values()],
      flagged: found.filter((row) => row.flag_count > 0).length,
      held: found.filter((row) => row.held).length,
    },
    last: overview.last,
  };
}

const NUMBERS = {
  reward: "reward",
  cost: "cost_usd",
  tokens: "tokens",
  seconds: "seconds",
  trial: "trial",
} as const;

/** By the chosen column, what is unknown last; else as the file has them. */
function by({ sort, descending }: Wanted): (a: CellRow, b: CellRow) => number {
  const way = descending ? -1 : 1;
  if (sort === "case") {
    return (a, b) => way * a.case.localeCompare(b.case, "en", { numeric: true });
  }
  const column = NUMBERS[sort];
  return (a, b) => {
    const [one, other] = [a[column], b[column]];
    if (one === null || other === null) return Number(one === null) - Number(other === null);
    return way * (one - other);
  };
}
