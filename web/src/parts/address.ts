import { startTransition, useOptimistic, useRef } from "react";
import { useSearchParams } from "react-router";

type Value = string | number | boolean | null | readonly string[];
type Known = Readonly<Record<string, Value>>;

/**
 * What is looked at, as it stands in the address; what is as usual stands in none.
 *
 * @param usual What each is where the address says nothing, and so also of which type it is.
 */
export function useAddress<T extends Known>(usual: T): [T, Change<T>] {
  const [query, setQuery] = useSearchParams();
  // The router follows a moment later: too late for what somebody types or ticks.
  const [shown, show] = useOptimistic(query);
  const latest = useRef(shown);
  latest.current = shown;
  const change: Change<T> = (changes, { isStep = false } = {}) => {
    const next = new URLSearchParams(latest.current);
    for (const [name, value] of Object.entries(changes)) {
      const text = written(value as Value);
      if (text === null || text === written(usual[name] ?? null)) next.delete(name);
      else next.set(name, text);
    }
    latest.current = next;
    startTransition(() => {
      show(next);
      setQuery(next, { replace: !isStep, preventScrollReset: true });
    });
  };
  const found = Object.entries(usual).map(([name, value]) => [name, read(shown.get(name), value)]);
  return [Object.fromEntries(found) as T, change];
}

/** Changes some of it; `isStep` where the way back leads to what was looked at before. */
export type Change<T> = (changes: Partial<T>, how?: { isStep?: boolean }) => void;

function written(value: Value): string | null {
  if (value === null) return null;
  return typeof value === "object" ? value.join(",") : String(value);
}

function read(text: string | null, usual: Value): Value {
  if (text === null) return usual;
  if (typeof usual === "number") return Math.max(0, Number(text) || 0);
  if (typeof usual === "boolean") return text === "true" || text === "1";
  if (typeof usual === "object" && usual !== null) return text.split(",").filter(Boolean);
  return text;
}
