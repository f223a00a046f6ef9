import { useQuery, useQueryClient } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../api/client";

export type Grader = Schemas["GraderDetail"];
export type Overview = Schemas["ListedGrader"];
export type Kinds = Schemas["GraderKinds"];

/** What is known of a grader: its newest version, or the one of a number. */
export function useGrader(project: string, key: string, version?: number) {
  return useQuery({
    queryKey: ["grader", project, key, version ?? "latest"],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/graders/{key}", {
          params: { path: { project, key }, query: version ? { version } : {} },
          signal,
        }),
      ),
  });
}

export function useKinds(project: string) {
  return useQuery({
    queryKey: ["grader-kinds"],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/grader-kinds", {
          params: { path: { project } },
          signal,
        }),
      ),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function useUsage(project: string, key: string) {
  return useQuery({
    queryKey: ["grader-use", project, key],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/graders/{key}/use", {
          params: { path: { project, key } },
          signal,
        }),
      ),
  });
}

/** What was stored of graders is asked for again: one of them, or any. */
export function useForget() {
  const queries = useQueryClient();
  return (project: string, key?: string) => {
    const names = key ? ["grader", "grader-use", "grader-versions"] : [];
    for (const name of names) queries.invalidateQueries({ queryKey: [name, project, key] });
    queries.invalidateQueries({ queryKey: ["grader-overview", project] });
  };
}

export const KIND_TITLES: Record<string, string> = {
  function: "Function",
  binary_judge: "AI judge",
  prebuilt_judge: "Pre-built",
  external_endpoint: "External",
  custom: "Custom",
  declared: "Declared",
};
