import { useSuspenseInfiniteQuery } from "@tanstack/react-query";
import type { Page } from "./pages";

/** A list that is asked for part by part: its `items` so far, and the query for `More`. */
export function useList<T>(queryKey: readonly unknown[], load: Load<T>) {
  const list = useSuspenseInfiniteQuery({
    queryKey,
    queryFn: ({ signal, pageParam }) => load(pageParam ? { after: pageParam } : {}, signal),
    initialPageParam: "",
    getNextPageParam: (last) => last.next,
  });
  return { ...list, items: list.data.pages.flatMap((page) => page.items) };
}

type Load<T> = (rest: { after?: string }, signal: AbortSignal) => Promise<Page<T>>;
