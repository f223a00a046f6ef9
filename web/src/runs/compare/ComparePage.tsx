import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { useSearchParams } from "react-router";
import { api, ask, type Schemas } from "../../api/client";
import { Command } from "../../parts/Command";
import { CopyText } from "../../parts/CopyText";
import { Empty } from "../../parts/Empty";
import { moment } from "../../parts/figures";
import { Loading } from "../../parts/Loading";
import { ProblemBox } from "../../parts/ProblemBox";
import { Search } from "../../parts/Search";
import { usePageTitle } from "../../parts/title";
import { suiteName } from "../names";
import { Comparison } from "./Comparison";
import { type Asked, commandOf, markdownOf } from "./copies";
import "./compare.css";

const NAMES = ["a", "b", "a_harness", "a_model", "b_harness", "b_model"] as const;

/** Two runs, or two agents of one, compared: `/compare?a=RUN&b=RUN`. */
export default function ComparePage() {
  usePageTitle("Compare");
  const [query, setQuery] = useSearchParams();
  const asked = Object.fromEntries(
    NAMES.map((name) => [name, query.get(name) ?? ""]),
  ) as unknown as Asked;
  const change = (changes: Record<string, string>) =>
    setQuery(
      (old) => {
        const next = new URLSearchParams(old);
        for (const [name, value] of Object.entries(changes)) {
          if (value) next.set(name, value);
          else next.delete(name);
        }
        return next;
      },
      { replace: "q" in changes },
    );
  const runs = useQuery({
    queryKey: ["runs", "newest"],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/runs", { params: { query: { limit: 50 } }, signal })),
  });
  const swap = () => {
    const { a, b, a_harness, a_model, b_harness, b_model } = asked;
    change({
      a: b || a,
      b: a,
      a_harness: b_harness,
      b_harness: a_harness,
      a_model: b_model,
      b_model: a_model,
    });
  };
  const known = runs.data?.items ?? [];
  const isSame = !asked.b || asked.b === asked.a;
  const isApart = !isSame || asked.a_harness !== asked.b_harness || asked.a_model !== asked.b_model;
  return (
    <div className="page">
      <div className="page-head">
        <h1>Compare</h1>
      </div>
      <div className="panel compare-sides">
        <SideForm name="Before" side="a" asked={asked} runs={known} onChange={change} />
        <button type="button" onClick={swap} disabled={!asked.a} title="Exchange both sides">
          ⇄ Swap
        </button>
        <SideForm name="After" side="b" asked={asked} runs={known} onChange={change} />
      </div>
      {asked.a && isApart ? (
        <Compared asked={asked} query={query} onChange={change} />
      ) : (
        <Start runs={known} isLoaded={runs.isSuccess} asked={asked} onChange={change} />
      )}
    </div>
  );
}

type Change = (changes: Record<string, string>) => void;
type Run = Schemas["RunRow"];

interface SideFormProps {
  name: string;
  side: "a" | "b";
  asked: Asked;
  runs: readonly Run[];
  onChange: Change;
}

/** One side: the run, and if it has several agents, which of them. */
function SideForm({ name, side, asked, runs, onChange }: SideFormProps) {
  const list = useId();
  const own = asked[side];
  const run = own || asked.a;
  const agents = useQuery({
    queryKey: ["run", run, "agents"],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/runs/{run}/agents", { params: { path: { run } }, signal })),
    enabled: run !== "",
    retry: false,
  });
  const found = agents.data?.agents ?? [];
  return (
    <fieldset className="side">
      <legend>{name}</legend>
      <label>
        <span>Run</span>
        <input
          key={own}
          list={list}
          defaultValue={own}
          placeholder={side === "b" && asked.a ? "the same run" : "id, label or latest"}
          spellCheck={false}
          onBlur={(event) => onChange({ [side]: event.target.value.trim() })}
          onKeyDown={(event) => {
            if (event.key === "Enter") onChange({ [side]: event.currentTarget.value.trim() });
          }}
        />
      </label>
      <datalist id={list}>
        {runs.map((one) => (
          <option key={one.id} value={one.id}>
            {[one.label || suiteName(one.suite), moment(one.created_at)]
              .filter(Boolean)
              .join(" · ")}
          </option>
        ))}
      </datalist>
      {(["harness", "model"] as const).map((part) => (
        <PartPick
          key={part}
          part={part}
          names={[...new Set(found.map((agent) => agent[part]))].filter(Boolean)}
          value={asked[`${side}_${part}`]}
          onPick={(value) => onChange({ [`${side}_${part}`]: value })}
        />
      ))}
    </fieldset>
  );
}

interface PartPickProps {
  part: string;
  names: readonly string[];
  value: string;
  onPick: (value: string) => void;
}

function PartPick({ part, names, value, onPick }: PartPickProps) {
  if (names.length < 2 && !value) return null;
  return (
    <label>
      <span>{part === "model" ? "Model" : "Harness"}</span>
      <select value={value} onChange={(event) => onPick(event.target.value)}>
        <option value="">all</option>
        {(names.includes(value) || !value ? names : [...names, value]).map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}

function Start({ runs, isLoaded, asked, onChange }: StartProps) {
  if (!isLoaded) return <Loading />;
  const chosen = runs.findIndex((run) => run.id === asked.b);
  const [newest, before] = runs.slice(Math.max(0, chosen));
  if (asked.a) {
    return (
      <p className="soft">
        Choose another run for one of the sides, or another harness or model of the same one.
      </p>
    );
  }
  if (!newest || !before) {
    return (
      <Empty
        title={
          newest ? "There is one run, and nothing to compare it with" : "There are no runs yet"
        }
        command={newest ? "assay compare latest --model A --model B" : "assay demo"}
      >
        <p>
          Two runs of the same cases are compared here, or two agents of one run:{" "}
          {newest ? "name it on both sides, and choose an agent for each." : "make some first."}
        </p>
      </Empty>
    );
  }
  return (
    <div className="empty">
      <h2>{asked.b ? "Compare it with which?" : "Which two?"}</h2>
      <p>Type an id or a label above, or begin with the newest.</p>
      <button
        type="button"
        className="primary"
        onClick={() => onChange({ a: before.id, b: asked.b || newest.id })}
      >
        {asked.b ? "Compare with the run before it" : "Compare the two newest"}
      </button>
    </div>
  );
}

interface StartProps {
  runs: readonly Run[];
  isLoaded: boolean;
  asked: Asked;
  onChange: Change;
}

function Compared({ asked, query, onChange }: ComparedProps) {
  const sides = {
    before: asked.a,
    ...(asked.b && { after: asked.b }),
    ...(asked.a_harness && { before_harness: asked.a_harness }),
    ...(asked.a_model && { before_model: asked.a_model }),
    ...(asked.b_harness && { after_harness: asked.b_harness }),
    ...(asked.b_model && { after_model: asked.b_model }),
  };
  const found = useQuery({
    queryKey: ["compare", sides],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/compare", { params: { query: sides }, signal })),
  });
  if (found.error) return <ProblemBox problem={found.error} retry={() => found.refetch()} />;
  if (!found.data) return <Loading what="Comparing" />;
  const withUnchanged = query.get("all") === "1";
  return (
    <>
      <div className="spread compare-bar">
        <span className="row">
          <Search
            label="Find cases by name"
            placeholder="Filter cases"
            value={query.get("q") ?? ""}
            change={(text) => onChange({ q: text })}
          />
          <label className="row check">
            <input
              key={String(withUnchanged)}
              type="checkbox"
              defaultChecked={!withUnchanged}
              onChange={(event) => onChange({ all: event.target.checked ? "" : "1" })}
            />
            only changed
          </label>
        </span>
        <span className="row">
          <Command text={commandOf(asked, found.data)} />
          <CopyText name="Copy as Markdown" text={() => markdownOf(found.data)} />
        </span>
      </div>
      <Comparison
        found={found.data}
        cases={{ text: query.get("q") ?? "", withUnchanged, hasPages: true }}
      />
    </>
  );
}

interface ComparedProps {
  asked: Asked;
  query: URLSearchParams;
  onChange: Change;
}
