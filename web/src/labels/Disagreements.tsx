import { type KeyboardEvent, useRef } from "react";
import type { Schemas } from "../api/client";
import { score } from "../parts/figures";
import { Said } from "./LabelSetPage";
import { SeenText, visible } from "./SeenText";

/** The rows on which people and the grader differ most, with both sides' words. */
export function Disagreements({ card }: { card: Schemas["CardDetail"] }) {
  const list = useRef<HTMLDivElement>(null);
  const step = (event: KeyboardEvent) => {
    const by = { j: 1, k: -1 }[event.key];
    if (!by || !list.current) return;
    const rows = [...list.current.querySelectorAll<HTMLElement>("article")];
    const at = rows.indexOf((event.target as HTMLElement).closest("article") as HTMLElement);
    rows[Math.max(0, Math.min(rows.length - 1, at + by))]?.focus();
  };
  const rows = card.disagreements;
  const saidOf = (item: string) => card.said[item] ?? [];
  return (
    <section>
      <h2>Read these: people and the grader differ</h2>
      {rows.length === 0 ? (
        <p className="soft">They say the same of every row.</p>
      ) : (
        <p className="soft">
          Half of the time it is the label, or the criterion. <kbd>j</kbd> and <kbd>k</kbd> go from
          one to the next.
        </p>
      )}
      <div className="reading" ref={list} onKeyDown={step}>
        {rows.map((row) => (
          <article
            key={`${row.row} ${row.item}`}
            className="panel"
            tabIndex={0}
            aria-label={row.row}
          >
            <div className="spread">
              <span className="row">
                <code>{visible(row.row)}</code>
                <span className="badge">
                  people: <strong>{row.label}</strong>
                </span>
                <span className="badge live">
                  grader: <strong>{row.verdict}</strong> ({score(row.score)})
                </span>
              </span>
              {row.file && <span className="soft">{row.file}</span>}
            </div>
            <div className="texts">
              <div>
                {row.question && <SeenText name="question" text={row.question} />}
                <SeenText name="answer" text={row.answer} all />
              </div>
              <div className="stack">
                <section aria-label="What people said">
                  <h3>People said {row.label}</h3>
                  {saidOf(row.item).length > 0 ? (
                    <Said said={saidOf(row.item)} odd={false} />
                  ) : (
                    <span className="soft">The labels came with the rows.</span>
                  )}
                </section>
                <section aria-label="What the grader said">
                  <h3>
                    The grader said {row.verdict} ({score(row.score)})
                  </h3>
                  <pre>
                    {row.reason ? visible(row.reason) : <span className="soft">no reason</span>}
                  </pre>
                </section>
              </div>
            </div>
          </article>
        ))}
      </div>
    </section>
  );
}
