import type { Schemas } from "../../api/client";
import { Button } from "../../parts/Button";
import { INPUT } from "../../parts/Field";
import { score } from "../../parts/figures";
import { Flag, Outcome } from "../../parts/Outcome";
import { Checks } from "./Checks";
import type { Trial } from "./trial";

type Sample = Schemas["TriedSample"];
type Tried = Schemas["Tried"];

/** What came of each sample: those that were missed or changed first, as the API sorts them. */
export function TriedSamples({ trial, hasChecks, isOld, wanted, want, onLine }: SamplesProps) {
  const names = ["Sample", trial.saved ? "Draft" : "Score", ...(trial.saved ? [trial.saved] : [])];
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
          <div className="-mx-2 overflow-x-auto" role="region" aria-label="Scores" tabIndex={0}>
            <table className="w-full border-collapse">
              <thead>
                <tr>
                  {[...names, "ms", "Wanted"].map((name) => (
                    <th
                      key={name}
                      className={`border-b border-line px-2 py-1.5 text-sm font-normal whitespace-nowrap text-soft ${
                        name === "ms" ? "text-right" : "text-left"
                      }`}
                    >
                      {name}
                    </th>
                  ))}
                </tr>
              </thead>
              {trial.samples.map((one) => (
                <SampleRows
                  key={one.id}
                  sample={one}
                  hasSaved={trial.saved !== ""}
                  wanted={wanted[one.id] ?? null}
                  want={(value) => want(one.id, value)}
                  onLine={onLine}
                />
              ))}
            </table>
          </div>
        </>
      )}
    </>
  );
}

function SampleRows({ sample, hasSaved, wanted, want, onLine }: RowProps) {
  const { draft, saved } = sample;
  const isSaid = draft !== null && (draft.reason || draft.output || draft.line !== null);
  const cell = "px-2 pt-2 pb-1 align-top";
  const mark = sample.miss
    ? "border-l-fail"
    : sample.change
      ? "border-l-accent"
      : "border-l-transparent";
  return (
    <tbody className="border-b border-line">
      <tr>
        <th
          scope="row"
          className={`${cell} max-w-60 min-w-36 border-l-2 text-left font-normal ${mark}`}
        >
          <span className="block truncate" title={sample.id}>
            {sample.row === null ? sample.id : `${sample.row}: ${sample.id}`}
          </span>
          <span className="block truncate text-sm text-soft" title={sample.answer.slice(0, 2_000)}>
            {sample.answer === "" ? "(empty answer)" : sample.answer.slice(0, 120)}
          </span>
        </th>
        <td className={cell}>
          <Result tried={draft} />
          {sample.change && (
            <span className="block pl-6 text-sm font-medium text-accent tabular-nums">
              {sample.change}
            </span>
          )}
        </td>
        {hasSaved && (
          <td className={cell}>
            <Result tried={saved} />
          </td>
        )}
        <td className={`${cell} text-right text-soft tabular-nums`}>
          {draft?.milliseconds?.toFixed(1) ?? "–"}
        </td>
        <td className={cell}>
          <input
            type="number"
            step="any"
            className={`${INPUT} w-18!`}
            aria-label={`Score that ${sample.id} should get`}
            value={wanted ?? ""}
            placeholder="any"
            onChange={({ target }) => want(target.value === "" ? null : Number(target.value))}
          />
          {wanted !== sample.wanted ? (
            <span className="block text-sm text-soft">run again</span>
          ) : (
            sample.miss && <span className="block text-sm text-fail">{sample.miss}</span>
          )}
        </td>
      </tr>
      {isSaid && (
        <tr>
          <td
            colSpan={hasSaved ? 5 : 4}
            className={`border-l-2 px-2 pb-2 text-sm wrap-anywhere ${mark}`}
          >
            <Said tried={draft} onLine={onLine} />
          </td>
        </tr>
      )}
    </tbody>
  );
}

function Result({ tried }: { tried: Tried | null }) {
  if (tried === null) return <span className="text-soft">not run</span>;
  return (
    <span className="flex flex-wrap gap-x-2">
      {tried.status === "scored" ? (
        <Outcome state="scored" text={score(tried.score)} />
      ) : (
        <Outcome state={tried.status} text={tried.status} />
      )}
      {tried.flags.map((flag) => (
        <Flag key={flag} text={flag.replaceAll("_", " ")} />
      ))}
    </span>
  );
}

function Said({ tried, onLine }: { tried: Tried; onLine: SamplesProps["onLine"] }) {
  const line = tried.line;
  return (
    <>
      {tried.reason && (
        <p className={`m-0 ${tried.status === "error" ? "text-error" : "text-soft"}`}>
          {tried.reason.slice(0, 2_000)}{" "}
          {line !== null && onLine && (
            <Button tone="quiet" onPress={() => onLine(line)}>
              line {line}
            </Button>
          )}
        </p>
      )}
      {tried.output && (
        <details>
          <summary className="cursor-pointer truncate text-soft">
            stdout <code>{tried.output.split("\n", 1)[0]?.slice(0, 200)}</code>
          </summary>
          <pre className="mt-1 max-h-60 overflow-auto rounded-md bg-sunk px-3 py-2 whitespace-pre-wrap">
            {tried.output}
          </pre>
        </details>
      )}
    </>
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

interface RowProps {
  sample: Sample;
  hasSaved: boolean;
  wanted: number | null;
  want: (score: number | null) => void;
  onLine: SamplesProps["onLine"];
}
