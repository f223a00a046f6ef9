import { useQueries } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState } from "react";
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
  /** The step that the address names, or -1. */
  at: number;
  words: string;
  go: (to: number) => void;
  search: (words: string) => void;
}

/** What was said and done: an outline, and the steps, of which those in sight are asked for. */
export function Trajectory({ run, cell, steps, at, words, go: name, search }: TrajectoryProps) {
  const [visit, setVisit] = useState(0);
  const go = (to: number) => {
    setVisit((before) => before + 1); // also to the step that is named already
    name(to);
  };
  const field = useRef<HTMLInputElement>(null);
  const found = useFound(run, cell, words).data;
  const next = (is: (step: OutlinedStep, place: number) => boolean) => {
    const from = at + 1;
    const ahead = steps.findIndex((step, place) => place >= from && is(step, place));
    const to = ahead >= 0 ? ahead : steps.findIndex(is);
    if (to >= 0) go(to);
  };
  const places = new Set(found?.places);
  useKeys({
    e: () => next((step) => step.is_error),
    t: () => next((step) => step.kind === "call" || step.kind === "action"),
    n: () => next((_, place) => places.has(place)),
    "/": () => field.current?.focus(),
  });
  const errors = steps.filter((step) => step.is_error).length;
  return (
    <div className="trajectory">
      {steps.length > 1 && <Timeline steps={steps} go={go} />}
      <form
        className="row tools"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          const wanted = field.current?.value.trim() ?? "";
          if (wanted && wanted === words) next((_, place) => places.has(place));
          else search(wanted);
        }}
      >
        <input
          ref={field}
          type="search"
          placeholder="Search the steps"
          aria-label="Search the steps"
          defaultValue={words}
          maxLength={200}
          onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
        />
        <button type="button" disabled={errors === 0} onClick={() => next((s) => s.is_error)}>
          Next error <kbd>e</kbd>
        </button>
        <button type="button" onClick={() => next((s) => s.kind === "call" || s.kind === "action")}>
          Next tool call <kbd>t</kbd>
        </button>
        <output className="soft">
          {words &&
            found &&
            (found.total ? `${count(found.total, "step")} found, n for the next` : "nothing found")}
        </output>
      </form>
      <div className="panes">
        <Outline steps={steps} at={at} places={places} go={go} />
        <Steps run={run} cell={cell} steps={steps} at={at} visit={visit} />
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

function Outline({ steps, at, places, go }: OutlineProps) {
  const box = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: steps.length,
    getScrollElement: () => box.current,
    estimateSize: () => 24,
    overscan: 10,
    useFlushSync: false,
  });
  useEffect(() => {
    if (at >= 0) rows.scrollToIndex(at, { align: "auto" });
  }, [at, rows]);
  return (
    <nav ref={box} className="outline" aria-label="Outline">
      <ol style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map((row) => {
          const step = steps[row.index];
          if (!step) return null;
          return (
            <li key={row.key} style={{ transform: `translateY(${row.start}px)` }}>
              <button
                type="button"
                className={`quiet ${step.kind}${step.is_error ? " bad" : ""}${
                  places.has(row.index) ? " found" : ""
                }${step.parent === null ? "" : " nested"}`}
                aria-current={row.index === at ? "step" : undefined}
                onClick={() => go(row.index)}
              >
                <span aria-hidden="true">{step.is_error ? "!" : GLYPHS[step.kind]}</span>{" "}
                <span className="clip">{step.label}</span>
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

type StepsProps = Pick<TrajectoryProps, "run" | "cell" | "steps" | "at"> & { visit: number };

function Steps({ run, cell, steps, at, visit }: StepsProps) {
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
  const first = Math.floor((seen[0]?.index ?? 0) / PART);
  const last = Math.floor((seen.at(-1)?.index ?? 0) / PART);
  const wanted = Array.from({ length: last - first + 1 }, (_, more) => first + more);
  const parts = useQueries({ queries: wanted.map((part) => stepsQuery(run, cell, part)) });
  const failed = parts.find((part) => part.error)?.error;
  // To the step that is named, and once more when its texts are there: how high steps are is known
  // by then. Whoever scrolls on is left alone.
  const arrived = useRef("");
  const aim = `${at} ${visit}`;
  const isRead = parts[Math.floor(at / PART) - first]?.data !== undefined;
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
  const toggle = (index: number) =>
    setOpened((before) => {
      const after = new Set(before);
      if (!after.delete(index)) after.add(index);
      return after;
    });
  return (
    <div ref={box} className="steps" tabIndex={0} role="region" aria-label="Steps">
      {failed && <p role="alert">{failed.message}</p>}
      <div className="all" style={{ height: rows.getTotalSize() }}>
        {seen.map((row) => {
          const outlined = steps[row.index];
          if (!outlined) return null;
          const part = parts[Math.floor(row.index / PART) - first]?.data;
          return (
            <div
              key={row.key}
              ref={rows.measureElement}
              data-index={row.index}
              className="virtual"
              style={{ transform: `translateY(${row.start}px)` }}
            >
              <StepCard
                step={part?.steps[row.index % PART]}
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
