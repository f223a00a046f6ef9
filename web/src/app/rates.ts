import { useQueries } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../api/client";

type Run = Schemas["RunRow"];

/**
 * The pass rates of some runs with their intervals, as far as they are known yet. Where cases have several trials
 * an interval rests on cases: only the run's own overview has that.
 */
export function useRates(runs: readonly Run[]): (Schemas["Interval"] | undefined)[] {
  const counted = useQueries({
    queries: runs.map((run) => ({
      queryKey: ["overview", "run", run.id, run.total],
      enabled: hasVerdicts(run) && isStill(run) && run.pass_rate.low === null,
      staleTime: 60_000,
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        ask(api.GET("/api/v1/runs/{run}/overview", { signal, params: { path: { run: run.id } } })),
    })),
  });
  return runs.map((run, place) =>
    run.pass_rate.low === null ? counted[place]?.data?.totals.pass_rate : run.pass_rate,
  );
}

/** Whether anything in it could pass or fail. */
export function hasVerdicts({ ends }: Run): boolean {
  return ends.passed + ends.failed > 0;
}

/** While results come in, twice a second, it would be counted anew each time. */
export function isStill({ state }: Run): boolean {
  return state === "finished" || state === "interrupted";
}
