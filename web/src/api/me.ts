import { useQuery } from "@tanstack/react-query";
import { useParams } from "react-router";
import { api, ask } from "./client";

/** Who is asking, and what they may do. */
export function useMe() {
  return useQuery({
    queryKey: ["me"],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/me", { signal })),
    staleTime: 60_000,
  });
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

/** The project of this page's address: `/p/PROJECT/...`; elsewhere the caller's own. */
export function useProject(): string {
  const { project } = useParams();
  const me = useMe().data;
  return project ?? (me && me.project !== "*" ? me.project : "default");
}
