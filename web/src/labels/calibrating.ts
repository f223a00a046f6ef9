import { useSyncExternalStore } from "react";
import { api, ask, type Schemas } from "../api/client";
import { isRetryable } from "../api/problem";

// A calibration goes on while the page is open, also while something else is looked at.

export interface Asked {
  grader: string;
  field: string;
  repeats: number;
  attacks: boolean;
  levels: string;
}

export interface Running {
  name: string;
  work: Schemas["CalibrationWork"] | null;
  isRunning: boolean;
  problem: Error | null;
}

let running: readonly Running[] = [];
const stopped = new Set<string>();
const listeners = new Set<() => void>();

export function nameOf(project: string, asked: Asked): string {
  return JSON.stringify([project, asked]);
}

function change(name: string, part: Partial<Running>): void {
  const before = running.find((one) => one.name === name);
  const now = { name, work: null, isRunning: false, problem: null, ...before, ...part };
  running = [...running.filter((one) => one.name !== name), now];
  for (const listener of listeners) listener();
}

/** Asks for stretch after stretch until there is a card. */
export async function calibrate(project: string, asked: Asked): Promise<void> {
  const name = nameOf(project, asked);
  if (running.some((one) => one.name === name && one.isRunning)) return;
  stopped.delete(name);
  change(name, { isRunning: true, problem: null, work: null });
  try {
    while (!stopped.has(name)) {
      const work = await stretch(project, asked, name);
      if (work) change(name, { work });
      if (work?.card) break;
    }
    change(name, { isRunning: false });
  } catch (error) {
    change(name, { isRunning: false, problem: error as Error });
  }
}

async function stretch(project: string, body: Schemas["CalibrateGraderBody"], name: string) {
  for (;;) {
    try {
      return await ask(
        api.POST("/api/v1/projects/{project}/calibrations", {
          params: { path: { project } },
          body,
        }),
      );
    } catch (error) {
      if (!isRetryable(error)) throw error;
      await new Promise((done) => window.setTimeout(done, 1_500)); // the server is away
      if (stopped.has(name)) return null;
    }
  }
}

/** Asks for no further stretch. */
export function stop(project: string, asked: Asked): void {
  stopped.add(nameOf(project, asked));
}

/** Forgets one that has ended. */
export function forget(name: string): void {
  running = running.filter((one) => one.name !== name);
  for (const listener of listeners) listener();
}

function listen(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useRunning(name: string): Running | undefined {
  return useSyncExternalStore(listen, () => running).find((one) => one.name === name);
}
