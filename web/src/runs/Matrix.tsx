import { keepPreviousData } from "@tanstack/react-query";
import { Link } from "react-router";
import { $api, type Schemas } from "../api/client";
import { useAddress } from "../parts/address";
import { Choice } from "../parts/Choice";
import { duration, money, score, whole } from "../parts/figures";
import { Flag, Outcome } from "../parts/Outcome";
import { Badge } from "../parts/Page";
import { Panel } from "../parts/Panel";
import { type Shown, Table } from "../parts/Table";
import { agentName, cellsAddress } from "./names";
import { Parts } from "./RunsPage";

type Case = Schemas["MatrixCase"];
type Leaders = Schemas["RunOverview"]["leaderboard"];

const PART = 50;
const MOST_SHOWN = 12;
const ORDERS = [
  ["case", "By name"],
  ["worst", "Failures first"],
] as const;

/** The matrix of a run, so many cases at a time. */
export function MatrixPanel({ run, leaderboard }: { run: string; leaderboard: Leaders }) {
  const [at, change] = useAddress({ from: 0, matrix: "case" });
  const sort = at.matrix === "worst" ? "worst" : "case";
  const params = { path: { run }, query: { sort, limit: PART, offset: at.from } } as const;
  const { data: matrix } = $api.useQuery(
    "get",
    "/api/v1/runs/{run}/matrix",
    { params },
    {
      placeholderData: keepPreviousData,
      refetchOnWindowFocus: false,
      throwOnError: true,
    },
  );
  const total = matrix?.total ?? 0;
  if (!matrix || total === 0) return null;
  return (
    <Panel
      title="Cases and agents"
      beside={
        <Choice
          label="Order of the cases"
          isInline="hidden"
          value={sort}
          options={ORDERS}
          change={(order) => change({ matrix: order, from: 0 })}
        />
      }
    >
      <Matrix matrix={matrix} leaderboard={leaderboard} />
      <Parts total={total} offset={at.from} size={PART} go={(from) => change({ from })} />
    </Panel>
  );
}

/** Cases by agents; the best agent comes first. A cell opens its trials. */
export function Matrix({ matrix, leaderboard }: MatrixProps) {
  const places = new Map(leaderboard.map((row, place) => [agentName(row), place]));
  const placeOf = (agent: Schemas["AgentName"]) => places.get(agentName(agent)) ?? 0;
  const agents = matrix.agents
    .map((agent, at) => ({ agent, at }))
    .sort((a, b) => placeOf(a.agent) - placeOf(b.agent));
  const columns: Shown<Case>[] = agents.map(({ agent, at }) => ({
    name: agentName(agent),
    show: ({ case: name, cells }) => {
      const cell = cells[at];
      if (!cell) return <span className="text-soft">no result</span>;
      const { harness, model } = agent;
      return (
        <Trials
          cell={cell}
          label={`${name}, ${agentName(agent)}`}
          to={cellsAddress({ case: name, harness, model })}
        />
      );
    },
  }));
  const first: Shown<Case> = {
    name: "Case",
    kind: "name",
    show: ({ case: name }) => <Link to={cellsAddress({ case: name })}>{name}</Link>,
  };
  return (
    <Table
      label="Cases and agents"
      columns={[first, ...columns]}
      items={matrix.items}
      keyOf={(one) => one.case}
    />
  );
}

interface MatrixProps {
  matrix: Schemas["RunMatrix"];
  leaderboard: Leaders;
}

type Cell = NonNullable<Case["cells"][number]>;

/** The trials of one case by one agent: how many passed, the mean reward, and each of them. */
function Trials({ cell, label, to }: { cell: Cell; label: string; to: string }) {
  const { totals } = cell;
  const cost = totals.cost_usd === null ? "unknown cost" : money(totals.cost_usd);
  return (
    <Link
      to={to}
      title={label}
      className="trials -mx-2 -my-1.5 grid min-w-40 gap-1 rounded-md px-2 py-1.5 text-ink no-underline hover:bg-fill"
    >
      <span className="sr-only">{label}: </span>
      <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <b className="font-semibold tabular-nums">{score(totals.reward.mean)}</b>
        <span className="flex gap-0.5">
          {cell.ended.slice(0, MOST_SHOWN).map((state, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a trial has no name but its place
            <Outcome key={at} state={state} />
          ))}
          {totals.total > MOST_SHOWN && (
            <span className="text-soft">+{whole(totals.total - MOST_SHOWN)}</span>
          )}
        </span>
        {cell.flaky && <Badge>flaky</Badge>}
        {totals.flagged > 0 && <Flag text={whole(totals.flagged)} />}
        {cell.mixed && <Badge>≠ graders</Badge>}
      </span>
      <span className="text-sm text-soft tabular-nums">
        {totals.has_verdicts
          ? `${whole(totals.ends.passed)} of ${whole(totals.graded)} passed`
          : `${whole(totals.graded)} scored`}
        {totals.ends.errors > 0 && ` · ${whole(totals.ends.errors)} not graded`} · {cost} ·{" "}
        {duration(totals.seconds)}
      </span>
    </Link>
  );
}
