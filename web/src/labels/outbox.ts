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

const PLACE = "assay.labels.waiting.";
const LONGEST_PAUSE = 4_000;

let state: State = { waiting: stored(), refused: [], isAway: false };
let isSending = false;
const listeners = new Set<() => void>();

/** What earlier pages could not send, oldest first; each label has a place of its own. */
function stored(): Waiting[] {
  const found: Waiting[] = [];
  try {
    const keys = Object.keys(window.localStorage).filter((key) => key.startsWith(PLACE));
    for (const key of keys.sort()) {
      found.push(JSON.parse(window.localStorage.getItem(key) ?? "") as Waiting);
    }
  } catch {
    // A browser that stores nothing, or something that is not ours.
  }
  return found;
}

function change(next: Partial<State>): void {
  state = { ...state, ...next };
  for (const listener of listeners) listener();
}

function remember(one: Waiting): void {
  try {
    window.localStorage.setItem(PLACE + one.id, JSON.stringify(one));
  } catch {
    // It is kept for as long as the page is open.
  }
}

function drop(id: string): void {
  try {
    window.localStorage.removeItem(PLACE + id);
  } catch {
    // It was not stored.
  }
}

/** Keeps a label until the server has it. */
export function put(project: string, body: Schemas["AddLabelBody"]): void {
  const one = { id: newId(), project, body };
  remember(one);
  change({ waiting: [...state.waiting, one] });
  void send();
}

/** Sends a refused label again. */
export function again({ id, project, body }: Refused): void {
  forget(id);
  put(project, body);
}

/** Gives a refused label up. */
export function forget(id: string): void {
  drop(id);
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
        drop(first.id);
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

let order = 0;

/** Sorts as it was made. */
function newId(): string {
  const bytes = window.crypto.getRandomValues(new Uint8Array(12));
  const random = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  order += 1;
  return `${Date.now().toString(36).padStart(9, "0")}-${`${order}`.padStart(6, "0")}-${random}`;
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
