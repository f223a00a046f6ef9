import { useState } from "react";
import type { Schemas } from "../../api/client";
import { count, percent, score, signed, whole } from "../../parts/figures";
import { Disagreements } from "./Disagreements";
import { FieldTable, HeatMap } from "./HeatMap";
import "./scores.css";

/** Two graders on the same cells, or one beside what the cells cost. */
export function PairView({ pair, hasPages = true }: PairViewProps) {
  const [isTable, setTable] = useState(false);
  if (!pair.n) {
    return (
      <p className="panel">
        No cell has both numbers. {absentWords(pair.x)} {absentWords(pair.y)}
      </p>
    );
  }
  return (
    <div className="stack">
      <div className="pair">
        <div>
          {isTable ? <FieldTable pair={pair} /> : <HeatMap pair={pair} />}
          <button type="button" className="quiet" onClick={() => setTable(!isTable)}>
            {isTable ? "Show as a picture" : "Show as a table"}
          </button>
        </div>
        <div className="stack pair-facts">
          {pair.agreeing && <p className="pair-said">{pair.agreeing.sentence}.</p>}
          {pair.agreeing && <Verdicts pair={pair} agreeing={pair.agreeing} />}
          <Measures pair={pair} />
          <p className="soft">
            {count(pair.n, "cell")} of {count(pair.cases, "case")} have both. {absentWords(pair.x)}{" "}
            {absentWords(pair.y)}
          </p>
        </div>
      </div>
      {pair.agreeing && <Disagreements pair={pair} hasPages={hasPages} />}
    </div>
  );
}

interface PairViewProps {
  pair: Schemas["ScorePair"];
  hasPages?: boolean;
}

function absentWords(axis: Schemas["Axis"]): string {
  const parts = [
    axis.errors && `${count(axis.errors, "error")}`,
    axis.skipped && `${whole(axis.skipped)} skipped`,
    axis.absent && `${whole(axis.absent)} without it`,
  ].filter(Boolean);
  return parts.length ? `${axis.name}: ${parts.join(", ")}.` : "";
}

function Verdicts({ pair, agreeing }: { pair: Schemas["ScorePair"]; agreeing: Agreeing }) {
  const rows = [
    ["passes", agreeing.both, agreeing.only_x],
    ["fails", agreeing.only_y, agreeing.neither],
  ] as const;
  return (
    <table className="verdicts">
      <caption className="sr">Verdicts of both</caption>
      <thead>
        <tr>
          <td />
          <th scope="col" className="number">
            <span className="pick-mark">B</span> passes
          </th>
          <th scope="col" className="number">
            <span className="pick-mark">B</span> fails
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([word, passes, fails], row) => (
          <tr key={word}>
            <th scope="row">
              <span className="pick-mark">A</span> {word}
            </th>
            <Share n={passes} of={pair.n} isSame={row === 0} />
            <Share n={fails} of={pair.n} isSame={row === 1} />
          </tr>
        ))}
      </tbody>
    </table>
  );
}

type Agreeing = Schemas["Agreeing"];

function Share({ n, of, isSame }: { n: number; of: number; isSame: boolean }) {
  return (
    <td className={isSame ? "number same" : "number"}>
      {whole(n)} <span className="soft">{percent(n / of)}</span>
    </td>
  );
}

function Measures({ pair }: { pair: Schemas["ScorePair"] }) {
  const { agreeing } = pair;
  const rows: [string, string, string][] = [];
  if (agreeing) {
    rows.push(["Same verdict", percent(agreeing.exact.mean), ends(agreeing.exact, percent)]);
    rows.push(["Cohen's kappa", score(agreeing.kappa.mean), ends(agreeing.kappa)]);
  }
  rows.push(["Pearson's r", score(pair.pearson.mean), ends(pair.pearson)]);
  rows.push(["Spearman's rho", score(pair.spearman), ""]);
  if (agreeing) {
    const { difference } = agreeing;
    rows.push(["Mean of A − B", signed(difference.mean), ends(difference, signed)]);
    rows.push(["Just the same score", percent(agreeing.same_score), ""]);
  }
  return (
    <table className="measures">
      <thead>
        <tr>
          <th scope="col">Measure</th>
          <th scope="col" className="number">
            Value
          </th>
          <th scope="col">95 % interval</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([name, value, ends]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td className="number">{value}</td>
            <td className="soft">{ends || "–"}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function ends({ low, high }: Schemas["Interval"], write = score): string {
  if (low === null || high === null) return "";
  return `${write(low)} to ${write(high)}`.replaceAll("-", "−");
}
