import { queryOptions, useQuery } from "@tanstack/react-query";
import { useMatch } from "react-router";
import { remember, remembered } from "../parts/memory";
import { api, ask } from "./client";

/** Who is asking, and what they may do. */
export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => ask(api.GET("/api/v1/me", { signal })),
  staleTime: 60_000,
});

export function useMe() {
  return useQuery(meQuery);
}

const ROLES = ["viewer", "editor", "admin"] as const;
export type Role = (typeof ROLES)[number];

/** Whether the caller has a role, in a project or (without one) in all of them. */
export function useMay(role: Role, project?: string): boolean {
  const me = useMe().data;
  if (!me) return false;
  const covers = me.project === "*" || me.project === project;
  return covers && ROLES.indexOf(me.role) >= ROLES.indexOf(role);
}

const PROJECT = "assay.project";

/** The project of this page's address: `/p/PROJECT/...`; elsewhere the last one, or the caller's. */
export function useProject(): string {
  const named = useMatch("/p/:project/*")?.params.project;
  const me = useMe().data;
  if (named) return named;
  if (me && me.project !== "*") return me.project;
  return remembered(PROJECT) ?? "default";
}

/** Remembers the project that pages without one go on with. */
export function rememberProject(project: string): void {
  remember(PROJECT, project);
}
