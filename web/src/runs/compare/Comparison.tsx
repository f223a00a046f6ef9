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
import { agentName, runName } from "../names";
import { CaseList } from "./CaseList";
import { DifferenceBar, WinBar } from "./DifferenceBar";
import "./compare.css";

type Found = Schemas["RunComparison"];
type Side = Schemas["ComparedSide"];

/** Two runs, or two agents of one: what can be said, the numbers, and the cases that changed. */
export function Comparison({ found, cases }: { found: Found; cases?: CasesShown }) {
  const isClear = found.finding === "better" || found.finding === "worse";
  return (
    <div className="stack compare">
      <section className={`panel finding ${isClear ? found.finding : "unclear"}`}>
        <p className="found">{found.sentence}</p>
        <DifferenceBar difference={found.difference} finding={found.finding} />
        <div className="row wins-row">
          <WinBar better={found.better} same={found.same} worse={found.worse} />
          <span className="row">
            <Outcome state="fail" text={`${whole(found.worse)} worse`} />
            <Outcome state="skipped" text={`${whole(found.same)} the same`} />
            <Outcome state="pass" text={`${whole(found.better)} better`} />
          </span>
        </div>
      </section>
      <div className="compare-facts">
        <section>
          <h2>In numbers</h2>
          <Figures found={found} hasPages={cases?.hasPages ?? false} />
          <Lines found={found} />
        </section>
        <section>
          <h2>What else is different</h2>
          {found.reasons.length ? (
            <ul className="reasons">
              {found.reasons.map((reason) => (
                <li key={reason}>{reason}</li>
              ))}
            </ul>
          ) : (
            <p className="soft">Nothing that was recorded: same cases, graders and settings.</p>
          )}
        </section>
      </div>
      <CaseList found={found} {...cases} />
    </div>
  );
}

/** How cases are shown; without it, all of them, and none leads anywhere. */
export interface CasesShown {
  text?: string;
  withUnchanged?: boolean;
  hasPages?: boolean;
}

function Figures({ found, hasPages }: { found: Found; hasPages: boolean }) {
  const { before, after } = found;
  return (
    <table className="sides">
      <thead>
        <tr>
          <td />
          <SideHead name="Before" side={before} hasPages={hasPages} />
          <SideHead name="After" side={after} hasPages={hasPages} />
          <th scope="col" className="number">
            Change
          </th>
        </tr>
      </thead>
      <tbody>
        <Figure
          name="Mean reward"
          change={signed(found.difference.mean)}
          sides={[before, after]}
          write={(side) => score(side.reward)}
        />
        {(before.has_verdicts || after.has_verdicts) && (
          <Figure name="Passed" sides={[before, after]} write={passWords} />
        )}
        <Figure name="All its cells" sides={[before, after]} write={cellWords} />
        <Figure
          name="Agent cost"
          change={growth(found.growth.cost_usd)}
          sides={[before, after]}
          write={({ paired }) => priced(paired.cost_usd, paired.cost_unknown)}
        />
        {(before.paired.tokens !== null || after.paired.tokens !== null) && (
          <Figure
            name="Tokens"
            change={growth(found.growth.tokens)}
            sides={[before, after]}
            write={tokenWords}
          />
        )}
        {[before, after].some(({ paired }) => paired.judgements + paired.judgements_cached > 0) && (
          <Figure
            name="Judge cost"
            change={growth(found.growth.judge_cost_usd)}
            sides={[before, after]}
            write={({ paired }) =>
              priced(paired.judge_cost_usd, paired.judge_cost_unknown, "judgement")
            }
          />
        )}
        <Figure
          name="Time"
          change={growth(found.growth.seconds)}
          sides={[before, after]}
          write={({ paired }) => duration(paired.seconds)}
        />
      </tbody>
    </table>
  );
}

function SideHead({ name, side, hasPages }: { name: string; side: Side; hasPages: boolean }) {
  const title = runName({ id: side.run, label: side.label });
  const agents = side.agents.map(agentName);
  return (
    <th scope="col" className="number side-head">
      {name}
      <span className="clip side-run">
        {hasPages ? (
          <Link to={`/runs/${encodeURIComponent(side.run)}`} title={side.run}>
            {title}
          </Link>
        ) : (
          title
        )}
      </span>
      <span className="clip" title={agents.join(", ")}>
        {agents.length === 1 ? agents[0] : count(agents.length, "agent")}
        {!side.finished && ", not finished"}
      </span>
    </th>
  );
}

interface FigureProps {
  name: string;
  change?: string;
  sides: [Side, Side];
  write: (side: Side) => string;
}

function Figure({ name, sides, write, change = "" }: FigureProps) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td className="number">{write(sides[0])}</td>
      <td className="number">{write(sides[1])}</td>
      <td className="number soft">{change}</td>
    </tr>
  );
}

function growth(share: number | null): string {
  if (share === null) return "";
  const size = Math.abs(share) * 100;
  if (size < 0.5) return "the same";
  return `${share < 0 ? "−" : "+"}${size < 1_000 ? Math.round(size) : whole(Math.round(size))} %`;
}

function passWords({ paired }: Side): string {
  const ends = between(paired.pass_rate.low, paired.pass_rate.high, percent);
  return `${percent(paired.pass_rate.mean)} of ${whole(paired.graded)}${ends ? ` (${ends})` : ""}`;
}

function cellWords({ totals }: Side): string {
  const parts = [`${whole(totals.graded)} graded`];
  if (totals.ends.errors) parts.push(count(totals.ends.errors, "error"));
  if (totals.ends.skipped) parts.push(`${whole(totals.ends.skipped)} skipped`);
  if (totals.flagged) parts.push(`${whole(totals.flagged)} flagged`);
  return parts.join(", ");
}

function tokenWords({ paired }: Side): string {
  const unknown = paired.tokens_unknown ? ` + ${count(paired.tokens_unknown, "cell")} unknown` : "";
  return paired.tokens === null ? "unknown" : `${whole(paired.tokens)}${unknown}`;
}

const WORDS = ["Difference", "Cases", "Passed", "Cells"];

function Lines({ found }: { found: Found }) {
  return (
    <dl className="lines">
      {found.lines
        .filter((line) => WORDS.includes(line.label))
        .map((line) => (
          <div key={line.label}>
            <dt>{line.label}</dt>
            <dd>{line.text}</dd>
          </div>
        ))}
    </dl>
  );
}
