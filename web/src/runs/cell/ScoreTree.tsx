import type { Schemas } from "../../api/client";
import { score } from "../../parts/figures";
import { Outcome } from "../../parts/Outcome";
import { Folded } from "./Folded";
import { numbered } from "./numbered";

type Node = Schemas["ScoreNode"];

/** The score tree: what failed is open, down to what commands printed. */
export function ScoreTree({ scores }: { scores: readonly Node[] }) {
  if (scores.length === 0) return <p className="soft">Nothing was scored.</p>;
  return (
    <ul className="scores">
      {numbered(scores).map(({ place, one }) => (
        <Score key={place} node={one} />
      ))}
    </ul>
  );
}

function Score({ node }: { node: Node }) {
  const isWrong = node.state === "fail" || node.state === "error";
  return (
    <li>
      <details className={`score ${node.state}`} open={isWrong || node.flags.length > 0}>
        <summary>
          <Outcome state={node.state} text={node.value === null ? node.state : score(node.value)} />
          <span className="name clip" title={node.name}>
            {node.name}
          </span>
          <Tags node={node} />
        </summary>
        <div className="inside">
          {node.reason && <p>{node.reason}</p>}
          {node.flags.map((flag) => (
            <p key={flag} className="flagged">
              ⚑ {flag}
            </p>
          ))}
          <Findings node={node} />
          <Facts facts={node.facts.filter((fact) => !isSetUp(fact))} />
          {node.facts.some(isSetUp) && (
            <details className="set-up">
              <summary className="soft">how it was set up</summary>
              <Facts facts={node.facts.filter(isSetUp)} />
            </details>
          )}
          {node.children.length > 0 && <ScoreTree scores={node.children} />}
        </div>
      </details>
    </li>
  );
}

function Facts({ facts }: { facts: readonly Schemas["ScoreFact"][] }) {
  if (facts.length === 0) return null;
  return (
    <dl className="score-facts">
      {facts.map((fact) => (
        <div key={fact.label} className={isShort(fact) ? "short" : ""}>
          <dt>{fact.label}</dt>
          <dd>
            <Folded text={fact.text} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** What says with which options a grader ran; it is the same for every cell. */
function isSetUp(fact: Schemas["ScoreFact"]): boolean {
  return ["parameters", "digest", "sandbox"].includes(fact.label);
}

function isShort(fact: Schemas["ScoreFact"]): boolean {
  return fact.text.text.length <= 60 && !fact.text.text.includes("\n");
}

function Tags({ node }: { node: Node }) {
  const words = [
    node.kind,
    node.gate ? "gate" : "",
    node.gate || node.weight === 1
      ? ""
      : `${node.weight < 0 ? "penalty" : "weight"} ${score(Math.abs(node.weight))}`,
    node.assurance,
  ].filter(Boolean);
  return <span className="tags soft">{words.join(" · ")}</span>;
}

function Findings({ node }: { node: Node }) {
  if (node.findings.length === 0) return null;
  return (
    <ul className="findings">
      {numbered(node.findings).map(({ place, one }) => (
        <li key={place}>
          <Outcome state={one.state} />
          <div>
            <span className="what">{one.what}</span>{" "}
            {one.verdict && <span className="soft">{one.verdict}</span>}
            {one.why && <pre dir="auto">{one.why}</pre>}
            {numbered(one.votes).map((vote) => (
              <p key={vote.place} className="soft">
                {vote.one}
              </p>
            ))}
          </div>
        </li>
      ))}
      {node.more_findings > 0 && <li className="soft">and {node.more_findings} more</li>}
    </ul>
  );
}
