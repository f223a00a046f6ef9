import { useQueries } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState } from "react";
import { useAddress } from "../../parts/address";
import { Button } from "../../parts/Button";
import { INPUT } from "../../parts/Field";
import { count } from "../../parts/figures";
import { useKeys } from "../../parts/keys";
import type { CellName } from "../names";
import { type OutlinedStep, PART, stepsQuery, useFound } from "./asking";
import { StepCard } from "./StepCard";
import { Timeline } from "./Timeline";

interface TrajectoryProps {
  run: string;
  cell: CellName;
  steps: readonly OutlinedStep[];
  /** Whether more steps come, which are followed where the last ones are in sight. */
  isLive?: boolean;
}

/** What was said and done: an outline, and the steps, of which those in sight are asked for. */
export function Trajectory({ run, cell, steps, isLive = false }: TrajectoryProps) {
  const [{ step: named, find: words }, change] = useAddress({ step: 0, find: "" });
  const at = named <= steps.length ? named - 1 : -1;
  const [visit, setVisit] = useState(0);
  const go = (to: number) => {
    setVisit((before) => before + 1); // also to the step that is named already
    change({ step: to + 1 });
  };
  const field = useRef<HTMLInputElement>(null);
  const found = useFound(run, cell, words);
  const next = (is: (step: OutlinedStep, place: number) => boolean) => {
    const ahead = steps.findIndex((step, place) => place > at && is(step, place));
    const to = ahead >= 0 ? ahead : steps.findIndex(is);
    if (to >= 0) go(to);
  };
  const places = new Set(found?.places);
  const isFound = (_: OutlinedStep, place: number) => places.has(place);
  const isBad = (step: OutlinedStep) => step.is_error;
  const isCall = (step: OutlinedStep) => step.kind === "call" || step.kind === "action";
  useKeys({
    e: () => next(isBad),
    t: () => next(isCall),
    n: () => next(isFound),
    "/": () => field.current?.focus(),
  });
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-4">
      {steps.length > 1 && <Timeline steps={steps} go={go} />}
      <form
        className="flex flex-wrap items-center gap-2"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          const wanted = field.current?.value.trim() ?? "";
          if (wanted && wanted === words) next(isFound);
          else change({ find: wanted });
        }}
      >
        <span className="w-64 max-w-full">
          <input
            ref={field}
            type="search"
            placeholder="Search the steps"
            aria-label="Search the steps"
            defaultValue={words}
            maxLength={200}
            onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
            className={INPUT}
          />
        </span>
        <Button isDisabled={!steps.some(isBad)} onPress={() => next(isBad)}>
          Next error <kbd className="border-0 bg-transparent p-0 text-soft">e</kbd>
        </Button>
        <Button isDisabled={!steps.some(isCall)} onPress={() => next(isCall)}>
          Next tool call <kbd className="border-0 bg-transparent p-0 text-soft">t</kbd>
        </Button>
        <output className="text-soft">
          {words &&
            found &&
            (found.total ? `${count(found.total, "step")} found, n for the next` : "nothing found")}
        </output>
      </form>
      <div className="grid h-[clamp(360px,calc(100vh-160px),1100px)] grid-cols-[minmax(0,1fr)] overflow-hidden rounded-lg border border-line xl:grid-cols-[200px_minmax(0,1fr)]">
        <Outline steps={steps} at={at} places={places} go={go} />
        <Steps run={run} cell={cell} steps={steps} at={at} visit={visit} isLive={isLive} />
      </div>
    </div>
  );
}

const GLYPHS: Record<OutlinedStep["kind"], string> = {
  told: "»",
  thought: "…",
  said: "“",
  turn: "·",
  call: "▸",
  result: "◂",
  action: "▸",
  seen: "◂",
  subagent: "⤷",
  error: "!",
  end: "■",
};
const ROW = 26;
const QUIET = ["told", "thought", "turn", "result", "seen"];

function Outline({ steps, at, places, go }: OutlineProps) {
  const box = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: steps.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 10,
    useFlushSync: false,
  });
  useEffect(() => {
    if (at >= 0) rows.scrollToIndex(at, { align: "auto" });
  }, [at, rows]);
  return (
    <nav
      ref={box}
      aria-label="Outline"
      className="overflow-y-auto border-r border-line bg-sunk max-xl:hidden"
    >
      <ol className="relative m-0 list-none p-0" style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map((row) => {
          const step = steps[row.index];
          if (!step) return null;
          const look = step.is_error ? "text-error" : QUIET.includes(step.kind) ? "text-soft" : "";
          return (
            <li
              key={row.key}
              className="absolute inset-x-0 top-0"
              style={{ transform: `translateY(${row.start}px)`, height: ROW }}
            >
              <button
                type="button"
                aria-current={row.index === at ? "step" : undefined}
                onClick={() => go(row.index)}
                className={`flex h-full w-full cursor-pointer items-center gap-2 px-3 text-left text-sm outline-offset-[-2px]
                  hover:bg-fill aria-[current=step]:bg-accent-soft ${look} ${step.parent === null ? "" : "pl-7"}
                  ${places.has(row.index) ? "font-semibold underline" : ""}`}
              >
                <span aria-hidden="true">{step.is_error ? "!" : GLYPHS[step.kind]}</span>
                <span className="truncate">{step.label}</span>
              </button>
            </li>
          );
        })}
      </ol>
    </nav>
  );
}

interface OutlineProps {
  steps: readonly OutlinedStep[];
  at: number;
  places: ReadonlySet<number>;
  go: (to: number) => void;
}

interface StepsProps extends Required<TrajectoryProps> {
  /** The step that the address names, or -1. */
  at: number;
  visit: number;
}

function Steps({ run, cell, steps, at, visit, isLive }: StepsProps) {
  const box = useRef<HTMLDivElement>(null);
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const rows = useVirtualizer({
    count: steps.length,
    getScrollElement: () => box.current,
    estimateSize: () => 76,
    overscan: 4,
    useFlushSync: false,
  });
  const seen = rows.getVirtualItems();
  const partOf = (index: number) => Math.floor(index / PART);
  const first = partOf(seen[0]?.index ?? 0);
  const last = partOf(seen.at(-1)?.index ?? 0);
  const wanted = Array.from({ length: last - first + 1 }, (_, more) => first + more);
  const parts = useQueries({
    queries: wanted.map((part) =>
      stepsQuery(run, cell, part, isLive && part === partOf(steps.length - 1)),
    ),
  });
  const failed = parts.find((part) => part.error)?.error as Error | undefined;
  // To the step that is named, and once more when its texts are there: how high steps are is known
  // by then. Whoever scrolls on is left alone.
  const arrived = useRef("");
  const aim = `${at} ${visit}`;
  const isRead = parts[partOf(at) - first]?.data !== undefined;
  useEffect(() => {
    if (at < 0 || arrived.current === aim) return;
    rows.scrollToIndex(at, { align: "start" });
    if (!isRead) return;
    const again = requestAnimationFrame(() => {
      arrived.current = aim;
      rows.scrollToIndex(at, { align: "start" });
    });
    return () => cancelAnimationFrame(again);
  }, [at, aim, rows, isRead]);
  useFollowing(isLive, steps.length, box, (to) => rows.scrollToIndex(to, { align: "end" }));
  const toggle = (index: number) =>
    setOpened((before) => {
      const after = new Set(before);
      if (!after.delete(index)) after.add(index);
      return after;
    });
  return (
    <div ref={box} className="overflow-y-auto" tabIndex={0} role="region" aria-label="Steps">
      {failed && <p role="alert">{failed.message}</p>}
      <div className="relative" style={{ height: rows.getTotalSize() }}>
        {seen.map((row) => {
          const outlined = steps[row.index];
          if (!outlined) return null;
          return (
            <div
              key={row.key}
              ref={rows.measureElement}
              data-index={row.index}
              className="absolute inset-x-0 top-0"
              style={{ transform: `translateY(${row.start}px)` }}
            >
              <StepCard
                step={parts[partOf(row.index) - first]?.data?.steps[row.index % PART]}
                index={row.index}
                outlined={outlined}
                isOpen={opened.has(row.index)}
                isHere={row.index === at}
                open={() => toggle(row.index)}
              />
            </div>
          );
        })}
      </div>
    </div>
  );
}

const NEAR = 120;

/** Stays at the last step while more come, for who looks at it; whoever reads above is left alone. */
function useFollowing(
  isLive: boolean,
  length: number,
  box: React.RefObject<HTMLDivElement | null>,
  show: (place: number) => void,
): void {
  const isAtEnd = useRef(true);
  useEffect(() => {
    const scroller = box.current;
    if (!isLive || !scroller) return;
    const look = () => {
      const { scrollTop, clientHeight, scrollHeight } = scroller;
      isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR;
    };
    scroller.addEventListener("scroll", look);
    return () => scroller.removeEventListener("scroll", look);
  }, [isLive, box]);
  const go = useRef(show);
  go.current = show;
  useEffect(() => {
    if (isLive && isAtEnd.current && length > 0) go.current(length - 1);
  }, [isLive, length]);
}
