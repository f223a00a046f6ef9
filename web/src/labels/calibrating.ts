import {
  skipToken,
  useMutation,
  useMutationState,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { api, ask, type Schemas } from "../api/client";
import { isRetryable } from "../api/problem";

export interface Asked {
  grader: string;
  field: string;
  repeats: number;
  attacks: boolean;
  levels: string;
}

const stopped = new Set<string>();

/** A calibration, which goes on while the page is open, also while something else is looked at. */
export function useCalibration(project: string, asked: Asked) {
  const queries = useQueryClient();
  const key = ["calibrate", project, asked];
  const name = JSON.stringify(key);
  const work = useQuery({
    queryKey: key,
    queryFn: skipToken,
    initialData: null as Schemas["CalibrationWork"] | null,
    gcTime: Number.POSITIVE_INFINITY,
  }).data;
  const states = useMutationState({
    filters: { mutationKey: key },
    select: ({ state }) => state,
  });
  const { mutate } = useMutation({
    mutationKey: key,
    // Asks for stretch after stretch until there is a card.
    mutationFn: async () => {
      while (!stopped.has(name)) {
        const done = await ask(
          api.POST("/api/v1/projects/{project}/calibrations", {
            params: { path: { project } },
            body: asked,
          }),
        );
        queries.setQueryData(key, done);
        if (done.card) return;
      }
    },
    retry: (_, error) => isRetryable(error) && !stopped.has(name), // the server is away
    retryDelay: 1_500,
  });
  const now = states.at(-1);
  return {
    work,
    isRunning: now?.status === "pending",
    problem: now?.status === "error" ? now.error : null,
    start: () => {
      stopped.delete(name);
      mutate();
    },
    /** Asks for no further stretch. */
    stop: () => stopped.add(name),
    forget: () => queries.setQueryData(key, null),
  };
}
