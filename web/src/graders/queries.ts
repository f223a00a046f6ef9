import { useQueryClient } from "@tanstack/react-query";
import { $api, type Schemas } from "../api/client";

export type Grader = Schemas["GraderDetail"];
export type Overview = Schemas["ListedGrader"];
export type Kinds = Schemas["GraderKinds"];

const ALL = "/api/v1/projects/{project}/graders";
const ONE = `${ALL}/{key}` as const;

/** How a grader is asked for: its newest version, or the one of a number. */
export function graderQuery(project: string, key: string, version?: number) {
  const params = { path: { project, key }, query: version ? { version } : {} };
  return $api.queryOptions("get", ONE, { params });
}

export function useKinds(project: string): Kinds {
  return $api.useSuspenseQuery(
    "get",
    "/api/v1/projects/{project}/grader-kinds",
    { params: { path: { project } } },
    { staleTime: Number.POSITIVE_INFINITY },
  ).data;
}

/** What was stored of graders is asked for again: the list, and what was shown of one. */
export function useForget() {
  const queries = useQueryClient();
  return (key?: string) => {
    const paths = key ? [ALL, ONE, `${ONE}/use`, `${ONE}/versions`] : [ALL];
    for (const path of paths) queries.invalidateQueries({ queryKey: ["get", path] });
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
