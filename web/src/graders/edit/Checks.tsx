import { Outcome } from "../../parts/Outcome";
import type { Trial } from "./trial";

const FUNCTION_CHECKS = [
  ["syntax", "Syntax"],
  ["structure", "Structure"],
  ["signature", "Signature"],
  ["execution", "Execution"],
  ["test_run", "Test run"],
] as const;

const WORDS = { pass: "passed", fail: "failed", skipped: "not made yet" };

/** The five checks in their order: passed, failed with its line, or not yet made. */
export function Checks({ trial, onLine }: ChecksProps) {
  const made = new Map(trial.checks.map((check) => [check.name, check]));
  const failed = trial.checks.find((check) => !check.passed);
  const isFunction = made.has("syntax");
  const names: [string, string][] = isFunction
    ? FUNCTION_CHECKS.map(([name, text]) => [name, text])
    : trial.checks.map((check) => [check.name, check.name.replaceAll("_", " ")]);
  const line = failed?.line ?? null;
  return (
    <div className="checks">
      <ul aria-label="Checks">
        {names.map(([name, text]) => {
          const check = made.get(name);
          const state = check ? (check.passed ? "pass" : "fail") : "skipped";
          return (
            <li key={name}>
              <Outcome state={state} text={text} />
              <span className="sr"> {WORDS[state]}</span>
            </li>
          );
        })}
      </ul>
      {failed && (
        <p role="alert" className="check-failed">
          {failed.message}{" "}
          {line !== null && onLine && (
            <button type="button" className="quiet place" onClick={() => onLine(line)}>
              Go to line {line}
            </button>
          )}
        </p>
      )}
      {trial.warnings.length > 0 && (
        <ul className="warnings" aria-label="Worth a look">
          {trial.warnings.map((warning) => (
            <li key={warning}>{warning}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

interface ChecksProps {
  trial: Pick<Trial, "checks" | "warnings">;
  onLine?: ((line: number) => void) | undefined;
}
