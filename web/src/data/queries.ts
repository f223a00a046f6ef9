import { useQuery } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../api/client";

export type Dataset = Schemas["DatasetRecord"];
export type Job = Schemas["JobRecord"];

export const isActive = (job: Job) => job.status === "queued" || job.status === "running";

export function useDatasets(project: string) {
  return useQuery({
    queryKey: ["datasets", project],
    queryFn: ({ signal }) =>
      every((cursor) =>
        ask(
          api.GET("/api/v1/projects/{project}/datasets", {
            params: { path: { project }, query: { limit: 200, ...cursor } },
            signal,
          }),
        ),
      ),
  });
}

export function useDataset(project: string, key: string) {
  return useQuery({
    queryKey: ["dataset", project, key],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/datasets/{key}", {
          params: { path: { project, key } },
          signal,
        }),
      ),
  });
}

/** The newest jobs, asked for again while one of them is at work. */
export function useJobs(project: string, only: { status?: Job["status"]; dataset?: string }) {
  return useQuery({
    queryKey: ["jobs", project, only.status ?? "", only.dataset ?? ""],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/jobs", {
          params: { path: { project }, query: { limit: 200, ...only } },
          signal,
        }),
      ),
    refetchInterval: (query) => (query.state.data?.items.some(isActive) ? 1_500 : false),
  });
}

interface Part<T> {
  items: T[];
  next_cursor: string | null;
}

/** All parts of a list that is never very long. */
export async function every<T>(part: (cursor: { cursor?: string }) => Promise<Part<T>>) {
  const found: T[] = [];
  let cursor: string | null = null;
  do {
    const next: Part<T> = await part(cursor === null ? {} : { cursor });
    found.push(...next.items);
    cursor = next.next_cursor;
  } while (cursor !== null && found.length < 5_000);
  return found;
}

const UNITS = ["bytes", "kB", "MB", "GB"] as const;

export function size(bytes: number): string {
  let unit = 0;
  let value = bytes;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}
