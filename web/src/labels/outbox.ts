import { useSyncExternalStore } from "react";
import { api, ask, type Schemas } from "../api/client";
import { isRetryable, Problem } from "../api/problem";

// Labels that the server has not acknowledged yet. They survive a reload, a crash of the browser
// and a server that is away; each is sent with a key of its own, so that it is kept once.

export interface Waiting {
  id: string;
  project: string;
  body: Schemas["AddLabelBody"];
}

export interface Refused extends Waiting {
  problem: Problem;
}

interface State {
  waiting: readonly Waiting[];
  refused: readonly Refused[];
  isAway: boolean;
}

const PLACE = "assay.labels.waiting";
const LONGEST_PAUSE = 4_000;

let state: State = { waiting: stored(), refused: [], isAway: false };
let isSending = false;
const listeners = new Set<() => void>();

function stored(): Waiting[] {
  try {
    const found: unknown = JSON.parse(window.localStorage.getItem(PLACE) ?? "[]");
    return Array.isArray(found) ? (found as Waiting[]) : [];
  } catch {
    return [];
  }
}

function change(next: Partial<State>): void {
  state = { ...state, ...next };
  try {
    window.localStorage.setItem(PLACE, JSON.stringify(state.waiting));
  } catch {
    // A browser that stores nothing: they are kept for as long as the page is open.
  }
  for (const listener of listeners) listener();
}

/** Keeps a label until the server has it. */
export function put(project: string, body: Schemas["AddLabelBody"]): void {
  change({ waiting: [...state.waiting, { id: newId(), project, body }] });
  void send();
}

/** Takes note that a refusal was seen. */
export function forget(id: string): void {
  change({ refused: state.refused.filter((one) => one.id !== id) });
}

/** Sends what waits, oldest first, until nothing does. */
export async function send(): Promise<void> {
  if (isSending) return;
  isSending = true;
  let pause = 250;
  try {
    for (let one = state.waiting[0]; one; one = state.waiting[0]) {
      const first = one;
      const rest = () => state.waiting.filter((other) => other.id !== first.id);
      try {
        await ask(
          api.POST("/api/v1/projects/{project}/labels", {
            params: { path: { project: one.project }, header: { "Idempotency-Key": one.id } },
            body: one.body,
          }),
        );
        change({ waiting: rest(), isAway: false });
        pause = 250;
      } catch (error) {
        if (error instanceof Problem && !mayWork(error)) {
          change({ waiting: rest(), refused: [...state.refused, { ...one, problem: error }] });
        } else {
          change({ isAway: true });
          await new Promise((done) => window.setTimeout(done, pause));
          pause = Math.min(2 * pause, LONGEST_PAUSE);
        }
      }
    }
  } finally {
    isSending = false;
  }
}

/** Whether the same may work later: the server is away, busy, or wants a login first. */
function mayWork(problem: Problem): boolean {
  return isRetryable(problem) || problem.status === 401 || problem.status >= 429;
}

function newId(): string {
  const bytes = window.crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function listen(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useOutbox(): State {
  return useSyncExternalStore(listen, () => state);
}

/** What waits to be said of items of a queue: digest to label; the last one counts. */
export function waitingFor(project: string, field: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const { project: where, body } of state.waiting) {
    if (where === project && (body.field ?? "label") === field) found.set(body.item, body.label);
  }
  return found;
}
