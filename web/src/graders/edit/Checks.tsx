import { Button } from "../../parts/Button";
import { Outcome } from "../../parts/Outcome";
import { Notice } from "../../parts/Page";
import type { Trial } from "./trial";

const OF_FUNCTIONS = ["syntax", "structure", "signature", "execution", "test_run"];
const WORDS = { pass: "passed", fail: "failed", skipped: "not made yet" };

/** The checks in their order: passed, failed with its line, or not yet made. */
export function Checks({ trial, onLine }: ChecksProps) {
  const made = new Map(trial.checks.map((check) => [check.name as string, check]));
  const failed = trial.checks.find((check) => !check.passed);
  const line = failed?.line ?? null;
  return (
    <div className="grid gap-2">
      <ul aria-label="Checks" className="flex flex-wrap gap-x-4 gap-y-1">
        {(made.has("syntax") ? OF_FUNCTIONS : [...made.keys()]).map((name) => {
          const check = made.get(name);
          const state = check ? (check.passed ? "pass" : "fail") : "skipped";
          const text = name.replaceAll("_", " ");
          return (
            <li key={name}>
              <Outcome state={state} text={text.slice(0, 1).toUpperCase() + text.slice(1)} />
              <span className="sr-only"> {WORDS[state]}</span>
            </li>
          );
        })}
      </ul>
      {failed && (
        <p role="alert" className="m-0 rounded-lg bg-fail-soft px-4 py-2 wrap-anywhere">
          {failed.message}{" "}
          {line !== null && onLine && (
            <Button tone="quiet" onPress={() => onLine(line)}>
              Go to line {line}
            </Button>
          )}
        </p>
      )}
      {trial.warnings.map((warning) => (
        <Notice key={warning}>{warning}</Notice>
      ))}
    </div>
  );
}

interface ChecksProps {
  trial: Pick<Trial, "checks" | "warnings">;
  onLine?: ((line: number) => void) | undefined;
}
