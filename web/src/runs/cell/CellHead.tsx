import { Link } from "react-router";
import { Chart } from "../../parts/Chart";
import { count, duration, money, score, whole } from "../../parts/figures";
import { Flag, Outcome } from "../../parts/Outcome";
import { cellAddress, trialName } from "../names";
import { BANDS } from "../RunHead";
import type { CellView } from "./asking";
import { Folded } from "./Folded";

export function CellTitle({ cell }: { cell: CellView }) {
  return (
    <>
      {cell.place.case} <span className="font-normal text-soft">{trialName(cell.place)}</span>{" "}
      <Outcome state={cell.state} text={cell.state} />
    </>
  );
}

/** What it took, and how far it can be trusted. */
export function CellFacts({ cell }: { cell: CellView }) {
  const needed = cell.min_assurance ? ` (needs ${cell.min_assurance})` : "";
  const facts: [string, string][] = [
    ["cost", money(cell.cost_usd)],
    ["tokens", cell.tokens === null ? "unknown" : whole(cell.tokens)],
    ["time", duration(cell.seconds)],
    ["assurance", cell.assurance && `${cell.assurance}${needed}`],
    ["from", cell.file],
    ["graded by", cell.digest],
  ];
  return facts.map(
    ([name, value]) =>
      value && (
        <span key={name}>
          {name} <b>{value}</b>
        </span>
      ),
  );
}

/** What became of the cell, as a sentence. */
export function Sentence({ cell }: { cell: CellView }) {
  return (
    <section aria-label="Verdict" className="grid gap-3">
      <div
        className={`flex flex-wrap items-center justify-between gap-x-6 gap-y-2 rounded-lg px-4 py-3 ${BANDS[cell.state]}`}
      >
        <p className="m-0 min-w-0 flex-[1_1_420px] text-lg tabular-nums wrap-anywhere">
          {cell.sentence}
        </p>
        <RewardBar cell={cell} />
      </div>
      {cell.trouble.text && <Folded text={cell.trouble} />}
      {cell.content && cell.state !== "error" && <p className="m-0 text-soft">{cell.content}</p>}
      {cell.left_out.length > 0 && (
        <details>
          <summary className="cursor-pointer text-soft">
            {count(cell.left_out.length, "change")} not graded
          </summary>
          <pre className="mt-2 whitespace-pre-wrap wrap-anywhere">{cell.left_out.join("\n")}</pre>
        </details>
      )}
      {cell.notes.map((note) => (
        <p key={note} className="m-0 text-error">
          {note}
        </p>
      ))}
    </section>
  );
}

const FILLS = {
  pass: "fill-pass",
  fail: "fill-fail",
  error: "fill-error",
  scored: "fill-scored",
  skipped: "fill-edge",
} as const;

/** The reward between 0 and 1, and what it needed. */
function RewardBar({ cell }: { cell: CellView }) {
  if (cell.reward === null) return null;
  const words = `reward ${score(cell.reward)}; needs ${score(cell.threshold)}`;
  return (
    <div className="w-52 text-right text-sm text-soft tabular-nums">
      <Chart said={words} height={12}>
        <rect className="fill-page" y="2" width="100" height="8" rx="1.5" />
        <rect className={FILLS[cell.state]} y="2" width={100 * cell.reward} height="8" rx="1.5" />
        <rect className="fill-ink" x={Math.min(99, 100 * cell.threshold)} width="1" height="12" />
      </Chart>
      {words}
    </div>
  );
}

const MOST_OTHERS = 40;

/** The other trials of this agent, and the other agents' cells of the case. */
export function Siblings({ cell }: { cell: CellView }) {
  const { place, siblings } = cell;
  if (siblings.length < 2) return null;
  const isOwn = (one: CellView["siblings"][number]) =>
    one.place.harness === place.harness && one.place.model === place.model;
  const own = siblings.filter(isOwn);
  const others = siblings.filter((one) => !isOwn(one)).slice(0, MOST_OTHERS);
  return (
    <nav className="flex flex-wrap items-center gap-1.5" aria-label="Other cells of the case">
      {own.length > 1 && <span className="text-sm text-soft">trials</span>}
      {own.length > 1 && own.map((one) => link(cell, one, String(one.place.trial)))}
      {others.length > 0 && <span className="text-sm text-soft">others</span>}
      {others.map((one) => link(cell, one, trialName(one.place)))}
    </nav>
  );
}

function link({ run, place }: CellView, one: CellView["siblings"][number], words: string) {
  const isThis = trialName(one.place) === trialName(place);
  const said = `${words}${one.reward === null ? "" : ` · ${score(one.reward)}`}`;
  return (
    <Link
      key={trialName(one.place)}
      to={cellAddress(run, one.place)}
      aria-current={isThis ? "page" : undefined}
      className="inline-flex min-h-8 items-center gap-1.5 rounded-md px-2 text-ink no-underline hover:bg-fill
        pointer-coarse:min-h-10 aria-[current=page]:bg-fill"
    >
      <Outcome state={one.state} /> {said} {one.flagged && <Flag text="" />}
    </Link>
  );
}
