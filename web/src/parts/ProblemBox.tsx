import { Problem } from "../api/problem";
import { Button } from "./Button";

/** What went wrong, where, and what to do about it. */
export function ProblemBox({ problem, retry }: { problem: Error; retry?: () => void }) {
  const { message } = problem;
  const told = problem instanceof Problem ? problem.faults : [];
  const isSaid = told.length === 1 && told[0] && message.includes(told[0].field);
  const faults = isSaid ? [] : told;
  return (
    <div role="alert" className="my-3 rounded-lg bg-fail-soft p-4 wrap-anywhere">
      <h2 className="mb-1 text-base font-semibold text-fail">
        {problem instanceof Problem ? problem.title : "The page failed"}
      </h2>
      <p className="m-0">{message}</p>
      {faults.length > 0 && (
        <ul className="mt-2 list-disc pl-5">
          {faults.map((fault) => (
            <li key={`${fault.field} ${fault.message}`}>
              {fault.field && <code>{fault.field}</code>} {fault.message}
              {fault.fix && ` (${fault.fix})`}
            </li>
          ))}
        </ul>
      )}
      {retry && (
        <div className="mt-3">
          <Button onPress={retry}>Try again</Button>
        </div>
      )}
    </div>
  );
}
