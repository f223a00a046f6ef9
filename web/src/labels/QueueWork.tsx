import { useCallback, useEffect, useLayoutEffect, useMemo, useState } from "react";
import { useMay } from "../api/me";
import { Problem } from "../api/problem";
import { Button, ButtonLink } from "../parts/Button";
import { Empty } from "../parts/Empty";
import { INPUT } from "../parts/Field";
import { count, whole } from "../parts/figures";
import { Keys } from "../parts/Hint";
import { isTyped } from "../parts/keys";
import { Loading } from "../parts/Loading";
import { Page } from "../parts/Page";
import { ProblemBox } from "../parts/ProblemBox";
import { Progress } from "../parts/Progress";
import { usePageTitle } from "../parts/title";
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
  usePageTitle(`Label ${field}`);
  const mayLabel = useMay("editor", project);
  const [told, setTold] = useState("");
  const criterion = address.criterion || told;
  const queue = useQueue(project, query, criterion);
  const [note, setNote] = useState("");
  const [isNoting, setNoting] = useState(false);
  const [isAll, setAll] = useState(false);

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
    window.scrollTo(0, 0);
  }, [queue.current]);

  // With the item that is seen, not a moment later: who labels fast presses ahead.
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.repeat || isTyped(event)) return;
      if (act(event.key.toLowerCase())) event.preventDefault();
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [act]);

  const { head, current } = queue;
  if (!head) {
    return (
      <Page title="Label answers">
        {queue.problem ? (
          <ProblemBox problem={queue.problem} retry={queue.retry} />
        ) : (
          <Loading what="Loading the queue" />
        )}
      </Page>
    );
  }
  const parts = current?.parts ?? [];
  const isWide = parts.some(({ name }) => name === "documents");
  const done = Math.min(queue.done, total);
  return (
    <div className="mx-auto flex min-h-[calc(100dvh-52px)] max-w-[1440px] flex-col px-4 pt-4 max-md:min-h-[calc(100dvh-116px)] md:px-8">
      <header className="mb-3 flex flex-wrap items-center justify-between gap-x-6 gap-y-1">
        <div className="min-w-0">
          <h1 className="m-0 truncate text-lg font-semibold">
            {address.dataset || address.run}
            <span className="font-normal text-soft"> · {field}</span>
          </h1>
          <p className="m-0 truncate text-sm text-soft">
            as {head.rater}
            {head.size > (head.total ?? 0) &&
              ` · ${whole(head.total ?? 0)} of ${whole(head.size)} drawn`}
            {queue.skipped > 0 && ` · ${whole(queue.skipped)} left for later`}
          </p>
        </div>
        <div data-testid="done" className="flex items-center gap-3 whitespace-nowrap tabular-nums">
          <span>
            <strong className="font-semibold">{whole(done)}</strong> of {whole(total)}
          </span>
          <span className="w-32">
            <Progress done={done} total={total} noun="labelled" />
          </span>
        </div>
      </header>
      {criterion && (
        <p className="mb-3 text-lg font-medium wrap-anywhere">
          <span className="sr-only">Criterion: </span>
          {criterion}
        </p>
      )}
      {queue.unsaved && (
        <ProblemBox problem={notSaved(queue.unsaved)} retry={() => queue.saveAgain()} />
      )}
      <div className="sr-only" role="status" aria-live="polite">
        {queue.words && `${queue.words} ${done} of ${total} labelled.`}
      </div>
      <div
        className={`grid grow grid-cols-[minmax(0,1fr)] content-start gap-3 pb-6 ${isWide ? WIDE : ""}`}
      >
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
      <footer className="sticky bottom-0 z-10 max-md:bottom-14 -mx-4 grid gap-2 border-t border-line bg-page px-4 py-3 md:-mx-8 md:px-8">
        {isNoting && (
          <form
            className="flex gap-2"
            onSubmit={(event) => {
              event.preventDefault();
              setNoting(false);
            }}
          >
            <input
              autoFocus
              className={`${INPUT} max-w-none!`}
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
            <Button type="submit">Done</Button>
          </form>
        )}
        <div className="flex flex-wrap items-center gap-2">
          <span className="grid auto-cols-fr grid-flow-col gap-2 max-md:w-full">
            {head.keys.map(({ key, label }) => (
              <Button
                key={key}
                tone="primary"
                aria-keyshortcuts={key}
                isDisabled={!mayLabel || !current || isOver}
                onPress={() => act(key)}
              >
                {label} <Keys>{key}</Keys>
              </Button>
            ))}
          </span>
          {Object.entries(head.commands).map(([key, name]) => (
            <Button
              key={key}
              tone="quiet"
              aria-keyshortcuts={key}
              isDisabled={isDisabled(name, mayLabel, queue.said, isOver)}
              onPress={() => act(key)}
            >
              {name === "more" && isAll ? "less" : name} <Keys>{key}</Keys>
            </Button>
          ))}
          {note && !isNoting && <span className="truncate text-soft">noted: {note}</span>}
          {!mayLabel && (
            <span className="text-soft">
              You may read. Labelling needs a key of the role editor.
            </span>
          )}
        </div>
      </footer>
    </div>
  );
}

// Documents are long: what they are read for, the answer, stays beside them.
const WIDE = `lg:grid-flow-row-dense lg:grid-cols-2 lg:grid-rows-[auto_auto_1fr] lg:[&>*]:col-start-1
  lg:[&>[aria-label=answer]]:sticky lg:[&>[aria-label=answer]]:top-16 lg:[&>[aria-label=answer]]:col-start-2
  lg:[&>[aria-label=answer]]:row-span-4 lg:[&>[aria-label=answer]]:row-start-1 lg:[&>[aria-label=answer]]:self-start`;

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
    <Empty title={done === 0 ? "There is nothing to label" : `${count(done, "item")} labelled`}>
      <p>
        {done < 20
          ? "A calibration of fewer than 20 rows says little: its interval is wide."
          : "The next step is to measure how far a grader agrees."}
      </p>
      <div className="mt-2 flex flex-wrap gap-2">
        <ButtonLink tone="primary" to={`/p/${project}/calibrations?new=1&field=${field}${grader}`}>
          Calibrate {address.grader || "a grader"}
        </ButtonLink>
        <ButtonLink to={`/p/${project}/labels/set?field=${field}`}>Read the labels</ButtonLink>
        <ButtonLink to={`/p/${project}/labels`}>All labels</ButtonLink>
      </div>
    </Empty>
  );
}
