import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { Cut, Disclosure, Rows } from "../../parts/Disclosure";
import { count, score, signed, whole } from "../../parts/figures";
import { Outcome } from "../../parts/Outcome";
import { cellAddress, trialName } from "../names";
import type { CasesShown } from "./Comparison";

type Found = Schemas["RunComparison"];
type Case = Schemas["ComparedCase"];
type Sort = "worse" | "better" | "same";

const SHOWN = 20;
const TITLES: Record<Sort, string> = { worse: "Worse", better: "Better", same: "Unchanged" };
const STATES = { worse: "fail", better: "pass", same: "skipped" } as const;

/** The cases that changed, regressions first, each with both of its cells. */
export function CaseList({ found, text = "", withUnchanged = false, hasPages }: CaseListProps) {
  const wanted = text.trim().toLowerCase();
  const suits = (one: Case) => one.case.toLowerCase().includes(wanted);
  const sorts: [Sort, number, Case[]][] = [
    ["worse", found.worse, found.worsened],
    ["better", found.better, found.improved],
  ];
  if (withUnchanged) sorts.push(["same", found.same, found.unchanged]);
  const shown = sorts.filter(([, number]) => number > 0);
  if (!shown.length) return <p className="soft">No case has another mean reward than before.</p>;
  return (
    <div className="stack">
      {shown.map(([sort, number, cases]) => {
        const kept = cases.filter(suits);
        return (
          <section key={sort}>
            <h2>
              {TITLES[sort]} <span className="h2-note">{shownWords(number, cases, kept)}</span>
            </h2>
            <Rows label={TITLES[sort]}>
              <Cut all={kept} first={SHOWN}>
                {(one) => (
                  <Disclosure key={one.case} tone={sort} head={<Head one={one} sort={sort} />}>
                    {() => <Opened found={found} one={one} hasPages={hasPages ?? false} />}
                  </Disclosure>
                )}
              </Cut>
            </Rows>
          </section>
        );
      })}
    </div>
  );
}

interface CaseListProps extends CasesShown {
  found: Found;
}

function shownWords(number: number, cases: Case[], kept: Case[]): string {
  const parts = [count(number, "case")];
  if (cases.length < number) parts.push(`the first ${whole(cases.length)} are here`);
  if (kept.length < cases.length) parts.push(`${whole(kept.length)} suit the filter`);
  return parts.join("; ");
}

function Head({ one, sort }: { one: Case; sort: Sort }) {
  return (
    <span className="case-head">
      <Outcome state={STATES[sort]} text={signed(one.difference)} />
      <span className="case-change">
        {score(one.before)} → {score(one.after)}
      </span>
      <span className="clip mono">{one.case}</span>
      <span className="soft case-first clip">{one.pairs[0]?.reasons[0] ?? ""}</span>
    </span>
  );
}

function Opened({ found, one, hasPages }: { found: Found; one: Case; hasPages: boolean }) {
  return (
    <div className="stack">
      {one.pairs.map((pair) => (
        <div key={JSON.stringify(pair.after)} className="case-pair">
          {pair.reasons.length > 0 && (
            <ul className="reasons">
              {pair.reasons.map((reason) => (
                <li key={reason}>{reason}</li>
              ))}
            </ul>
          )}
          <div className="beside">
            <Cell
              title="Before"
              cell={pair.before}
              {...(hasPages && {
                to: cellAddress(found.before.run, { ...pair.before, case: one.case }),
              })}
            />
            <Cell
              title="After"
              cell={pair.after}
              {...(hasPages && {
                to: cellAddress(found.after.run, { ...pair.after, case: one.case }),
              })}
            />
          </div>
        </div>
      ))}
      {one.more > 0 && <p className="soft">… and {count(one.more, "more pair")} of this case</p>}
    </div>
  );
}

interface CellProps {
  title: string;
  cell: Schemas["ComparedCell"];
  to?: string;
}

function Cell({ title, cell, to }: CellProps) {
  return (
    <div>
      <h3 className="row">
        {title} <Outcome state={cell.state} text={score(cell.reward)} />
        <span className="soft agent">{trialName(cell)}</span>
        {to && <Link to={to}>Open the cell</Link>}
      </h3>
      <p className="sentence">{cell.sentence}</p>
      {cell.answer ? (
        <pre className="said-text">{cell.answer}</pre>
      ) : (
        <p className="soft">No answer was recorded.</p>
      )}
    </div>
  );
}
