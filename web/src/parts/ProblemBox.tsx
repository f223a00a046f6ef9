import { Problem } from "../api/problem";
import "./parts.css";

/** What went wrong, where, and what to do about it. */
export function ProblemBox({ problem, retry }: { problem: Error; retry?: () => void }) {
  const told = problem instanceof Problem ? problem.faults : [];
  const isSaid = told.length === 1 && told[0] && problem.message.includes(told[0].field);
  const faults = isSaid ? [] : told;
  const title = problem instanceof Problem ? problem.title : "The page failed";
  return (
    <div role="alert" className="panel problem">
      <h2>{title}</h2>
      <p>{problem.message}</p>
      {faults.length > 0 && (
        <ul>
          {faults.map((fault) => (
            <li key={`${fault.field} ${fault.message}`}>
              {fault.field && <code>{fault.field}</code>} {fault.message}
              {fault.fix && ` (${fault.fix})`}
            </li>
          ))}
        </ul>
      )}
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}
