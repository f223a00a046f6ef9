import { useQuery } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../api/client";
import { every } from "../api/pages";

export type Dataset = Schemas["DatasetRecord"];
export type Job = Schemas["JobRecord"];

export const isActive = (job: Job) => job.status === "queued" || job.status === "running";

export function useDatasets(project: string) {
  return useQuery({
    queryKey: ["datasets", project],
    queryFn: ({ signal }) =>
      every((how) =>
        ask(
          api.GET("/api/v1/projects/{project}/datasets", {
            params: { path: { project }, query: how },
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
