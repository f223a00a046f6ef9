import { useEffect, useRef, useState } from "react";
import { noteLoggedOut, noteSilence, useConnection } from "./connection";

/**
 * Listens to server-sent events while the page is open, and again whenever the server is back.
 *
 * @param url Where, or null to listen to nothing.
 * @param hear Is given the data of each event of the kinds.
 */
export function useEvents(url: string | null, kinds: readonly string[], hear: Hear): void {
  const heard = useRef(hear);
  heard.current = hear;
  const named = kinds.join(" ");
  const { age } = useConnection();
  const [attempts, setAttempts] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each of the last two opens it again
  useEffect(() => {
    if (url === null) return;
    const source = new EventSource(url);
    let last = "";
    let timer: number | undefined;
    for (const kind of named.split(" ")) {
      source.addEventListener(kind, (event) => {
        const told = event as MessageEvent<string>;
        last = told.lastEventId;
        heard.current(kind, JSON.parse(told.data));
      });
    }
    source.addEventListener("error", async () => {
      if ((await isThere(url, last)) && source.readyState === EventSource.CLOSED) {
        timer = window.setTimeout(() => setAttempts(attempts + 1), PAUSE);
      }
    });
    return () => {
      window.clearTimeout(timer);
      source.close();
    };
  }, [url, named, age, attempts]);
}

const PAUSE = 2_000;

/** Finds out why a stream broke, which browsers do not tell; whether it may be asked for again. */
async function isThere(url: string, last: string): Promise<boolean> {
  const stop = new AbortController();
  try {
    const headers = { Accept: "text/event-stream", "Last-Event-ID": last };
    const { status } = await fetch(url, { headers, signal: stop.signal });
    stop.abort();
    if (status === 401) noteLoggedOut();
    if (status === 502 || status === 504) noteSilence();
    return status === 200 || status === 429 || status === 503;
  } catch {
    noteSilence();
    return false;
  }
}

export type Hear = (kind: string, data: unknown) => void;
