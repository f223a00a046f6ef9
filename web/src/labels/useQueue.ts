import { useMutation } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { api, ask, type Schemas } from "../api/client";

export interface Query {
  dataset: string;
  run: string;
  field: string;
  classes: string;
  seed: number;
  rater: string;
}

/** A label of an item; empty where one is taken back. */
interface Said {
  item: Schemas["QueueItem"];
  label: string;
  note: string;
}

const AHEAD = 3;
const PAGE = 5;

/**
 * A rater's queue: the next items are here before they are needed, and each stays until the server
 * has its label.
 */
export function useQueue(project: string, query: Query, criterion: string) {
  const [head, setHead] = useState<Schemas["LabelQueue"] | null>(null);
  const [items, setItems] = useState<readonly Schemas["QueueItem"][]>([]);
  const [later, setLater] = useState<readonly Schemas["QueueItem"][]>([]);
  const [history, setHistory] = useState<readonly Schemas["QueueItem"][]>([]);
  const [words, setWords] = useState("");
  const [hasEnded, setEnded] = useState(false);
  const [problem, setProblem] = useState<Error | null>(null);
  const [attempt, setAttempt] = useState(0);
  const cursor = useRef<string | null>(null);
  const isLoading = useRef(false);
  const seen = useRef(new Set<string>());
  const isSaving = useRef(false); // at once, and not with what is shown next: keys come fast

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
        const fresh = found.items.filter(({ item }) => !seen.current.has(item));
        for (const { item } of fresh) seen.current.add(item);
        setHead((before) => before ?? found);
        setItems((before) => [...before, ...fresh]);
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

  const save = useMutation({
    mutationFn: ({ item, label, note }: Said) => {
      const { dataset, run, field } = query;
      const rater = head?.rater ?? query.rater;
      const where = { item: item.item, place: item.place, dataset, run };
      return ask(
        api.POST("/api/v1/projects/{project}/labels", {
          params: { path: { project } },
          body: { ...where, field, label, note, criterion, rater },
        }),
      );
    },
    onSuccess: (_, { item, label }) => {
      setWords(label ? `${label}.` : "Taken back.");
      if (label) {
        setHistory((before) => [...before, item]);
        setItems((before) => before.filter((one) => one !== item));
      } else {
        setHistory((before) => before.slice(0, -1));
        setItems((before) => [item, ...before]);
      }
    },
    onSettled: () => {
      isSaving.current = false;
    },
  });
  const keep = (said: Said) => {
    if (isSaving.current) return;
    isSaving.current = true;
    save.mutate(said);
  };

  const current = items[0];
  const last = history.at(-1);
  return {
    head,
    current,
    problem,
    /** What the last of them did, for who does not see it. */
    words,
    unsaved: save.error && { problem: save.error, label: save.variables.label },
    say: (label: string, note: string) => current && keep({ item: current, label, note }),
    undo: () => last && keep({ item: last, label: "", note: "" }),
    saveAgain: () => save.variables && keep(save.variables),
    skip: () => {
      if (!current || isSaving.current) return;
      save.reset();
      setWords("Left for later.");
      setLater((before) => [...before, current]);
      setItems((before) => before.slice(1));
    },
    retry: () => setAttempt((before) => before + 1),
    said: history.length,
    done: (head?.done ?? 0) + history.length,
    skipped: later.length,
    hasEnded: hasEnded && items.length === 0 && later.length === 0,
  };
}
