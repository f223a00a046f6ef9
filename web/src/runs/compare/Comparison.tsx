import type { ReactNode } from "react";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import {
  between,
  count,
  duration,
  percent,
  priced,
  score,
  signed,
  whole,
} from "../../parts/figures";
import { Outcome } from "../../parts/Outcome";
import { Named, Stack } from "../../parts/Page";
import { Panel } from "../../parts/Panel";
import { Below, Table } from "../../parts/Table";
import { agentName, runAddress, runName } from "../names";
import { CaseList } from "./CaseList";
import { DifferenceBar, WinBar } from "./DifferenceBar";

type Found = Schemas["RunComparison"];
type Side = Schemas["ComparedSide"];

const BANDS: Record<string, string> = { better: "bg-pass-soft", worse: "bg-fail-soft" };

/**
 * Two runs, or two agents of one: what can be said, the numbers, and the cases that changed.
 *
 * @param beside What can be done with the numbers.
 * @param children By what the cases are chosen.
 */
export function Comparison({ found, cases, beside, children }: ComparisonProps) {
  const { worse, same, better } = found;
  return (
    <Stack>
      <section aria-label="Finding" className="grid gap-4">
        <p
          className={`m-0 rounded-lg px-4 py-3 text-lg wrap-anywhere ${BANDS[found.finding] ?? "bg-sunk"}`}
        >
          {found.sentence}
        </p>
        <DifferenceBar difference={found.difference} finding={found.finding} />
        <div className="flex flex-wrap items-center gap-x-6 gap-y-2">
          <WinBar better={better} same={same} worse={worse} />
          <span className="flex flex-wrap gap-x-4">
            <Outcome state="fail" text={`${whole(worse)} worse`} />
            <Outcome state="skipped" text={`${whole(same)} the same`} />
            <Outcome state="pass" text={`${whole(better)} better`} />
          </span>
        </div>
      </section>
      <div className="grid grid-cols-[minmax(0,1fr)] gap-10 lg:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
        <Panel title="In numbers" beside={beside}>
          <Figures found={found} hasPages={cases?.hasPages ?? false} />
          <div className="mt-5">
            <Named rows={linesOf(found)} />
          </div>
        </Panel>
        <Panel title="What else is different">
          {found.reasons.length > 0 ? (
            <Reasons reasons={found.reasons} />
          ) : (
            <p className="m-0 text-soft">
              Nothing that was recorded: same cases, graders and settings.
            </p>
          )}
        </Panel>
      </div>
      {found.slices.length > 0 && <Slices found={found} />}
      <div>
        {children}
        <CaseList found={found} {...cases} />
      </div>
    </Stack>
  );
}

interface ComparisonProps {
  found: Found;
  cases?: CasesShown;
  beside?: ReactNode;
  children?: ReactNode;
}

/** How cases are shown; without it, all of them, and none leads anywhere. */
export interface CasesShown {
  text?: string;
  withUnchanged?: boolean;
  hasPages?: boolean;
}

export function Reasons({ reasons }: { reasons: readonly string[] }) {
  return (
    <ul className="m-0 grid list-disc gap-1 pl-5 wrap-anywhere">
      {reasons.map((reason) => (
        <li key={reason}>{reason}</li>
      ))}
    </ul>
  );
}

const WORDS = ["Difference", "Cases", "Passed", "Cells"];

function linesOf(found: Found): [string, string][] {
  const shown = found.lines.filter((line) => WORDS.includes(line.label));
  return shown.map(({ label, text }) => [label, text]);
}

interface Row {
  name: string;
  write: (side: Side) => string;
  /** What it rests on, or what else there is. */
  note?: (side: Side) => string;
  change?: string;
}

/** What is said of both sides; what neither has anything of is left out. */
function rowsOf({ before, after, difference, growth: by }: Found): Row[] {
  const sides = [before, after];
  const rows: (Row | false)[] = [
    { name: "Mean reward", write: (side) => score(side.reward), change: signed(difference.mean) },
    sides.some((side) => side.has_verdicts) && {
      name: "Passed",
      write: ({ paired }) => percent(paired.pass_rate.mean),
      note: rateWords,
    },
    {
      name: "All its cells",
      write: ({ totals }) => `${whole(totals.graded)} graded`,
      note: otherCells,
    },
    {
      name: "Agent cost",
      write: ({ paired }) => priced(paired.cost_usd, paired.cost_unknown),
      change: growth(by.cost_usd),
    },
    sides.some(({ paired }) => paired.tokens !== null) && {
      name: "Tokens",
      write: tokenWords,
      change: growth(by.tokens),
    },
    sides.some(({ paired }) => paired.judgements + paired.judgements_cached > 0) && {
      name: "Judge cost",
      write: ({ paired }) => priced(paired.judge_cost_usd, paired.judge_cost_unknown, "judgement"),
      change: growth(by.judge_cost_usd),
    },
    { name: "Time", write: ({ paired }) => duration(paired.seconds), change: growth(by.seconds) },
  ];
  return rows.filter((row): row is Row => row !== false);
}

function Figures({ found, hasPages }: { found: Found; hasPages: boolean }) {
  const { before, after } = found;
  return (
    <>
      <div className="mb-2 grid gap-1">
        <SideName name="Before" side={before} hasPages={hasPages} />
        <SideName name="After" side={after} hasPages={hasPages} />
      </div>
      <Table
        label="Before and after"
        items={rowsOf(found)}
        keyOf={(row) => row.name}
        columns={[
          { name: "Figure", isMute: true, kind: "name", show: (row) => row.name },
          ...[before, after].map((side) => ({
            name: side === before ? "Before" : "After",
            kind: "number" as const,
            show: (row: Row) => row.write(side),
            below: (row: Row) => row.note?.(side),
          })),
          {
            name: "Change",
            kind: "number",
            from: "md",
            show: (row) => <span className="text-soft">{row.change}</span>,
          },
        ]}
      />
    </>
  );
}

function SideName({ name, side, hasPages }: { name: string; side: Side; hasPages: boolean }) {
  const title = runName({ id: side.run, label: side.label });
  const agents = side.agents.map(agentName);
  return (
    <div className="flex flex-wrap items-baseline gap-x-3 wrap-anywhere">
      <span className="w-14 text-soft">{name}</span>
      {hasPages ? (
        <Link to={runAddress(side.run)} title={side.run}>
          {title}
        </Link>
      ) : (
        title
      )}
      <span title={agents.join(", ")}>
        <Below>
          {agents.length === 1 ? agents[0] : count(agents.length, "agent")}
          {!side.finished && ", not finished"}
        </Below>
      </span>
    </div>
  );
}

/** The cases of each value of a field, those that differ most first. */
function Slices({ found: { by, slices } }: { found: Found }) {
  return (
    <Panel title={`By ${by}`} note="those that differ most first">
      <Table
        label={`Cases by ${by}`}
        items={slices}
        keyOf={(one) => one.value}
        columns={[
          { name: by, kind: "name", show: (one) => one.value },
          { name: "Cases", kind: "number", show: (one) => whole(one.cases) },
          { name: "Before", kind: "number", from: "md", show: (one) => score(one.before) },
          { name: "After", kind: "number", from: "md", show: (one) => score(one.after) },
          {
            name: "Difference",
            kind: "number",
            show: (one) => signed(one.after - one.before),
            below: (one) => (
              <>
                {one.low === null || one.high === null
                  ? "too few for an interval"
                  : `${signed(one.low)} to ${signed(one.high)}`}
              </>
            ),
          },
        ]}
      />
    </Panel>
  );
}

function growth(share: number | null): string {
  if (share === null) return "";
  const size = Math.abs(share) * 100;
  if (size < 0.5) return "the same";
  return `${share < 0 ? "−" : "+"}${size < 1_000 ? Math.round(size) : whole(Math.round(size))} %`;
}

function rateWords({ paired }: Side): string {
  const ends = between(paired.pass_rate.low, paired.pass_rate.high, percent);
  return `of ${whole(paired.graded)}${ends ? `, ${ends}` : ""}`;
}

function otherCells({ totals }: Side): string {
  const parts: string[] = [];
  if (totals.ends.errors) parts.push(count(totals.ends.errors, "error"));
  if (totals.ends.skipped) parts.push(`${whole(totals.ends.skipped)} skipped`);
  if (totals.flagged) parts.push(`${whole(totals.flagged)} flagged`);
  return parts.join(", ");
}

function tokenWords({ paired }: Side): string {
  const unknown = paired.tokens_unknown ? ` + ${count(paired.tokens_unknown, "cell")} unknown` : "";
  return paired.tokens === null ? "unknown" : `${whole(paired.tokens)}${unknown}`;
}
