import { useEffect, useRef } from "react";
import { isTyped } from "../../parts/keys";

/** Keys of a page; none of them works while somebody writes. */
export function useKeys(keys: Record<string, () => void>): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (isTyped(event) || event.defaultPrevented) return;
      const act = latest.current[event.key];
      if (act) {
        event.preventDefault();
        act();
      }
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
}
