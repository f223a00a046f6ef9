import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { Cut, Disclosure, Rows } from "../../parts/Disclosure";
import { count, score, whole } from "../../parts/figures";
import { Outcome } from "../../parts/Outcome";
import { cellAddress, trialName } from "../names";

type Told = Schemas["Disagreement"];

/** The cells that two graders score farthest apart, with what was asked, answered and said. */
export function Disagreements({ pair, hasPages }: DisagreementsProps) {
  const told = pair.disagreements;
  const rest = pair.apart - told.length;
  return (
    <section>
      <h2>
        Worst disagreements{" "}
        <span className="h2-note">
          {count(pair.apart, "cell")} with different scores
          {rest > 0 && `; the first ${whole(told.length)}`}
        </span>
      </h2>
      {told.length === 0 ? (
        <p className="soft">Both give every cell just the same score.</p>
      ) : (
        <Rows label="Worst disagreements">
          <Cut all={told} first={15}>
            {(one) => (
              <Disclosure
                key={JSON.stringify([one.case, one.harness, one.model, one.trial])}
                head={<Head one={one} />}
              >
                {() => <Texts pair={pair} one={one} hasPages={hasPages} />}
              </Disclosure>
            )}
          </Cut>
        </Rows>
      )}
    </section>
  );
}

interface DisagreementsProps {
  pair: Schemas["ScorePair"];
  hasPages: boolean;
}

function Head({ one }: { one: Told }) {
  return (
    <span className="disagreement">
      <span className="pair-scores">
        <Scored name="A" value={one.x} isPassed={one.x_passed} />
        <Scored name="B" value={one.y} isPassed={one.y_passed} />
      </span>
      <span className="clip mono">{one.case}</span>
      <span className="clip soft">{trialName(one)}</span>
    </span>
  );
}

function Scored({ name, value, isPassed }: { name: string; value: number; isPassed: boolean }) {
  return (
    <span className="scored-by">
      <span className="pick-mark">{name}</span>
      <Outcome state={isPassed ? "pass" : "fail"} text={score(value)} />
    </span>
  );
}

function Texts({ pair, one, hasPages }: { pair: Schemas["ScorePair"]; one: Told } & Paged) {
  return (
    <div className="stack">
      <div className="beside">
        <Said title={`A · ${pair.x.name}`} text={one.x_reason} empty="It gave no reason." />
        <Said title={`B · ${pair.y.name}`} text={one.y_reason} empty="It gave no reason." />
      </div>
      <div className="beside">
        <Said title="Question" text={one.question} empty="None was recorded." />
        <Said title="Answer" text={one.answer} empty="There is none." />
      </div>
      {hasPages && <Link to={cellAddress(pair.run, one)}>Open the cell</Link>}
    </div>
  );
}

interface Paged {
  hasPages: boolean;
}

function Said({ title, text, empty }: { title: string; text: string; empty: string }) {
  return (
    <div>
      <h3>{title}</h3>
      {text ? <pre className="said-text">{text}</pre> : <p className="soft">{empty}</p>}
    </div>
  );
}
