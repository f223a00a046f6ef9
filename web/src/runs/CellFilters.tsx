import type { ReactNode } from "react";
import { ToggleButton } from "react-aria-components";
import type { Schemas } from "../api/client";
import type { Change } from "../parts/address";
import { Choice } from "../parts/Choice";
import { endsOf, endWord } from "../parts/Ends";
import { count, whole } from "../parts/figures";
import { Icon } from "../parts/Icon";
import { Flag, Outcome } from "../parts/Outcome";
import { Search } from "../parts/Search";
import type { Chosen } from "./chosen";
import { agentName } from "./names";

/** Which cells are looked at; each choice says how many there are. */
export function CellFilters({ chosen, change, counts, total, causes }: CellFiltersProps) {
  const toggle = (state: string) => {
    const rest = chosen.outcome.filter((one) => one !== state);
    const outcome = rest.length < chosen.outcome.length ? rest : [...rest, state];
    change(state === "error" ? { outcome, cause: "" } : { outcome });
  };
  const agents = counts.agents.map(
    ({ count: number, ...agent }) =>
      [
        JSON.stringify([agent.harness, agent.model]),
        `${agentName(agent)} (${whole(number)})`,
      ] as const,
  );
  const isAny = chosen.harness === null && chosen.model === null;
  const agent = isAny ? "" : JSON.stringify([chosen.harness ?? "", chosen.model ?? ""]);
  const cause = causes.find((one) => one.key === chosen.cause);
  return (
    <div className="mb-3 flex flex-wrap items-center gap-x-3 gap-y-2">
      <fieldset className="m-0 flex flex-wrap gap-1 border-0 p-0">
        <legend className="sr-only">Outcome</legend>
        {endsOf(counts.ends)
          .filter(([state, number]) => number > 0 || chosen.outcome.includes(state))
          .map(([state, number]) => (
            <Toggle key={state} isOn={chosen.outcome.includes(state)} press={() => toggle(state)}>
              <Outcome state={state} text={`${whole(number)} ${endWord(state, number)}`} />
            </Toggle>
          ))}
        {(counts.flagged > 0 || chosen.flagged) && (
          <Toggle isOn={chosen.flagged} press={() => change({ flagged: !chosen.flagged })}>
            <Flag text={`${whole(counts.flagged)} flagged`} />
          </Toggle>
        )}
        {(counts.held > 0 || chosen.held) && (
          <Toggle isOn={chosen.held} press={() => change({ held: !chosen.held })}>
            {whole(counts.held)} wait for review
          </Toggle>
        )}
      </fieldset>
      {counts.agents.length > 1 && (
        <Choice
          label="Agent"
          isInline="hidden"
          value={agent}
          options={[["", "All agents"], ...agents]}
          change={(chosen) => {
            const [harness, model] = chosen
              ? (JSON.parse(chosen) as [string, string])
              : [null, null];
            change({ harness, model });
          }}
        />
      )}
      <Search
        label="Find cases by name"
        placeholder="Case"
        value={chosen.search}
        change={(search) => change({ search })}
      />
      {chosen.case && <Taken what="case" text={chosen.case} drop={() => change({ case: "" })} />}
      {chosen.cause && (
        <Taken what="cause" text={cause?.text ?? chosen.cause} drop={() => change({ cause: "" })} />
      )}
      <output className="total ml-auto text-soft tabular-nums">{count(total, "cell")}</output>
    </div>
  );
}

interface CellFiltersProps {
  chosen: Chosen;
  change: Change<Chosen>;
  counts: Schemas["CellCounts"];
  total: number;
  causes: Schemas["RunOverview"]["causes"];
}

function Toggle({ isOn, press, children }: ToggleProps) {
  return (
    <ToggleButton
      isSelected={isOn}
      onChange={press}
      className="inline-flex min-h-8 cursor-pointer items-center rounded-md px-2 hover:bg-fill pointer-coarse:min-h-10
        selected:bg-fill selected:ring-1 selected:ring-edge selected:ring-inset"
    >
      {children}
    </ToggleButton>
  );
}

interface ToggleProps {
  isOn: boolean;
  press: () => void;
  children: ReactNode;
}

function Taken({ what, text, drop }: { what: string; text: string; drop: () => void }) {
  return (
    <button
      type="button"
      onClick={drop}
      title={text}
      className="inline-flex min-h-8 max-w-80 cursor-pointer items-center gap-1.5 rounded-md bg-fill px-2.5 hover:bg-line
        pointer-coarse:min-h-10"
    >
      <span className="text-soft">{what}</span>
      <span className="truncate">{text}</span>
      <Icon name="close" size={12} />
      <span className="sr-only">Take this filter away</span>
    </button>
  );
}
