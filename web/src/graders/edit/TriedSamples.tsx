import type { Schemas } from "../../api/client";
import { Button } from "../../parts/Button";
import { INPUT } from "../../parts/Field";
import { score } from "../../parts/figures";
import { Flag, Outcome } from "../../parts/Outcome";
import { Below, type Shown, Table } from "../../parts/Table";
import { Checks } from "./Checks";
import type { Trial } from "./trial";

type Sample = Schemas["TriedSample"];
type Tried = Schemas["Tried"];

/** What came of each sample: those that were missed or changed first, as the API sorts them. */
export function TriedSamples(props: SamplesProps) {
  const { trial, hasChecks, isOld, onLine } = props;
  return (
    <>
      {hasChecks && <Checks trial={trial} onLine={onLine} />}
      {trial.samples.length > 0 && (
        <>
          <p className="m-0 font-medium" role="status">
            {trial.summary}
            {isOld && (
              <span className="font-normal text-soft"> (of an earlier draft: run it again)</span>
            )}
          </p>
          <Table
            label="Scores"
            columns={columnsOf(props)}
            items={trial.samples}
            keyOf={(one) => one.id}
            lookOf={lookOf}
          />
        </>
      )}
    </>
  );
}

function lookOf({ miss, change }: Sample): string {
  if (miss) return "shadow-[inset_2px_0_var(--color-fail)]";
  return change ? "shadow-[inset_2px_0_var(--color-accent)]" : "";
}

function columnsOf({ trial, wanted, want, onLine }: SamplesProps): Shown<Sample>[] {
  return [
    { name: "Sample", kind: "name", show: (one) => <Answered sample={one} onLine={onLine} /> },
    {
      name: trial.saved ? "Draft" : "Score",
      show: ({ draft, change }) => (
        <>
          <Result tried={draft} />
          {change && <span className="block font-medium text-accent tabular-nums">{change}</span>}
        </>
      ),
    },
    ...(trial.saved
      ? [{ name: trial.saved, show: ({ saved }: Sample) => <Result tried={saved} /> }]
      : []),
    {
      name: "Wanted",
      show: ({ id, miss, wanted: asked }) => (
        <>
          <input
            type="number"
            step="any"
            className={`${INPUT} w-18!`}
            aria-label={`Score that ${id} should get`}
            value={wanted[id] ?? ""}
            placeholder="any"
            onChange={({ target }) => want(id, target.value === "" ? null : Number(target.value))}
          />
          {(wanted[id] ?? null) !== asked ? (
            <Below>run again</Below>
          ) : (
            miss && <span className="block text-sm text-fail">{miss}</span>
          )}
        </>
      ),
    },
    {
      name: "ms",
      kind: "number",
      from: "md",
      show: ({ draft }) => draft?.milliseconds?.toFixed(1) ?? "–",
    },
  ];
}

/** A sample, what was answered, and what the draft says of it. */
function Answered({ sample, onLine }: { sample: Sample; onLine: SamplesProps["onLine"] }) {
  const { id, row, answer, draft } = sample;
  const line = draft?.line ?? null;
  return (
    <div className="font-normal">
      {row === null ? id : `${row}: ${id}`}
      <Below>
        <span className="line-clamp-2">{answer.slice(0, 120) || "(empty answer)"}</span>
      </Below>
      {draft?.reason && (
        <p className={`m-0 text-sm ${draft.status === "error" ? "text-error" : "text-soft"}`}>
          {draft.reason.slice(0, 2_000)}{" "}
          {line !== null && onLine && (
            <Button tone="quiet" onPress={() => onLine(line)}>
              line {line}
            </Button>
          )}
        </p>
      )}
      {draft?.output && (
        <details className="text-sm">
          <summary className="cursor-pointer text-soft">
            stdout <code>{draft.output.split("\n", 1)[0]?.slice(0, 200)}</code>
          </summary>
          <pre className="mt-1 max-h-60 overflow-auto rounded-md bg-sunk px-3 py-2 whitespace-pre-wrap">
            {draft.output}
          </pre>
        </details>
      )}
    </div>
  );
}

function Result({ tried }: { tried: Tried | null }) {
  if (tried === null) return <span className="text-soft">not run</span>;
  const isScored = tried.status === "scored";
  return (
    <span className="flex flex-wrap gap-x-2">
      <Outcome state={tried.status} text={isScored ? score(tried.score) : tried.status} />
      {tried.flags.map((flag) => (
        <Flag key={flag} text={flag.replaceAll("_", " ")} />
      ))}
    </span>
  );
}

interface SamplesProps {
  trial: Trial;
  hasChecks: boolean;
  isOld: boolean;
  wanted: Record<string, number>;
  want: (id: string, score: number | null) => void;
  onLine: ((line: number) => void) | undefined;
}
