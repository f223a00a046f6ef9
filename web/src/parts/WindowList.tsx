import { keepPreviousData, useQueries } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef } from "react";
import { filled, type Page, type Rest } from "../api/pages";
import "./window-list.css";

const SIZE = 50;

/** Which part of a list is wanted. */
export type Wanted = { offset: number; limit: number } | Rest;

export interface Column<T> {
  name: string;
  /** Its width, as a track of a grid. */
  track: string;
  kind?: "number" | "text";
  show: (item: T) => ReactNode;
}

/**
 * A list of any length, of which only what is looked at is asked for and drawn.
 *
 * The list has the focus and the arrows (or j and k) move in it; what is chosen stands in the
 * caller's address.
 */
export function WindowList<T>({ label, name, total, columns, load, chosen, choose }: Props<T>) {
  const scroller = useRef<HTMLDivElement>(null);
  const id = useId();
  const rows = useVirtualizer({
    count: total,
    getScrollElement: () => scroller.current,
    estimateSize: () => 34,
    overscan: 12,
  });
  const shown = rows.getVirtualItems();
  const pages = [...new Set(shown.map((row) => Math.floor(row.index / SIZE)))];
  const found = useQueries({
    queries: pages.map((page) => ({
      queryKey: [...name, "window", page],
      queryFn: async ({ signal }: { signal: AbortSignal }) => {
        const first = await load({ offset: page * SIZE, limit: SIZE }, signal);
        return (await filled(first, SIZE, (rest) => load(rest, signal))).items;
      },
      placeholderData: keepPreviousData,
    })),
  });
  const items = new Map(pages.map((page, place) => [page, found[place]?.data]));
  const broken = found.find((one) => one.error)?.error;

  useEffect(() => {
    if (chosen !== null && chosen < total) rows.scrollToIndex(chosen);
  }, [chosen, total, rows]);

  // Keys come faster than addresses change: the next one goes on from where the last one went.
  const going = useRef<number | null>(null);
  useEffect(() => {
    if (chosen === null || chosen === going.current) going.current = null;
  }, [chosen]);

  const move = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = going.current ?? chosen ?? -1;
    const to = MOVES[event.key]?.(at, total);
    if (to === undefined || total === 0) return;
    event.preventDefault();
    const place = Math.max(0, Math.min(total - 1, to));
    if (place === (going.current ?? chosen)) return;
    const isNext = (going.current ?? chosen) !== null;
    going.current = place;
    choose(place, isNext);
  };
  const tracks = columns.map((column) => column.track).join(" ");
  return (
    <div
      ref={scroller}
      className="window-list"
      role="grid"
      aria-label={label}
      aria-rowcount={total + 1}
      aria-activedescendant={chosen === null ? undefined : `${id}-${chosen}`}
      tabIndex={0}
      onKeyDown={move}
    >
      <div
        role="row"
        aria-rowindex={1}
        className="window-head"
        style={{ gridTemplateColumns: tracks }}
      >
        {columns.map((column) => (
          <span role="columnheader" key={column.name} className={column.kind}>
            {column.name}
          </span>
        ))}
      </div>
      <div role="rowgroup" className="window-body" style={{ height: rows.getTotalSize() }}>
        {shown.map((row) => {
          const item = items.get(Math.floor(row.index / SIZE))?.[row.index % SIZE];
          return (
            <div
              key={row.index}
              id={`${id}-${row.index}`}
              role="row"
              aria-rowindex={row.index + 2}
              aria-selected={row.index === chosen}
              className="window-row"
              style={{ gridTemplateColumns: tracks, transform: `translateY(${row.start}px)` }}
              onClick={() => choose(row.index, chosen !== null)}
            >
              {columns.map((column) => (
                <span role="gridcell" key={column.name} className={`clip ${column.kind ?? ""}`}>
                  {item === undefined ? (broken ? "–" : "…") : column.show(item)}
                </span>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}

const down = (at: number) => at + 1;
const up = (at: number) => at - 1;
const MOVES: Record<string, (at: number, total: number) => number> = {
  ArrowDown: down,
  j: down,
  ArrowUp: up,
  k: up,
  PageDown: (at) => at + 15,
  PageUp: (at) => at - 15,
  Home: () => 0,
  End: (_, total) => total - 1,
};

interface Props<T> {
  label: string;
  /** Beginning of the keys under which parts are kept. */
  name: readonly unknown[];
  total: number;
  columns: readonly Column<T>[];
  load: (wanted: Wanted, signal: AbortSignal) => Promise<Page<T>>;
  /** Place of the chosen one in the list. */
  chosen: number | null;
  /** Is told whether another one was chosen before, whose place in the history it takes. */
  choose: (place: number, isNext: boolean) => void;
}
