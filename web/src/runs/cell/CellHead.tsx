import { Link } from "react-router";
import { count, duration, money, score, whole } from "../../parts/figures";
import { Outcome } from "../../parts/Outcome";
import { cellAddress, trialName } from "../names";
import type { CellView } from "./asking";
import { Folded } from "./Folded";

/** What became of the cell, as a sentence, with the figures beside it. */
export function Verdict({ cell }: { cell: CellView }) {
  return (
    <section className="judged" aria-label="Verdict">
      <div className="spread">
        <p className="sentence">{cell.sentence}</p>
        <RewardBar cell={cell} />
      </div>
      {cell.trouble.text && <Folded text={cell.trouble} tone="error" />}
      {cell.content && cell.state !== "error" && <p className="soft">{cell.content}</p>}
      <dl className="cell-figures">
        <Figure name="cost" value={money(cell.cost_usd)} />
        <Figure name="tokens" value={cell.tokens === null ? "unknown" : whole(cell.tokens)} />
        <Figure name="time" value={duration(cell.seconds)} />
        {cell.assurance && (
          <Figure
            name="assurance"
            value={
              cell.min_assurance
                ? `${cell.assurance} (needs ${cell.min_assurance})`
                : cell.assurance
            }
          />
        )}
        {cell.file && <Figure name="from" value={cell.file} />}
        {cell.digest && <Figure name="graded by" value={cell.digest} />}
      </dl>
      {cell.left_out.length > 0 && (
        <details>
          <summary>{count(cell.left_out.length, "change")} not graded</summary>
          <pre>{cell.left_out.join("\n")}</pre>
        </details>
      )}
      {cell.notes.map((note) => (
        <p key={note} className="note-line">
          {note}
        </p>
      ))}
    </section>
  );
}

function Figure({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

/** The reward between 0 and 1, and what it needed. */
function RewardBar({ cell }: { cell: CellView }) {
  if (cell.reward === null) return null;
  const words = `reward ${score(cell.reward)}; needs ${score(cell.threshold)}`;
  return (
    <div className="reward">
      <svg viewBox="0 0 200 16" width="200" height="16" role="img" aria-label={words}>
        <rect className="track" x="0" y="4" width="200" height="8" rx="4" />
        <rect
          className={`fill ${cell.state}`}
          x="0"
          y="4"
          width={200 * cell.reward}
          height="8"
          rx="4"
        />
        <rect
          className="needed"
          x={Math.min(198, 200 * cell.threshold)}
          y="0"
          width="2"
          height="16"
        />
      </svg>
      <span className="soft">{words}</span>
    </div>
  );
}

/** The other trials of this agent, and the other agents' cells of the case. */
export function Siblings({ cell }: { cell: CellView }) {
  const isHere = (one: CellView["siblings"][number]) =>
    one.place.harness === cell.place.harness && one.place.model === cell.place.model;
  const own = cell.siblings.filter(isHere);
  const others = cell.siblings.filter((one) => !isHere(one));
  if (cell.siblings.length < 2) return null;
  return (
    <nav className="siblings" aria-label="Other cells of the case">
      {own.length > 1 && (
        <>
          <span className="soft">trials</span>
          <Places run={cell.run} cells={own} place={cell.place} words={(p) => String(p.trial)} />
        </>
      )}
      {others.length > 0 && (
        <>
          <span className="soft">others</span>
          <Places run={cell.run} cells={others.slice(0, 40)} place={cell.place} words={trialName} />
        </>
      )}
    </nav>
  );
}

interface PlacesProps {
  run: string;
  cells: CellView["siblings"];
  place: CellView["place"];
  words: (place: CellView["place"]) => string;
}

function Places({ run, cells, place, words }: PlacesProps) {
  return cells.map((one) => {
    const isThis =
      one.place.trial === place.trial &&
      one.place.model === place.model &&
      one.place.harness === place.harness;
    const said = `${words(one.place)}${one.reward === null ? "" : ` · ${score(one.reward)}`}`;
    return (
      <Link
        key={trialName(one.place)}
        to={cellAddress(run, one.place)}
        aria-current={isThis ? "page" : undefined}
      >
        <Outcome state={one.state} /> {said}
        {one.flagged && <span className="flagged"> ⚑</span>}
      </Link>
    );
  });
}
