import { useCallback, useEffect, useRef, useState } from "react";
import { api, ask, type Schemas } from "../api/client";
import { put, waitingFor } from "./outbox";

export interface Query {
  dataset: string;
  run: string;
  field: string;
  classes: string;
  seed: number;
  rater: string;
}

export interface Said {
  item: Schemas["QueueItem"];
  label: string;
}

const AHEAD = 3;
const PAGE = 5;

/** A rater's queue: the next items are here before they are needed; what is said is kept at once. */
export function useQueue(project: string, query: Query, criterion: string) {
  const [head, setHead] = useState<Schemas["LabelQueue"] | null>(null);
  const [items, setItems] = useState<readonly Schemas["QueueItem"][]>([]);
  const [later, setLater] = useState<readonly Schemas["QueueItem"][]>([]);
  const [history, setHistory] = useState<readonly Said[]>([]);
  const [early, setEarly] = useState(0);
  const [hasEnded, setEnded] = useState(false);
  const [problem, setProblem] = useState<Error | null>(null);
  const [attempt, setAttempt] = useState(0);
  const cursor = useRef<string | null>(null);
  const isLoading = useRef(false);
  const seen = useRef(new Set<string>());

  // biome-ignore lint/correctness/useExhaustiveDependencies: an attempt is what "try again" counts.
  useEffect(() => {
    if (hasEnded || isLoading.current || items.length >= AHEAD) return;
    isLoading.current = true;
    const { dataset, run, field, classes, seed, rater } = query;
    const asked = cursor.current ? { after: cursor.current } : {};
    ask(
      api.GET("/api/v1/projects/{project}/labels/queue", {
        params: {
          path: { project },
          query: { dataset, run, field, classes, seed, rater, limit: PAGE, ...asked },
        },
      }),
    )
      .then((found) => {
        const waits = waitingFor(project, field);
        const fresh = found.items.filter(({ item }) => !seen.current.has(item));
        for (const { item } of fresh) seen.current.add(item);
        const open = fresh.filter(({ item }) => !waits.get(item));
        setHead((before) => before ?? found);
        setEarly((before) => before + (fresh.length - open.length));
        setItems((before) => [...before, ...open]);
        cursor.current = found.next;
        setEnded(found.next === null);
        setProblem(null);
        isLoading.current = false;
        setAttempt((before) => before + 1);
      })
      .catch((error: Error) => {
        isLoading.current = false;
        setProblem(error);
      });
  }, [project, query, items.length, hasEnded, attempt]);

  // What the server could not give is asked for again when it is back.
  useEffect(() => {
    if (!problem || items.length > 0) return;
    const timer = window.setTimeout(() => setAttempt((before) => before + 1), 1_500);
    return () => window.clearTimeout(timer);
  }, [problem, items.length]);

  useEffect(() => {
    if (items.length === 0 && hasEnded && later.length > 0) {
      setItems(later);
      setLater([]);
    }
  }, [items.length, hasEnded, later]);

  const keep = useCallback(
    (item: Schemas["QueueItem"], label: string, note: string) => {
      const { dataset, run, field } = query;
      const rater = head?.rater ?? query.rater;
      const where = { item: item.item, place: item.place, dataset, run };
      put(project, { ...where, field, label, note, criterion, rater });
    },
    [project, query, criterion, head],
  );

  const current = items[0];
  const say = (label: string, note: string) => {
    if (!current) return;
    keep(current, label, note);
    setHistory((before) => [...before, { item: current, label }]);
    setItems((before) => before.slice(1));
  };
  const skip = () => {
    if (!current) return;
    setLater((before) => [...before, current]);
    setItems((before) => before.slice(1));
  };
  const undo = () => {
    const last = history.at(-1);
    if (!last) return;
    keep(last.item, "", "");
    setHistory((before) => before.slice(0, -1));
    setItems((before) => [last.item, ...before]);
  };
  return {
    head,
    current,
    history,
    problem,
    say,
    skip,
    undo,
    retry: () => setAttempt((before) => before + 1),
    done: (head?.done ?? 0) + early + history.length,
    skipped: later.length,
    hasEnded: hasEnded && items.length === 0 && later.length === 0,
  };
}
