import type { Schemas } from "../api/client";
import { Rows } from "../parts/Disclosure";
import { score } from "../parts/figures";
import { Badge } from "../parts/Page";
import { Panel } from "../parts/Panel";
import { Titled } from "../parts/Titled";
import { SeenText, visible } from "./SeenText";
import { Said } from "./sets";

/** The rows on which people and the grader differ most, with both sides' words. */
export function Disagreements({ card }: { card: Schemas["CardDetail"] }) {
  const rows = card.disagreements;
  return (
    <Panel title="Read these: people and the grader differ">
      <p className="mb-4 text-soft">
        {rows.length === 0 ? (
          "They say the same of every row."
        ) : (
          <>
            Half of the time it is the label, or the criterion. <kbd>j</kbd> and <kbd>k</kbd> go
            from one to the next.
          </>
        )}
      </p>
      <Rows label="Rows to read">
        {rows.map((row) => (
          <Differing key={`${row.row} ${row.item}`} row={row} said={card.said[row.item] ?? []} />
        ))}
      </Rows>
    </Panel>
  );
}

function Differing({ row, said }: DifferingProps) {
  return (
    <article data-row="" tabIndex={0} aria-label={row.row} className="border-t border-line py-6">
      <p className="mb-3 flex flex-wrap items-center gap-2">
        <code>{visible(row.row)}</code>
        <Badge>
          people: <strong className="font-medium">{row.label}</strong>
        </Badge>
        <Badge tone="accent">
          grader: <strong className="font-medium">{row.verdict}</strong> ({score(row.score)})
        </Badge>
        {row.file && <span className="ml-auto text-soft">{row.file}</span>}
      </p>
      <div className="grid gap-4 md:grid-cols-2">
        <div className="grid content-start gap-4">
          {row.question && <SeenText name="question" text={row.question} />}
          <SeenText name="answer" text={row.answer} all />
        </div>
        <div className="grid content-start gap-4">
          <Titled title={`People said ${row.label}`}>
            {said.length > 0 ? (
              <Said said={said} odd={false} />
            ) : (
              <span className="text-soft">The labels came with the rows.</span>
            )}
          </Titled>
          <Titled title={`The grader said ${row.verdict} (${score(row.score)})`}>
            {row.reason ? (
              <pre className="m-0 whitespace-pre-wrap wrap-anywhere">{visible(row.reason)}</pre>
            ) : (
              <span className="text-soft">It gave no reason.</span>
            )}
          </Titled>
        </div>
      </div>
    </article>
  );
}

interface DifferingProps {
  row: Schemas["CardDetail"]["disagreements"][number];
  said: readonly Schemas["SaidLabel"][];
}
