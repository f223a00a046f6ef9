import { useQueries } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef, useState } from "react";
import { Link, useNavigate, useSearchParams } from "react-router";
import { api, ask, type Schemas } from "../api/client";
import { filled } from "../api/pages";
import { duration, money, score, whole } from "../parts/figures";
import { useKeys } from "../parts/keys";
import { Flag, Outcome } from "../parts/Outcome";
import { type Chosen, queryOf, type Sort } from "./chosen";
import { agentName, cellAddress } from "./names";

type CellPage = Schemas["CellPage"];
type CellRow = Schemas["CellRow"];

/** Cells that are asked for at a time. */
export const PART = 100;
const HEIGHT = 34;

const COLUMNS: [string, Sort | null, boolean][] = [
  ["", null, false],
  ["Case", "case", false],
  ["Agent", null, false],
  ["Trial", "trial", true],
  ["Reward", "reward", true],
  ["Why", null, false],
  ["Cost", "cost", true],
  ["Tokens", "tokens", true],
  ["Time", "seconds", true],
];

/** All cells that suit: as many rows as fit are there, whatever their number. */
export function CellsTable({ run, chosen, change, first, total }: CellsTableProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const [address, setAddress] = useSearchParams();
  const navigate = useNavigate();
  const [at, setAt] = useState(Math.min(Number(address.get("at")) || 0, total - 1));
  const rows = useVirtualizer({
    count: total,
    getScrollElement: () => scroller.current,
    estimateSize: () => HEIGHT,
    overscan: 12,
    initialOffset: at > 10 ? (at - 5) * HEIGHT : 0,
  });
  const shown = rows.getVirtualItems();
  const cells = useParts(
    run,
    chosen,
    first,
    shown.map((item) => item.index),
  );

  const open = (index: number) => {
    const cell = cells(index);
    if (!cell) return;
    const here = new URLSearchParams(address);
    here.set("at", String(index));
    setAddress(here, { replace: true }); // so that the way back leads to the same row
    window.setTimeout(() => navigate(cellAddress(run, cell)));
  };
  const move = (to: number) => {
    const next = Math.max(0, Math.min(total - 1, to));
    setAt(next);
    rows.scrollToIndex(next);
  };
  const press = (event: { key: string; preventDefault: () => void }) => {
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / HEIGHT) - 2);
    const steps: Record<string, number> = {
      j: at + 1,
      k: at - 1,
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: total - 1,
    };
    const to = steps[event.key];
    if (to !== undefined) move(to);
    else if (event.key === "Enter") open(at);
    else return;
    event.preventDefault();
  };
  // They count wherever nothing else takes them.
  const whenFree = (act: () => void) => () => {
    const focused = document.activeElement;
    if (focused === document.body || focused?.id === "main") act();
  };
  useKeys({
    j: whenFree(() => move(at + 1)),
    k: whenFree(() => move(at - 1)),
    Enter: whenFree(() => open(at)),
  });

  const sort = (by: Sort) => {
    const isSame = chosen.sort === by;
    const descending = isSame ? !chosen.descending : by !== "case" && by !== "trial";
    change({ sort: by === "case" ? null : by, descending: descending ? "true" : null });
  };
  return (
    <div
      ref={scroller}
      className="grid"
      role="grid"
      aria-label="Cells; j and k go on and back, Enter opens"
      aria-rowcount={total + 1}
      aria-activedescendant={shown.some((item) => item.index === at) ? `cell-${at}` : undefined}
      tabIndex={0}
      onKeyDown={(event) => {
        if (event.target === event.currentTarget) press(event);
      }}
    >
      <div className="grid-head grid-row" role="row" aria-rowindex={1}>
        {COLUMNS.map(([name, by, isNumber]) => (
          <span
            key={name}
            role="columnheader"
            className={isNumber ? "number" : undefined}
            aria-sort={
              by === null || chosen.sort !== by
                ? undefined
                : chosen.descending
                  ? "descending"
                  : "ascending"
            }
          >
            {by ? (
              <button type="button" className="quiet" onClick={() => sort(by)}>
                {name}
                <span className="way" aria-hidden="true">
                  {chosen.sort === by ? (chosen.descending ? "↓" : "↑") : ""}
                </span>
              </button>
            ) : (
              name || <span className="sr">Outcome</span>
            )}
          </span>
        ))}
      </div>
      <div className="grid-body" role="rowgroup" style={{ height: rows.getTotalSize() }}>
        {shown.map((item) => {
          const cell = cells(item.index);
          return (
            <div
              key={item.key}
              id={`cell-${item.index}`}
              role="row"
              aria-rowindex={item.index + 2}
              aria-selected={item.index === at}
              className={`grid-row${cell?.flag_count ? " flagged" : ""}`}
              style={{ transform: `translateY(${item.start}px)`, height: HEIGHT }}
              onClick={() => setAt(item.index)}
              onDoubleClick={() => open(item.index)}
            >
              {cell ? <CellLine run={run} cell={cell} /> : <span role="gridcell">…</span>}
            </div>
          );
        })}
      </div>
    </div>
  );
}

interface CellsTableProps {
  run: string;
  chosen: Chosen;
  change: (changes: Record<string, string | null>) => void;
  first: CellPage;
  total: number;
}

/** The columns of one cell. */
export function CellLine({ run, cell }: { run: string; cell: CellRow }) {
  const said = [`passes at ${score(cell.threshold)}`, cell.assurance].filter(Boolean).join("; ");
  return (
    <>
      <span role="gridcell">
        <Outcome state={cell.ended} />
      </span>
      <span role="gridcell" className="clip">
        <Link to={cellAddress(run, cell)} tabIndex={-1} title={cell.case}>
          {cell.case}
        </Link>
      </span>
      <span role="gridcell" className="clip" title={agentName(cell)}>
        {agentName(cell)}
      </span>
      <span role="gridcell" className="number">
        {cell.trial}
      </span>
      <span role="gridcell" className="number" title={said}>
        {score(cell.reward)}
      </span>
      <span role="gridcell" className="clip why" title={[...cell.flags, cell.why].join("\n")}>
        {cell.flag_count > 0 && <Flag text={cell.flag_count > 1 ? whole(cell.flag_count) : ""} />}
        {cell.held && <span className="badge">waits for review</span>}
        {cell.ruling && <span className="badge">decided: {cell.ruling}</span>}
        <span className="clip">{cell.why || cell.flags[0]}</span>
      </span>
      <span role="gridcell" className="number">
        {cell.ended === "skipped" && cell.cost_usd === null ? "–" : money(cell.cost_usd)}
      </span>
      <span role="gridcell" className="number">
        {cell.tokens === null ? (cell.ended === "skipped" ? "–" : "unknown") : whole(cell.tokens)}
      </span>
      <span role="gridcell" className="number">
        {duration(cell.seconds)}
      </span>
    </>
  );
}

/** Some cells of a run. */
export async function cellPart(
  run: string,
  query: ReturnType<typeof queryOf> & { until?: number; limit: number; offset: number },
  signal: AbortSignal,
): Promise<CellPage> {
  const part = (rest: object) =>
    ask(
      api.GET("/api/v1/runs/{run}/cells", {
        signal,
        params: { path: { run }, query: { ...query, ...rest } },
      }),
    );
  return filled(await part({}), query.limit, (rest) => part({ ...rest, offset: 0 }));
}

/** The cells at some places of the list; parts that are seen are fetched. */
function useParts(
  run: string,
  chosen: Chosen,
  first: CellPage,
  places: readonly number[],
): (index: number) => CellRow | undefined {
  const numbers = [...new Set(places.map((place) => Math.floor(place / PART)))].filter(Boolean);
  const parts = useQueries({
    queries: numbers.map((number) => {
      const query = { ...queryOf(chosen), until: first.last, limit: PART, offset: number * PART };
      return {
        queryKey: ["run", run, "cells", query],
        queryFn: ({ signal }: { signal: AbortSignal }) => cellPart(run, query, signal),
        staleTime: Number.POSITIVE_INFINITY,
      };
    }),
  });
  const known = new Map(numbers.map((number, place) => [number, parts[place]?.data?.items]));
  return (index) => {
    const rows = index < PART ? first.items : known.get(Math.floor(index / PART));
    return rows?.[index % PART];
  };
}
