import type { Schemas } from "../api/client";
import { Badge } from "../parts/Page";

/** Whether a run goes on; nothing for one that has ended as it should. */
export function RunState({ state }: { state: Schemas["RunRow"]["state"] }) {
  if (state === "finished") return null;
  if (state === "running") {
    return (
      <Badge tone="accent">
        <i className="size-1.5 rounded-full bg-accent motion-safe:animate-pulse" /> running
      </Badge>
    );
  }
  return (
    <Badge tone={state === "interrupted" ? "error" : "plain"}>
      {state === "interrupted" ? "interrupted" : "not finished"}
    </Badge>
  );
}
