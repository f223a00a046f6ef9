import { useId } from "react";
import { $api, type Schemas } from "../../api/client";
import { useAddress } from "../../parts/address";
import { Button } from "../../parts/Button";
import { Choice } from "../../parts/Choice";
import { Command } from "../../parts/Command";
import { CopyText } from "../../parts/CopyText";
import { Empty } from "../../parts/Empty";
import { INPUT } from "../../parts/Field";
import { moment } from "../../parts/figures";
import { Loading } from "../../parts/Loading";
import { Page } from "../../parts/Page";
import { Boundary } from "../../parts/Panel";
import { Search } from "../../parts/Search";
import { FieldChoice, useFields } from "../ByField";
import { runName } from "../names";
import { Comparison } from "./Comparison";
import { type Asked, commandOf, markdownOf } from "./copies";

const USUAL = {
  a: "",
  b: "",
  a_harness: "",
  a_model: "",
  b_harness: "",
  b_model: "",
  by: "",
  q: "",
  all: false,
};

type At = typeof USUAL;
type Change = (changes: Partial<At>) => void;
type Run = Schemas["RunRow"];

/** Two runs, or two agents of one, compared: `/compare?a=RUN&b=RUN`. */
export default function ComparePage() {
  const [at, set] = useAddress(USUAL);
  const change: Change = (changes) => set(changes, { isStep: !("q" in changes) });
  const runs = $api.useQuery("get", "/api/v1/runs", { params: { query: { limit: 50 } } });
  const known = runs.data?.items ?? [];
  const isSame = !at.b || at.b === at.a;
  const isApart = !isSame || at.a_harness !== at.b_harness || at.a_model !== at.b_model;
  const swap = () =>
    change({
      a: at.b || at.a,
      b: at.a,
      a_harness: at.b_harness,
      b_harness: at.a_harness,
      a_model: at.b_model,
      b_model: at.a_model,
    });
  return (
    <Page title="Compare">
      <div className="mb-6 grid grid-cols-2 items-start gap-4 md:flex md:flex-wrap md:items-end">
        <SideForm name="Before" side="a" at={at} runs={known} change={change} />
        <span className="max-md:order-last">
          <Button onPress={swap} isDisabled={!at.a} aria-label="Swap">
            ⇄ Swap
          </Button>
        </span>
        <SideForm name="After" side="b" at={at} runs={known} change={change} />
      </div>
      {at.a && isApart ? (
        <Boundary place={JSON.stringify(at)} what="Comparing">
          <Compared at={at} change={change} />
        </Boundary>
      ) : (
        <Start runs={known} isLoaded={runs.isSuccess} at={at} change={change} />
      )}
    </Page>
  );
}

interface SideFormProps {
  name: string;
  side: "a" | "b";
  at: At;
  runs: readonly Run[];
  change: Change;
}

/** One side: the run, and if it has several agents, which of them. */
function SideForm({ name, side, at, runs, change }: SideFormProps) {
  const [id, list] = [useId(), useId()];
  const own = at[side];
  const run = own || at.a;
  const agents = $api.useQuery(
    "get",
    "/api/v1/runs/{run}/agents",
    { params: { path: { run } } },
    { enabled: run !== "", retry: false },
  );
  const found = agents.data?.agents ?? [];
  return (
    <fieldset className="m-0 flex min-w-0 border-0 p-0 flex-[1_1_280px] flex-wrap items-end gap-3">
      <legend className="mb-1 font-medium">{name}</legend>
      <label htmlFor={id} className="sr-only">
        Run
      </label>
      <input
        key={own}
        id={id}
        list={list}
        defaultValue={own}
        placeholder={side === "b" && at.a ? "the same run" : "id, label or latest"}
        spellCheck={false}
        onBlur={(event) => change({ [side]: event.target.value.trim() })}
        onKeyDown={(event) => {
          if (event.key === "Enter") change({ [side]: event.currentTarget.value.trim() });
        }}
        className={`${INPUT} flex-[1_1_200px]`}
      />
      <datalist id={list}>
        {runs.map((one) => (
          <option key={one.id} value={one.id}>
            {`${runName(one)} · ${moment(one.created_at)}`}
          </option>
        ))}
      </datalist>
      {(["harness", "model"] as const).map((part) => {
        const value = at[`${side}_${part}`];
        const names = [...new Set([...found.map((agent) => agent[part]), value])].filter(Boolean);
        if (names.length < 2 && !value) return null;
        return (
          <Choice
            key={part}
            label={part === "model" ? "Model" : "Harness"}
            isInline
            value={value}
            options={[["", "all"], ...names.map((one) => [one, one] as const)]}
            change={(chosen) => change({ [`${side}_${part}`]: chosen })}
          />
        );
      })}
    </fieldset>
  );
}

interface StartProps {
  runs: readonly Run[];
  isLoaded: boolean;
  at: At;
  change: Change;
}

function Start({ runs, isLoaded, at, change }: StartProps) {
  if (!isLoaded) return <Loading />;
  const chosen = runs.findIndex((run) => run.id === at.b);
  const [newest, before] = runs.slice(Math.max(0, chosen));
  if (at.a) {
    return (
      <p className="text-soft">
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
    <Empty title={at.b ? "Compare it with which?" : "Which two?"}>
      <p>
        Of two runs of the same cases: whether one is better by more than chance would explain, what
        it costs, and which cases changed. Type an id or a label above, or begin with the newest.
      </p>
      <Button tone="primary" onPress={() => change({ a: before.id, b: at.b || newest.id })}>
        {at.b ? "Compare with the run before it" : "Compare the two newest"}
      </Button>
    </Empty>
  );
}

/** What is asked, without what is not. */
function sidesOf({ a, b, a_harness, a_model, b_harness, b_model, by }: Asked) {
  return {
    before: a,
    by,
    ...(b && { after: b }),
    ...(a_harness && { before_harness: a_harness }),
    ...(a_model && { before_model: a_model }),
    ...(b_harness && { after_harness: b_harness }),
    ...(b_model && { after_model: b_model }),
  };
}

function Compared({ at, change }: { at: At; change: Change }) {
  const init = { params: { query: sidesOf(at) } };
  const { data: found } = $api.useSuspenseQuery("get", "/api/v1/compare", init);
  const fields = useFields(at.b || at.a, at.by);
  return (
    <Comparison
      found={found}
      beside={
        <span className="flex flex-wrap items-center gap-2">
          {fields.length > 0 && (
            <FieldChoice fields={fields} by={at.by} choose={(by) => change({ by })} />
          )}
          <Command text={commandOf(at, found)} />
          <CopyText name="Copy as Markdown" text={() => markdownOf(found)} />
        </span>
      }
      cases={{ text: at.q, withUnchanged: at.all, hasPages: true }}
    >
      <div className="mb-4 flex flex-wrap items-center gap-x-4 gap-y-2">
        <Search
          label="Find cases by name"
          placeholder="Filter cases"
          value={at.q}
          change={(q) => change({ q })}
        />
        <label className="flex min-h-8 items-center gap-2">
          <input
            type="checkbox"
            checked={!at.all}
            onChange={(event) => change({ all: !event.target.checked })}
          />
          only changed
        </label>
      </div>
    </Comparison>
  );
}
