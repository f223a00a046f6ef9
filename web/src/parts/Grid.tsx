import { keepPreviousData, useQueries } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type KeyboardEvent,
  memo,
  type ReactNode,
  type RefObject,
  useEffect,
  useId,
  useRef,
} from "react";
import { filled, type Page, type Rest } from "../api/pages";
import { Icon } from "./Icon";
import { useKeys } from "./keys";

/** Which part of a list is wanted. */
export type Wanted = { offset: number; limit: number } | Rest;

export interface Column<T> {
  name: string;
  /** Its width, as a track of a grid. */
  track: string;
  show: (item: T) => ReactNode;
  kind?: "number" | "text";
  /** By what the list is sorted when its name is pressed. */
  sort?: string;
  /** Left out where the screen is narrower than a tablet. */
  from?: "md";
  /** Whether its name is for who cannot see the list alone. */
  isMute?: boolean;
}

/** How a list is sorted, and how that is changed. */
export interface Sorting {
  by: string;
  isDescending: boolean;
  change: (by: string) => void;
}

const isCoarse = window.matchMedia("(pointer: coarse)").matches;
const HEIGHT = isCoarse ? 44 : 36;

/**
 * A list of any length, of which only what is looked at is asked for and drawn.
 *
 * The list has the focus and the arrows (or j and k) move in it; what is chosen stands in the
 * caller's address.
 */
export function Grid<T>(props: GridProps<T>) {
  const { label, total, columns, chosen, choose, open, sorting, lookOf } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const id = useId();
  const rows = useVirtualizer({
    count: total,
    getScrollElement: () => scroller.current,
    estimateSize: () => HEIGHT,
    overscan: 12,
    initialOffset: chosen !== null && chosen > 10 ? (chosen - 5) * HEIGHT : 0,
  });
  const shown = rows.getVirtualItems();
  const { itemAt, isBroken } = useParts(
    props,
    shown.map((row) => row.index),
  );
  useEffect(() => {
    if (chosen !== null && chosen < total) rows.scrollToIndex(chosen);
  }, [chosen, total, rows]);

  // Keys come faster than addresses change: the next one goes on from where the last one went.
  const going = useRef<number | null>(null);
  useEffect(() => {
    if (chosen === null || chosen === going.current) going.current = null;
  }, [chosen]);

  const move = (key: string): boolean => {
    const at = going.current ?? chosen;
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / HEIGHT) - 2);
    const to = MOVES[key]?.(at ?? -1, total, page);
    if (to === undefined || total === 0) return false;
    const place = Math.max(0, Math.min(total - 1, to));
    if (place !== at) {
      going.current = place;
      choose(place, at !== null);
    }
    return true;
  };
  const press = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey)
      return;
    if (event.key === "Enter") enter(going.current ?? chosen);
    else if (!move(event.key)) return;
    event.preventDefault();
  };
  const enter = (place: number | null) => {
    const item = place === null ? undefined : itemAt(place);
    if (place !== null && item !== undefined) open?.(place, item);
  };
  // They count wherever nothing else takes them.
  const whenFree = (act: () => void) => () => {
    const focused = document.activeElement;
    if (focused === document.body || focused?.id === "main") act();
  };
  useKeys(
    open
      ? {
          j: whenFree(() => move("j")),
          k: whenFree(() => move("k")),
          Enter: whenFree(() => enter(going.current ?? chosen)),
        }
      : {},
  );
  const wide = columns.map((one) => one.track).join(" ");
  const narrow = columns.flatMap((one) => (one.from ? [] : [one.track])).join(" ");
  const act = useRef<Acts>({ choose: enter, enter });
  act.current = { choose: (place) => choose(place, chosen !== null), enter };
  return (
    <div
      ref={scroller}
      role="grid"
      aria-label={label}
      aria-rowcount={total + 1}
      aria-activedescendant={
        shown.some((row) => row.index === chosen) ? `${id}-${chosen}` : undefined
      }
      tabIndex={0}
      onKeyDown={press}
      style={{ "--wide": wide, "--narrow": narrow } as React.CSSProperties}
      className="relative h-[clamp(260px,calc(100vh-280px),900px)] overflow-auto rounded-lg border border-line outline-offset-[-2px]"
    >
      <div
        role="row"
        aria-rowindex={1}
        className={`${LINE} sticky top-0 z-1 h-9 border-b pointer-coarse:h-11 border-line bg-page text-sm text-soft`}
      >
        {columns.map((one) => (
          <Head key={one.name} column={one} sorting={sorting} look={lookOfCell(one)} />
        ))}
      </div>
      <div role="rowgroup" className="relative" style={{ height: rows.getTotalSize() }}>
        {shown.map((row) => {
          const item = itemAt(row.index);
          return (
            <Row
              key={row.index}
              id={`${id}-${row.index}`}
              place={row.index}
              start={row.start}
              isChosen={row.index === chosen}
              item={item}
              missing={isBroken ? "–" : "…"}
              look={item === undefined ? "" : (lookOf?.(item) ?? "")}
              columns={columns}
              act={act}
            />
          );
        })}
      </div>
    </div>
  );
}

const LINE = "grid grid-cols-(--narrow) items-center gap-3 px-3 md:grid-cols-(--wide)";

function lookOfCell<T>(one: Column<T>): string {
  return `${one.kind === "number" ? "text-right tabular-nums" : ""} ${one.from ? "max-md:hidden" : ""}`;
}

/** A row; while one scrolls it is drawn once, though the list asks at each frame. */
const Row = memo(OneRow) as typeof OneRow;

function OneRow<T>({ id, place, start, isChosen, item, missing, look, columns, act }: RowProps<T>) {
  return (
    <div
      id={id}
      role="row"
      aria-rowindex={place + 2}
      aria-selected={isChosen}
      style={{ top: start, height: HEIGHT }}
      onClick={() => act.current.choose(place)}
      onDoubleClick={() => act.current.enter(place)}
      className={`${LINE} absolute inset-x-0 cursor-default border-b border-line hover:bg-sunk
        aria-selected:bg-accent-soft ${look}`}
    >
      {columns.map((one) => (
        <span key={one.name} role="gridcell" className={`min-w-0 truncate ${lookOfCell(one)}`}>
          {item === undefined ? missing : one.show(item)}
        </span>
      ))}
    </div>
  );
}

interface RowProps<T> {
  id: string;
  place: number;
  start: number;
  isChosen: boolean;
  item: T | undefined;
  missing: string;
  look: string;
  columns: readonly Column<T>[];
  act: RefObject<Acts>;
}

/** What rows do when they are pressed, as the list would do it now. */
interface Acts {
  choose: (place: number) => void;
  enter: (place: number) => void;
}

function Head<T>({ column, sorting, look }: HeadProps<T>) {
  const { name, sort, isMute } = column;
  const isBy = sort !== undefined && sorting?.by === sort;
  return (
    <span
      role="columnheader"
      className={`min-w-0 truncate ${look}`}
      aria-sort={isBy ? (sorting.isDescending ? "descending" : "ascending") : undefined}
    >
      {sort !== undefined && sorting ? (
        <button
          type="button"
          onClick={() => sorting.change(sort)}
          className="cursor-pointer py-1.5 outline-offset-[-2px] hover:text-ink pointer-coarse:min-h-11"
        >
          {name}
          {isBy && (
            <span
              className={`ml-1 inline-block align-[-2px] ${sorting.isDescending ? "rotate-180" : ""}`}
            >
              <Icon name="up" size={12} />
            </span>
          )}
        </button>
      ) : isMute ? (
        <span className="sr-only">{name}</span>
      ) : (
        name
      )}
    </span>
  );
}

interface HeadProps<T> {
  column: Column<T>;
  sorting: Sorting | undefined;
  look: string;
}

/** The items at some places of the list; parts that are seen are fetched. */
function useParts<T>(
  { name, load, first, size = 50, fresh }: GridProps<T>,
  places: readonly number[],
) {
  const numbers = [...new Set(places.map((place) => Math.floor(place / size)))];
  const wanted = first ? numbers.filter((number) => number > 0) : numbers;
  const parts = useQueries({
    queries: wanted.map((number) => ({
      queryKey: [...name, "part", number],
      queryFn: async ({ signal }: { signal: AbortSignal }) => {
        const start = await load({ offset: number * size, limit: size }, signal);
        return (await filled(start, size, (rest) => load(rest, signal))).items;
      },
      placeholderData: keepPreviousData,
      ...(fresh === undefined ? {} : { staleTime: fresh }),
    })),
  });
  const known = new Map(wanted.map((number, place) => [number, parts[place]?.data]));
  if (first) known.set(0, [...first]);
  return {
    itemAt: (place: number): T | undefined => known.get(Math.floor(place / size))?.[place % size],
    isBroken: parts.some((one) => one.error),
  };
}

const down = (at: number) => at + 1;
const up = (at: number) => at - 1;
const MOVES: Record<string, (at: number, total: number, page: number) => number> = {
  ArrowDown: down,
  j: down,
  ArrowUp: up,
  k: up,
  PageDown: (at, _, page) => at + page,
  PageUp: (at, _, page) => at - page,
  Home: () => 0,
  End: (_, total) => total - 1,
};

interface GridProps<T> {
  label: string;
  /** Beginning of the keys under which parts are kept. */
  name: readonly unknown[];
  total: number;
  /** The same array each time: rows are drawn again when it is another one. */
  columns: readonly Column<T>[];
  load: (wanted: Wanted, signal: AbortSignal) => Promise<Page<T>>;
  /** The first part, where it was asked for already. */
  first?: readonly T[];
  /** How many items are asked for at a time. */
  size?: number;
  /** For how many milliseconds a part is not asked for again. */
  fresh?: number;
  /** Place of the chosen one in the list. */
  chosen: number | null;
  /** Is told whether another one was chosen before, whose place in the history it takes. */
  choose: (place: number, isNext: boolean) => void;
  /** What Enter and a double click do. */
  open?: (place: number, item: T) => void;
  sorting?: Sorting;
  /** Classes of a row. */
  lookOf?: (item: T) => string;
}
