import { keepPreviousData } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Link, useNavigate } from "react-router";
import { $api, api, ask, type Schemas } from "../api/client";
import type { Change } from "../parts/address";
import { Empty } from "../parts/Empty";
import { count, duration, money, score, whole } from "../parts/figures";
import { type Column, Grid } from "../parts/Grid";
import { Flag, Outcome } from "../parts/Outcome";
import { Badge } from "../parts/Page";
import { ProblemBox } from "../parts/ProblemBox";
import { CellFilters } from "./CellFilters";
import { type Chosen, queryOf, type Sort, useChosen } from "./chosen";
import { agentName, cellAddress } from "./names";
import { News } from "./RunsPage";

type CellRow = Schemas["CellRow"];

/** Cells that are asked for at a time. */
const PART = 100;

/** The cells of a run. While it goes on, what somebody looks at stays until they ask for more. */
export function CellsTab({ run, now, causes }: CellsTabProps) {
  const [chosen, change, at, keep] = useChosen();
  const params = { path: { run }, query: { ...queryOf(chosen), limit: PART, offset: 0 } };
  const first = $api.useQuery(
    "get",
    "/api/v1/runs/{run}/cells",
    { params },
    {
      placeholderData: keepPreviousData,
      refetchOnWindowFocus: false,
      throwOnError: (_, query) => query.state.data === undefined,
    },
  );
  const { counts, total } = first.data ?? {};
  if (!first.data || !counts || total === null || total === undefined) return null;
  const fresh = now.total - counts.cells;
  return (
    <>
      {first.error && <ProblemBox problem={first.error} retry={() => first.refetch()} />}
      <CellFilters chosen={chosen} change={change} {...{ counts, total, causes }} />
      {fresh > 0 && <News press={() => void first.refetch()}>{count(fresh, "new cell")}</News>}
      {total > 0 ? (
        <Cells
          key={JSON.stringify(queryOf(chosen))}
          run={run}
          chosen={chosen}
          change={change}
          at={at}
          keep={keep}
          first={first.data}
          total={total}
        />
      ) : (
        <Empty title={counts.cells === 0 ? "No cell has a result yet" : "No cell is like that"}>
          <p>
            {counts.cells === 0
              ? "Cells appear here as they are graded."
              : "Take a filter away, above."}
          </p>
        </Empty>
      )}
    </>
  );
}

interface CellsTabProps {
  run: string;
  now: Schemas["RunRow"];
  causes: Schemas["RunOverview"]["causes"];
}

/** All cells that suit: as many rows as fit are there, whatever their number. */
function Cells({ run, chosen, change, at, keep, first, total }: CellsProps) {
  const navigate = useNavigate();
  const columns = useMemo(() => columnsOf(run), [run]);
  const [place, setPlace] = useState(Math.min(at, total - 1));
  const sort = (by: Sort) => {
    const isSame = chosen.sort === by;
    const descending = isSame ? !chosen.descending : by !== "case" && by !== "trial";
    change({ sort: by, descending });
  };
  return (
    <Grid<CellRow>
      label="Cells; j and k go on and back, Enter opens"
      name={["cells", run, queryOf(chosen), first.last]}
      total={total}
      size={PART}
      first={first.items}
      fresh={Number.POSITIVE_INFINITY}
      load={(wanted, signal) =>
        ask(
          api.GET("/api/v1/runs/{run}/cells", {
            signal,
            params: {
              path: { run },
              query: { ...queryOf(chosen), until: first.last, ...wanted },
            },
          }),
        )
      }
      columns={columns}
      chosen={place}
      choose={setPlace}
      open={(index, cell) => {
        keep(index); // so that the way back leads to the same row
        window.setTimeout(() => navigate(cellAddress(run, cell)));
      }}
      sorting={{
        by: chosen.sort,
        isDescending: chosen.descending,
        change: (by) => sort(by as Sort),
      }}
      lookOf={(cell) => (cell.flag_count > 0 ? "shadow-[inset_3px_0_0_var(--color-flag)]" : "")}
    />
  );
}

interface CellsProps {
  run: string;
  chosen: Chosen;
  change: Change<Chosen>;
  at: number;
  keep: (row: number) => void;
  first: Schemas["CellPage"];
  total: number;
}

function columnsOf(run: string): Column<CellRow>[] {
  return [
    {
      name: "Case",
      track: "minmax(112px, 2fr)",
      sort: "case",
      show: (cell) => (
        <Link to={cellAddress(run, cell)} tabIndex={-1} title={cell.case}>
          {cell.case}
        </Link>
      ),
    },
    {
      name: "Outcome",
      track: "84px",
      sort: "reward",
      show: (cell) => (
        <span
          title={[`passes at ${score(cell.threshold)}`, cell.assurance].filter(Boolean).join("; ")}
        >
          <Outcome
            state={cell.ended}
            text={cell.reward === null ? cell.ended : score(cell.reward)}
          />
          <span className="sr-only"> {cell.ended}</span>
        </span>
      ),
    },
    { name: "Why", track: "minmax(110px, 3fr)", show: (cell) => <Why cell={cell} /> },
    {
      name: "Agent",
      track: "minmax(110px, 1.3fr)",
      from: "md",
      show: (cell) => <span title={agentName(cell)}>{agentName(cell)}</span>,
    },
    {
      name: "Trial",
      track: "48px",
      kind: "number",
      from: "md",
      sort: "trial",
      show: (cell) => cell.trial,
    },
    {
      name: "Cost",
      track: "80px",
      kind: "number",
      from: "md",
      sort: "cost",
      show: (cell) => (isUnknown(cell, cell.cost_usd) ? "–" : money(cell.cost_usd)),
    },
    {
      name: "Tokens",
      track: "80px",
      kind: "number",
      from: "md",
      sort: "tokens",
      show: (cell) =>
        cell.tokens === null
          ? isUnknown(cell, cell.tokens)
            ? "–"
            : "unknown"
          : whole(cell.tokens),
    },
    {
      name: "Time",
      track: "84px",
      kind: "number",
      from: "md",
      sort: "seconds",
      show: (cell) => duration(cell.seconds),
    },
  ];
}

/** Whether nothing was spent, as nothing was done. */
function isUnknown(cell: CellRow, spent: number | null): boolean {
  return cell.ended === "skipped" && spent === null;
}

function Why({ cell }: { cell: CellRow }) {
  return (
    <span title={[...cell.flags, cell.why].join("\n")}>
      {cell.flag_count > 0 && (
        <>
          <Flag text={cell.flag_count > 1 ? whole(cell.flag_count) : ""} />
          <span className="sr-only">flagged</span>{" "}
        </>
      )}
      {cell.held && <Badge>waits for review</Badge>}
      {cell.ruling && <Badge>decided: {cell.ruling}</Badge>}
      <span className={cell.ended === "pass" || cell.ended === "skipped" ? "text-soft" : ""}>
        {" "}
        {cell.why || cell.flags[0]}
      </span>
    </span>
  );
}
