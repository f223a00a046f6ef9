import type { Schemas } from "../api/client";
import { count, duration, money, score, whole } from "../parts/figures";
import { Named } from "../parts/Page";
import { Panel } from "../parts/Panel";
import { figureText } from "./IntervalBar";

/** What else a card knows: people among each other, repeats, attacks, cost. */
export function CardFacts({ card }: { card: Schemas["CardDetail"] }) {
  const { summary, labels } = card;
  return (
    <Panel title="What it rests on">
      <Named
        rows={[
          ["People agree", people(card)],
          ["Repeats", repeats(card)],
          ["Attacks", attacks(card)],
          ["Cost", cost(card)],
          ...(summary.models.length > 0 ? [["Models", summary.models.join(", ")] as const] : []),
          [
            "Digests",
            <>
              grader <code>{summary.digest.slice(0, 16)}</code>, labels{" "}
              <code>{labels.digest.slice(0, 16)}</code>, assay {card.assay}
            </>,
          ],
        ]}
      />
    </Panel>
  );
}

type Card = Schemas["CardDetail"];

function people({ humans }: Card): string {
  return humans
    ? `kappa ${score(humans.kappa)}, alpha ${score(humans.alpha)} over ${count(humans.items, "row")}: the ceiling. The grader with one person: kappa ${score(humans.grader)}`
    : "not known: no row has labels of two people. Their agreement is the ceiling of any grader.";
}

function repeats({ flips }: Card): string {
  return flips
    ? `the verdict flips in ${figureText(flips.rate)} of pairs; ${count(flips.flipped, "row")} of ${whole(flips.rate.n)} flipped in ${flips.repeats} repeats`
    : "every row was asked once; asking again shows how often the verdict flips";
}

function attacks({ attacks: played }: Card): string {
  if (!played) return "none were played";
  const worked = Object.entries(played.families)
    .filter(([, one]) => one.worked > 0)
    .map(([name, one]) => `${name} ${one.worked} of ${one.played}`);
  return [
    `${figureText(played.raised)} of ${count(played.raised.n, "attack")} on ${count(played.rows, "failing answer")} raised the score, ${figureText(played.passed)} made it pass`,
    worked.length > 0 && ` (${worked.join(", ")})`,
    played.false_alarms.n > 0 &&
      `; ${figureText(played.false_alarms)} of honest additions lowered a good one's`,
    played.excluded > 0 && `; ${whole(played.excluded)} more without a score`,
  ]
    .filter(Boolean)
    .join("");
}

function cost({ cost: paid, summary }: Card): string {
  const more =
    paid.unknown > 0 && paid.usd ? ` and ${count(paid.unknown, "reply")} of unknown price` : "";
  const price = paid.unknown > 0 && !paid.usd ? "unknown" : money(paid.usd);
  return [
    summary.asks_models
      ? `${price}${more} for ${count(paid.judgements, "judgement")}; ${count(paid.calls, "call")}, ${whole(paid.hits)} from the cache`
      : "no model was asked",
    paid.seconds_each !== null && `; ${duration(paid.seconds_each)} a judgement`,
  ]
    .filter(Boolean)
    .join("");
}
