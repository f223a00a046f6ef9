import { useEffect } from "react";
import { count } from "../parts/figures";
import { ProblemBox } from "../parts/ProblemBox";
import { again, forget, send, useOutbox } from "./outbox";

/** Labels that the server does not have yet. */
export function OutboxState() {
  const { waiting, isAway } = useOutbox();
  useEffect(() => {
    void send();
  }, []);
  if (waiting.length === 0) return null;
  return (
    <span className="outcome skipped" data-testid="waiting">
      {isAway ? `${count(waiting.length, "label")} kept here until the server is back` : "saving …"}
    </span>
  );
}

/** Labels that the server did not take, and why. */
export function OutboxRefused() {
  const { refused } = useOutbox();
  return refused.map((one) => (
    <div key={one.id} className="stack">
      <ProblemBox problem={one.problem} retry={() => again(one)} />
      <div className="row">
        The label <strong>{one.body.label || "(taken back)"}</strong> of {one.body.field} is not
        stored.
        <button type="button" onClick={() => forget(one.id)}>
          Discard it
        </button>
      </div>
    </div>
  ));
}
