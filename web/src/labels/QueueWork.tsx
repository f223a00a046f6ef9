import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { Link } from "react-router";
import { useMay } from "../api/me";
import { Problem } from "../api/problem";
import { count, whole } from "../parts/figures";
import { isTyped } from "../parts/keys";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import type { QueueAddress } from "./QueuePage";
import { SeenText } from "./SeenText";
import { useQueue } from "./useQueue";

/** One rater at work: an item, its texts, and a key for each label. */
export function QueueWork({ project, address }: { project: string; address: QueueAddress }) {
  const { dataset, run, field, classes, seed, rater, goal } = address;
  const query = useMemo(
    () => ({ dataset, run, field, classes, seed, rater }),
    [dataset, run, field, classes, seed, rater],
  );
  const mayLabel = useMay("editor", project);
  const [told, setTold] = useState("");
  const criterion = address.criterion || told;
  const queue = useQueue(project, query, criterion);
  const [note, setNote] = useState("");
  const [isNoting, setNoting] = useState(false);
  const [isAll, setAll] = useState(false);
  const top = useRef<HTMLDivElement>(null);

  useEffect(() => {
    if (queue.head?.criterion) setTold(queue.head.criterion);
  }, [queue.head?.criterion]);

  const total = goal ? Math.min(goal, queue.head?.total ?? goal) : (queue.head?.total ?? 0);
  const isFull = goal > 0 && queue.done >= total && queue.head !== null;
  const isOver = queue.hasEnded || isFull;

  const act = useCallback(
    (key: string) => {
      const label = queue.head?.keys.find((one) => one.key === key)?.label;
      const command = queue.head?.commands[key];
      if (label !== undefined && mayLabel && queue.current && !isOver) queue.say(label, note);
      else if (command === "skip" && !isOver) queue.skip();
      else if (command === "undo" && mayLabel && queue.said > 0) queue.undo();
      else if (command === "more") setAll((before) => !before);
      else if (command === "note" && mayLabel && !isOver) setNoting(true);
      else return false;
      return true;
    },
    [queue, note, mayLabel, isOver],
  );

  // biome-ignore lint/correctness/useExhaustiveDependencies: of the item that was labelled or left
  useEffect(() => {
    setNote("");
    setNoting(false);
    setAll(false);
    top.current?.scrollTo(0, 0);
  }, [queue.current]);

  // With the item that is seen, not a moment later: who labels fast presses ahead.
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.repeat || isTyped(event) || document.querySelector("dialog[open]")) return;
      if (act(event.key.toLowerCase())) event.preventDefault();
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [act]);

  const { head, current } = queue;
  if (!head) {
    return queue.problem ? (
      <div className="page">
        <ProblemBox problem={queue.problem} retry={queue.retry} />
      </div>
    ) : (
      <Loading what="Loading the queue" />
    );
  }
  const parts = current?.parts ?? [];
  const isWide = parts.some(({ name }) => name === "documents");
  return (
    <div className="queue">
      <header className="queue-head">
        <div className="queue-title">
          <h1 className="clip">
            {address.dataset || address.run}
            <span className="soft"> · {field}</span>
          </h1>
          <span className="soft clip">
            as {head.rater}
            {head.size > (head.total ?? 0) &&
              ` · ${whole(head.total ?? 0)} of ${whole(head.size)} drawn`}
            {queue.skipped > 0 && ` · ${whole(queue.skipped)} left for later`}
          </span>
        </div>
        <div className="queue-count">
          <span className="number">
            <strong>{whole(Math.min(queue.done, total))}</strong> of {whole(total)}
          </span>
          <progress max={total || 1} value={Math.min(queue.done, total)} aria-label="Labelled" />
        </div>
      </header>
      {criterion && (
        <p className="queue-criterion">
          <span className="soft">Criterion</span> {criterion}
        </p>
      )}
      {queue.unsaved && (
        <ProblemBox problem={notSaved(queue.unsaved)} retry={() => queue.saveAgain()} />
      )}
      <div className="sr" role="status" aria-live="polite">
        {queue.words && `${queue.words} ${Math.min(queue.done, total)} of ${total} labelled.`}
      </div>
      <div className={`queue-texts ${isWide ? "wide" : ""}`} ref={top}>
        {isOver ? (
          <Over project={project} address={address} done={queue.done} />
        ) : current ? (
          parts.map(({ name, text }) => (
            <SeenText key={`${current.item} ${name}`} name={name} text={text} all={isAll} />
          ))
        ) : queue.problem ? (
          <ProblemBox problem={queue.problem} retry={queue.retry} />
        ) : (
          <Loading what="Loading the next item" />
        )}
      </div>
      <footer className="queue-keys">
        {isNoting && (
          <form
            className="row note"
            onSubmit={(event) => {
              event.preventDefault();
              setNoting(false);
            }}
          >
            <input
              autoFocus
              aria-label="Note"
              maxLength={2_000}
              value={note}
              placeholder="A note, kept with the label. Enter goes on."
              onChange={({ target }) => setNote(target.value)}
              onKeyDown={(event) => {
                if (event.key === "Escape") {
                  setNote("");
                  setNoting(false);
                }
              }}
            />
            <button type="submit">Done</button>
          </form>
        )}
        <div className="row">
          {head.keys.map(({ key, label }) => (
            <button
              key={key}
              type="button"
              className="label-key"
              disabled={!mayLabel || !current || isOver}
              aria-keyshortcuts={key}
              onClick={() => act(key)}
            >
              <kbd>{key}</kbd> {label}
            </button>
          ))}
          <span className="gap" />
          {Object.entries(head.commands).map(([key, name]) => (
            <button
              key={key}
              type="button"
              className="quiet"
              aria-keyshortcuts={key}
              disabled={isDisabled(name, mayLabel, queue.said, isOver)}
              onClick={() => act(key)}
            >
              <kbd>{key}</kbd> {name === "more" && isAll ? "less" : name}
            </button>
          ))}
          {note && !isNoting && <span className="soft clip">noted: {note}</span>}
          {!mayLabel && (
            <span className="soft">You may read. Labelling needs a key of the role editor.</span>
          )}
        </div>
      </footer>
    </div>
  );
}

/** Which label the server does not have, and why; its item is still the one that is shown. */
function notSaved({ label, problem }: { label: string; problem: Error }): Problem {
  const title = label ? `The label ${label} is not saved` : "The last label is not taken back";
  return problem instanceof Problem && problem.status
    ? new Problem(problem.status, title, problem.message, problem.faults)
    : new Problem(0, title, "The server does not answer. Try again when it is back.");
}

function isDisabled(name: string, mayLabel: boolean, said: number, isOver: boolean): boolean {
  if (name === "undo") return !mayLabel || said === 0;
  if (name === "note") return !mayLabel || isOver;
  return isOver;
}

interface OverProps {
  project: string;
  address: QueueAddress;
  done: number;
}

/** Nothing is left, or as many are labelled as were wanted. */
function Over({ project, address, done }: OverProps) {
  const field = encodeURIComponent(address.field);
  const grader = address.grader && `&grader=${encodeURIComponent(address.grader)}`;
  return (
    <div className="panel queue-over">
      <h2>{done === 0 ? "There is nothing to label" : `${count(done, "item")} labelled`}</h2>
      <p>
        {done < 20
          ? "A calibration of fewer than 20 rows says little: its interval is wide."
          : "The next step is to measure how far a grader agrees."}
      </p>
      <div className="row">
        <Link
          className="button primary"
          to={`/p/${project}/calibrations?new=1&field=${field}${grader}`}
        >
          Calibrate {address.grader || "a grader"}
        </Link>
        <Link className="button" to={`/p/${project}/labels/set?field=${field}`}>
          Read the labels
        </Link>
        <Link className="button" to={`/p/${project}/labels`}>
          All labels
        </Link>
      </div>
    </div>
  );
}
