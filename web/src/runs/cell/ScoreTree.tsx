import type { Schemas } from "../../api/client";
import { score } from "../../parts/figures";
import { Icon } from "../../parts/Icon";
import { Flag, Outcome } from "../../parts/Outcome";
import { Folded } from "./Folded";
import { numbered } from "./numbered";

type Node = Schemas["ScoreNode"];
type Fact = Schemas["ScoreFact"];

/** The score tree: what failed is open, down to what commands printed. */
export function ScoreTree({ scores }: { scores: readonly Node[] }) {
  if (scores.length === 0) return <p className="m-0 text-soft">Nothing was scored.</p>;
  return (
    <ul className="m-0 grid list-none grid-cols-[minmax(0,1fr)] p-0">
      {numbered(scores).map(({ place, one }) => (
        <Score key={place} node={one} />
      ))}
    </ul>
  );
}

/** With which options a grader ran: the same for every cell. */
const SET_UP = ["parameters", "digest", "sandbox"];
/** What says how far a score of tests can be trusted, and so stands beside it. */
const CLOSE = ["values", "undecided"];

function Score({ node }: { node: Node }) {
  const isWrong = node.state === "fail" || node.state === "error";
  const values = node.facts.find((fact) => fact.label === "values")?.text.text;
  const undecided = node.facts.find((fact) => fact.label === "undecided")?.text.text;
  const setUp = node.facts.filter((fact) => SET_UP.includes(fact.label));
  const facts = node.facts.filter((fact) => ![...SET_UP, ...CLOSE].includes(fact.label));
  return (
    <li className="border-b border-line last:border-0">
      <details className="group/score" open={isWrong || node.flags.length > 0 || undefined}>
        <summary className="flex min-h-9 cursor-pointer list-none flex-wrap items-center gap-x-3 rounded-md py-1 hover:bg-sunk pointer-coarse:min-h-11">
          <span className="text-soft group-open/score:rotate-90">
            <Icon name="right" size={12} />
          </span>
          <Outcome state={node.state} text={node.value === null ? node.state : score(node.value)} />
          <span className="min-w-0 font-medium wrap-anywhere" title={node.name}>
            {node.name}
          </span>
          <span className="w-full pl-6 text-sm text-soft">{tagsOf(node)}</span>
        </summary>
        <div className="grid grid-cols-[minmax(0,1fr)] gap-2 pb-3 pl-6">
          {(node.reason || values) && (
            <p className="m-0 wrap-anywhere">
              {node.reason}
              {values && <span className="text-soft"> {values} on plain values</span>}
            </p>
          )}
          {undecided && (
            <div className="text-error">
              Not decided, so counted as failed:
              <pre className="m-0 whitespace-pre-wrap wrap-anywhere">{undecided}</pre>
            </div>
          )}
          {node.flags.map((flag) => (
            <div key={flag} className="text-flag wrap-anywhere">
              <Flag text="" /> {flag}
            </div>
          ))}
          <Findings node={node} />
          <Facts facts={facts} />
          {setUp.length > 0 && (
            <details>
              <summary className="cursor-pointer text-sm text-soft">how it was set up</summary>
              <Facts facts={setUp} />
            </details>
          )}
          {node.children.length > 0 && (
            <div className="border-l border-line pl-3">
              <ScoreTree scores={node.children} />
            </div>
          )}
        </div>
      </details>
    </li>
  );
}

function Facts({ facts }: { facts: readonly Fact[] }) {
  if (facts.length === 0) return null;
  return (
    <dl className="m-0 grid grid-cols-[minmax(0,1fr)] gap-1.5">
      {facts.map((fact) => (
        <div key={fact.label} className={isShort(fact) ? "flex flex-wrap gap-x-3" : ""}>
          <dt className="text-sm text-soft">{fact.label}</dt>
          <dd className={isShort(fact) ? "m-0" : "m-0 rounded-md bg-sunk px-3 py-2"}>
            <Folded text={fact.text} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function isShort({ text }: Fact): boolean {
  return text.text.length <= 60 && !text.text.includes("\n");
}

function tagsOf(node: Node): string {
  const weight = `${node.weight < 0 ? "penalty" : "weight"} ${score(Math.abs(node.weight))}`;
  const counts = node.gate ? "gate" : node.weight === 1 ? "" : weight;
  return [node.kind, counts, node.assurance].filter(Boolean).join(" · ");
}

function Findings({ node }: { node: Node }) {
  if (node.findings.length === 0) return null;
  return (
    <ul className="m-0 grid list-none grid-cols-[minmax(0,1fr)] gap-1.5 p-0">
      {numbered(node.findings).map(({ place, one }) => (
        <li key={place} className="flex items-start gap-2">
          <Outcome state={one.state} />
          <div className="min-w-0 wrap-anywhere">
            {one.what} {one.verdict && <span className="text-soft">{one.verdict}</span>}
            {one.why && (
              <pre dir="auto" className="m-0 whitespace-pre-wrap text-soft">
                {one.why}
              </pre>
            )}
            {numbered(one.votes).map((vote) => (
              <p key={vote.place} className="m-0 text-soft">
                {vote.one}
              </p>
            ))}
          </div>
        </li>
      ))}
      {node.more_findings > 0 && <li className="text-soft">and {node.more_findings} more</li>}
    </ul>
  );
}
