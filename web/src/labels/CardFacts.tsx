import type { ReactNode } from "react";
import type { Schemas } from "../api/client";
import { count, duration, money, score, whole } from "../parts/figures";
import { figureText } from "./IntervalBar";

/** What else a card knows: people among each other, repeats, attacks, cost. */
export function CardFacts({ card }: { card: Schemas["CardDetail"] }) {
  const { humans, flips, attacks, cost, summary, labels } = card;
  const worked = Object.entries(attacks?.families ?? {}).filter(([, one]) => one.worked > 0);
  return (
    <section>
      <h2>What it rests on</h2>
      <dl className="named">
        <Fact name="People agree">
          {humans
            ? `kappa ${score(humans.kappa)}, alpha ${score(humans.alpha)} over ${count(humans.items, "row")}: the ceiling. The grader with one person: kappa ${score(humans.grader)}`
            : "not known: no row has labels of two people. Their agreement is the ceiling of any grader."}
        </Fact>
        <Fact name="Repeats">
          {flips
            ? `the verdict flips in ${figureText(flips.rate)} of pairs; ${count(flips.flipped, "row")} of ${whole(flips.rate.n)} flipped in ${flips.repeats} repeats`
            : "every row was asked once; asking again shows how often the verdict flips"}
        </Fact>
        <Fact name="Attacks">
          {attacks ? (
            <>
              {figureText(attacks.raised)} of {count(attacks.raised.n, "attack")} on{" "}
              {count(attacks.rows, "failing answer")} raised the score, {figureText(attacks.passed)}{" "}
              made it pass
              {worked.length > 0 &&
                ` (${worked.map(([name, one]) => `${name} ${one.worked} of ${one.played}`).join(", ")})`}
              {attacks.false_alarms.n > 0 &&
                `; ${figureText(attacks.false_alarms)} of honest additions lowered a good one's`}
              {attacks.excluded > 0 && `; ${whole(attacks.excluded)} more without a score`}
            </>
          ) : (
            "none were played"
          )}
        </Fact>
        <Fact name="Cost">
          {summary.asks_models
            ? `${cost.unknown > 0 && !cost.usd ? "unknown" : money(cost.usd)}${
                cost.unknown > 0 && cost.usd
                  ? ` and ${count(cost.unknown, "reply")} of unknown price`
                  : ""
              } for ${count(cost.judgements, "judgement")}; ${count(cost.calls, "call")}, ${whole(cost.hits)} from the cache`
            : "no model was asked"}
          {cost.seconds_each !== null && `; ${duration(cost.seconds_each)} a judgement`}
        </Fact>
        {summary.models.length > 0 && <Fact name="Models">{summary.models.join(", ")}</Fact>}
        <Fact name="Digests">
          grader <code>{summary.digest.slice(0, 16)}</code>, labels{" "}
          <code>{labels.digest.slice(0, 16)}</code>, assay {card.assay}
        </Fact>
      </dl>
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
