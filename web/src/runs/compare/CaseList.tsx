import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { Cut, Disclosure, Rows } from "../../parts/Disclosure";
import { count, score, signed, whole } from "../../parts/figures";
import { Outcome } from "../../parts/Outcome";
import { Stack } from "../../parts/Page";
import { Panel } from "../../parts/Panel";
import { cellAddress, trialName } from "../names";
import { type CasesShown, Reasons } from "./Comparison";

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
  if (!shown.length)
    return <p className="m-0 text-soft">No case has another mean reward than before.</p>;
  return (
    <Stack>
      {shown.map(([sort, number, cases]) => {
        const kept = cases.filter(suits);
        return (
          <Panel key={sort} title={TITLES[sort]} note={shownWords(number, cases, kept)}>
            <Rows label={TITLES[sort]}>
              <Cut all={kept} first={SHOWN}>
                {(one) => (
                  <Disclosure key={one.case} head={<Head one={one} sort={sort} />}>
                    {() => <Opened found={found} one={one} hasPages={hasPages ?? false} />}
                  </Disclosure>
                )}
              </Cut>
            </Rows>
          </Panel>
        );
      })}
    </Stack>
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
    <span className="flex min-w-0 flex-1 flex-wrap items-baseline gap-x-4">
      <span className="w-20">
        <Outcome state={STATES[sort]} text={signed(one.difference)} />
      </span>
      <span className="w-28 whitespace-nowrap tabular-nums">
        {score(one.before)} → {score(one.after)}
      </span>
      <span className="min-w-0 font-medium wrap-anywhere">{one.case}</span>
      <span className="min-w-0 flex-1 truncate text-soft max-md:hidden">
        {one.pairs[0]?.reasons[0] ?? ""}
      </span>
    </span>
  );
}

function Opened({ found, one, hasPages }: { found: Found; one: Case; hasPages: boolean }) {
  const sideOf = (title: "Before" | "After", run: string, cell: Schemas["ComparedCell"]) => {
    const to = hasPages && cellAddress(run, { ...cell, case: one.case });
    return <Cell title={title} cell={cell} to={to} />;
  };
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-6">
      {one.pairs.map((pair) => (
        <div key={JSON.stringify(pair.after)} className="grid grid-cols-[minmax(0,1fr)] gap-3">
          {pair.reasons.length > 0 && <Reasons reasons={pair.reasons} />}
          <div className="grid grid-cols-[minmax(0,1fr)] gap-6 md:grid-cols-[repeat(2,minmax(0,1fr))]">
            {sideOf("Before", found.before.run, pair.before)}
            {sideOf("After", found.after.run, pair.after)}
          </div>
        </div>
      ))}
      {one.more > 0 && (
        <p className="m-0 text-soft">… and {count(one.more, "more pair")} of this case</p>
      )}
    </div>
  );
}

interface CellProps {
  title: string;
  cell: Schemas["ComparedCell"];
  to: string | false;
}

function Cell({ title, cell, to }: CellProps) {
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] content-start gap-2">
      <h3 className="m-0 flex flex-wrap items-center gap-x-3 text-base font-medium">
        {title} <Outcome state={cell.state} text={score(cell.reward)} />
        <span className="font-normal text-soft">{trialName(cell)}</span>
        {to && (
          <Link to={to} className="ml-auto font-normal">
            Open the cell
          </Link>
        )}
      </h3>
      <p className="m-0 wrap-anywhere">{cell.sentence}</p>
      {cell.answer ? (
        <pre
          tabIndex={0}
          className="m-0 max-h-80 overflow-y-auto rounded-md bg-sunk px-3 py-2 whitespace-pre-wrap wrap-anywhere"
        >
          {cell.answer}
        </pre>
      ) : (
        <p className="m-0 text-soft">No answer was recorded.</p>
      )}
    </div>
  );
}
