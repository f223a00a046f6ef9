import { useEffect, useRef, useState } from "react";
import { api, ask } from "./client";
import { useConnection } from "./connection";

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
  const [refusals, setRefusals] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each of the last two opens it again
  useEffect(() => {
    if (url === null) return;
    const source = new EventSource(url);
    let timer: number | undefined;
    for (const kind of named.split(" ")) {
      source.addEventListener(kind, (event) => {
        heard.current(kind, JSON.parse((event as MessageEvent<string>).data));
      });
    }
    source.addEventListener("error", () => {
      // Says whether the server is lost, or the session has ended. The browser itself connects
      // again, but not where it was refused.
      ask(api.GET("/api/v1/me")).catch(() => {});
      if (source.readyState === EventSource.CLOSED && refusals < MOST_REFUSALS) {
        timer = window.setTimeout(() => setRefusals(refusals + 1), 1_000 * 2 ** refusals);
      }
    });
    return () => {
      window.clearTimeout(timer);
      source.close();
    };
  }, [url, named, age, refusals]);
}

const MOST_REFUSALS = 6;

export type Hear = (kind: string, data: unknown) => void;
