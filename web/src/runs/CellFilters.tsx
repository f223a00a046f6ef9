import type { Schemas } from "../api/client";
import { endsOf } from "../parts/Ends";
import { count, whole } from "../parts/figures";
import { Outcome, WORDS } from "../parts/Outcome";
import { Search } from "../parts/Search";
import type { Chosen } from "./chosen";
import { agentName } from "./names";

/** Which cells are looked at; each choice says how many there are. */
export function CellFilters({ chosen, change, counts, total, causes }: CellFiltersProps) {
  const toggle = (state: string) => {
    const rest = chosen.outcome.filter((one) => one !== state);
    const next = rest.length < chosen.outcome.length ? rest : [...rest, state];
    change({ outcome: next.join(",") || null, ...(state === "error" ? { cause: null } : {}) });
  };
  const agent =
    chosen.harness === null && chosen.model === null
      ? ""
      : JSON.stringify([chosen.harness ?? "", chosen.model ?? ""]);
  const cause = causes.find((one) => one.key === chosen.cause);
  return (
    <div className="filters cell-filters">
      <fieldset className="row">
        <legend className="sr">Outcome</legend>
        {endsOf(counts.ends).map(([state, number]) => (
          <button
            key={state}
            type="button"
            className="toggle"
            aria-pressed={chosen.outcome.includes(state)}
            disabled={number === 0 && !chosen.outcome.includes(state)}
            onClick={() => toggle(state)}
          >
            <Outcome state={state} text={`${whole(number)} ${WORDS[state]}`} />
          </button>
        ))}
        {(counts.flagged > 0 || chosen.flagged) && (
          <button
            type="button"
            className="toggle"
            aria-pressed={chosen.flagged}
            onClick={() => change({ flagged: chosen.flagged ? null : "true" })}
          >
            <span className="outcome flag">⚑ {whole(counts.flagged)} flagged</span>
          </button>
        )}
        {(counts.held > 0 || chosen.held) && (
          <button
            type="button"
            className="toggle"
            aria-pressed={chosen.held}
            onClick={() => change({ held: chosen.held ? null : "true" })}
          >
            {whole(counts.held)} wait for review
          </button>
        )}
      </fieldset>
      {counts.agents.length > 1 && (
        <select
          aria-label="Agent"
          value={agent}
          onChange={(event) => {
            const [harness, model] = event.target.value
              ? (JSON.parse(event.target.value) as [string, string])
              : [null, null];
            change({ harness, model });
          }}
        >
          <option value="">All agents</option>
          {counts.agents.map((one) => (
            <option key={agentName(one)} value={JSON.stringify([one.harness, one.model])}>
              {agentName(one)} ({whole(one.count)})
            </option>
          ))}
        </select>
      )}
      <Search
        label="Find cases by name"
        placeholder="Case"
        value={chosen.search}
        change={(text) => change({ search: text || null })}
      />
      {chosen.case && <Taken what="case" text={chosen.case} drop={() => change({ case: null })} />}
      {chosen.cause && (
        <Taken
          what="cause"
          text={cause?.text ?? chosen.cause}
          drop={() => change({ cause: null })}
        />
      )}
      <span className="soft total">{count(total, "cell")}</span>
    </div>
  );
}

interface CellFiltersProps {
  chosen: Chosen;
  change: (changes: Record<string, string | null>) => void;
  counts: Schemas["CellCounts"];
  total: number;
  causes: Schemas["RunOverview"]["causes"];
}

function Taken({ what, text, drop }: { what: string; text: string; drop: () => void }) {
  return (
    <button type="button" className="taken" onClick={drop} title={text}>
      <span className="soft">{what}</span>
      <span className="clip">{text}</span>
      <span aria-hidden="true">×</span>
      <span className="sr">Take this filter away</span>
    </button>
  );
}
