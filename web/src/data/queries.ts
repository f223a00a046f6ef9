import { useSuspenseQuery } from "@tanstack/react-query";
import { $api, api, ask, type Schemas } from "../api/client";
import { every } from "../api/pages";

export type Dataset = Schemas["DatasetRecord"];
export type Job = Schemas["JobRecord"];

export const isActive = (job: Job) => job.status === "queued" || job.status === "running";

export const NEEDS = "This needs the role editor";

/** What queries of these begin with, for what changes them. */
export const DATASETS = { queryKey: ["datasets"] };
export const JOBS = { queryKey: ["get", "/api/v1/projects/{project}/jobs"] };

export function useAllDatasets(project: string) {
  return useSuspenseQuery({
    queryKey: [...DATASETS.queryKey, project],
    queryFn: ({ signal }) =>
      every((query) =>
        ask(
          api.GET("/api/v1/projects/{project}/datasets", {
            params: { path: { project }, query },
            signal,
          }),
        ),
      ),
  });
}

/** The newest jobs, asked for again while one of them is at work. */
export function useJobs(project: string, only: { status?: Job["status"]; dataset?: string }) {
  return $api.useQuery(
    "get",
    "/api/v1/projects/{project}/jobs",
    { params: { path: { project }, query: { limit: 200, ...only } } },
    { refetchInterval: (query) => (query.state.data?.items.some(isActive) ? 1_500 : false) },
  );
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
