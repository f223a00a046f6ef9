import { useSuspenseInfiniteQuery } from "@tanstack/react-query";
import type { Page } from "./pages";

/** A list that is asked for part by part: what is known of it so far, and how there is more. */
export function useList<T>(queryKey: readonly unknown[], load: Load<T>) {
  const list = useSuspenseInfiniteQuery({
    queryKey,
    queryFn: ({ signal, pageParam }) => load(pageParam ? { after: pageParam } : {}, signal),
    initialPageParam: "",
    getNextPageParam: (last) => last.next,
  });
  return {
    items: list.data.pages.flatMap((page) => page.items),
    hasMore: list.hasNextPage,
    isAsking: list.isFetching,
    more: () => {
      if (list.hasNextPage && !list.isFetching) void list.fetchNextPage();
    },
  };
}

type Load<T> = (rest: { after?: string }, signal: AbortSignal) => Promise<Page<T>>;
