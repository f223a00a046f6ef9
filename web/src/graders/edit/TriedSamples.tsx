import type { Schemas } from "../../api/client";
import { score } from "../../parts/figures";
import { Flag, Outcome } from "../../parts/Outcome";
import { Checks } from "./Checks";
import type { Trial } from "./trial";

type Sample = Schemas["TriedSample"];
type Tried = Schemas["Tried"];

/** What came of each sample: those that were missed or changed first, as the API sorts them. */
export function TriedSamples({ trial, hasChecks, isOld, wanted, want, onLine }: SamplesProps) {
  return (
    <div className="tried">
      {hasChecks && <Checks trial={trial} onLine={onLine} />}
      {trial.samples.length > 0 && (
        <>
          <p className="summary" role="status">
            {trial.summary}
            {isOld && <span className="soft"> (of an earlier draft: run it again)</span>}
          </p>
          <div className="trial-table" role="region" aria-label="Scores" tabIndex={0}>
            <table>
              <thead>
                <tr>
                  <th>Sample</th>
                  <th>{trial.saved ? "Draft" : "Score"}</th>
                  {trial.saved && <th>{trial.saved}</th>}
                  <th className="number">ms</th>
                  <th>Wanted</th>
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
    </div>
  );
}

function SampleRows({ sample, hasSaved, wanted, want, onLine }: RowProps) {
  const { draft, saved } = sample;
  const isSaid = draft !== null && (draft.reason || draft.output || draft.line !== null);
  const joined = isSaid ? " joined" : "";
  const isStale = wanted !== sample.wanted;
  return (
    <tbody className={sample.miss ? "missed" : sample.change ? "changed" : undefined}>
      <tr>
        <th scope="row" className={`sample-name${joined}`}>
          <span className="clip" title={sample.id}>
            {sample.row === null ? sample.id : `${sample.row}: ${sample.id}`}
          </span>
          <span className="clip soft" title={sample.answer}>
            {sample.answer === "" ? "(empty answer)" : sample.answer.slice(0, 120)}
          </span>
        </th>
        <td className={joined}>
          <Result tried={draft} />
          {sample.change && <span className="change">{sample.change}</span>}
        </td>
        {hasSaved && (
          <td className={joined}>
            <Result tried={saved} />
          </td>
        )}
        <td className={`number${joined}`}>{draft?.milliseconds?.toFixed(1) ?? "–"}</td>
        <td className={joined}>
          <input
            type="number"
            step="any"
            className="wanted"
            aria-label={`Score that ${sample.id} should get`}
            value={wanted ?? ""}
            placeholder="any"
            onChange={(event) =>
              want(event.target.value === "" ? null : Number(event.target.value))
            }
          />
          {isStale ? (
            <span className="soft small">run again</span>
          ) : (
            sample.miss && <span className="miss">{sample.miss}</span>
          )}
        </td>
      </tr>
      {isSaid && (
        <tr className="said">
          <td colSpan={hasSaved ? 5 : 4}>
            <Said tried={draft} onLine={onLine} />
          </td>
        </tr>
      )}
    </tbody>
  );
}

function Result({ tried }: { tried: Tried | null }) {
  if (tried === null) return <span className="soft">not run</span>;
  return (
    <span className="result">
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
        <p className={tried.status === "error" ? "error-text" : "soft"}>
          {tried.reason.slice(0, 2_000)}{" "}
          {line !== null && onLine && (
            <button type="button" className="quiet place" onClick={() => onLine(line)}>
              line {line}
            </button>
          )}
        </p>
      )}
      {tried.output && (
        <details>
          <summary>
            stdout <code className="clip">{tried.output.split("\n", 1)[0]?.slice(0, 200)}</code>
          </summary>
          <pre>{tried.output}</pre>
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
