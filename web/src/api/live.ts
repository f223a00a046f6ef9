import { useEffect, useRef } from "react";

/**
 * Listens to server-sent events while the page is open; the browser connects again by itself.
 *
 * @param url Where, or null to listen to nothing.
 * @param hear Is given the data of each event of the kinds.
 */
export function useEvents(url: string | null, kinds: readonly string[], hear: Hear): void {
  const heard = useRef(hear);
  heard.current = hear;
  const named = kinds.join(" ");
  useEffect(() => {
    if (url === null) return;
    const source = new EventSource(url);
    for (const kind of named.split(" ")) {
      source.addEventListener(kind, (event) => {
        heard.current(kind, JSON.parse((event as MessageEvent<string>).data));
      });
    }
    return () => source.close();
  }, [url, named]);
}

export type Hear = (kind: string, data: unknown) => void;
