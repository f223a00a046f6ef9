import { useSyncExternalStore } from "react";

/** How the page stands with its server. */
export interface Connection {
  /** Whether the server does not answer. */
  readonly isLost: boolean;
  /** Whether it answers, and says that nobody is logged in. */
  readonly isOut: boolean;
  /** Grows when the server is back or somebody has logged in: then everything is asked again. */
  readonly age: number;
}

const PAUSE = 1_000;

let now: Connection = { isLost: false, isOut: false, age: 0 };
let timer: number | undefined;
const readers = new Set<() => void>();

function change(next: Partial<Connection>): void {
  now = { ...now, ...next };
  for (const read of readers) read();
}

/** The server gave no answer: until it does, it is asked each second whether it is there. */
export function noteSilence(): void {
  if (timer !== undefined) return;
  change({ isLost: true });
  const look = async () => {
    const isThere = await fetch("/healthz", { cache: "no-store" }).then(
      (reply) => reply.ok,
      () => false,
    );
    if (isThere) {
      timer = undefined;
      change({ isLost: false, age: now.age + 1 });
    } else {
      timer = window.setTimeout(look, PAUSE);
    }
  };
  timer = window.setTimeout(look, PAUSE);
}

/** The server says that nobody is logged in. */
export function noteLoggedOut(): void {
  if (!now.isOut) change({ isOut: true });
}

/** Somebody has logged in. */
export function noteLoggedIn(): void {
  change({ isOut: false, age: now.age + 1 });
}

function listen(read: () => void): () => void {
  readers.add(read);
  return () => {
    readers.delete(read);
  };
}

/** Resolves when the server answers, at once if it does. */
export function whenBack(): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (now.isLost) return;
      stop();
      resolve();
    };
    const stop = listen(look);
    look();
  });
}

export function useConnection(): Connection {
  return useSyncExternalStore(listen, () => now);
}
