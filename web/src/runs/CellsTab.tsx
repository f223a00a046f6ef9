import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Schemas } from "../api/client";
import { Empty } from "../parts/Empty";
import { count } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import { CellFilters } from "./CellFilters";
import { CellsTable, cellPart, PART } from "./CellsTable";
import { queryOf, useChosen } from "./chosen";

/** The cells of a run. While it goes on, what somebody looks at stays until they ask for more. */
export function CellsTab({ run, now, causes }: CellsTabProps) {
  const [chosen, change] = useChosen();
  const [round, setRound] = useState(0);
  const query = { ...queryOf(chosen), limit: PART, offset: 0 };
  const first = useQuery({
    queryKey: ["run", run, "cells", query, round],
    queryFn: ({ signal }) => cellPart(run, query, signal),
    placeholderData: keepPreviousData,
    refetchOnWindowFocus: false,
  });
  if (first.error && !first.data) {
    return <ProblemBox problem={first.error} retry={() => first.refetch()} />;
  }
  const found = first.data;
  if (!found) return <Loading what="Loading cells" />;
  const { counts, total } = found;
  if (!counts || total === null) return null; // of a list's beginning both are told
  const fresh = now.total - counts.cells;
  return (
    <div className="cells-tab">
      {first.error && <ProblemBox problem={first.error} retry={() => first.refetch()} />}
      <CellFilters chosen={chosen} change={change} {...{ counts, total, causes }} />
      {fresh > 0 && (
        <button type="button" className="news" onClick={() => setRound(round + 1)}>
          {count(fresh, "new cell")}
        </button>
      )}
      {total > 0 ? (
        <CellsTable
          key={JSON.stringify(queryOf(chosen))}
          run={run}
          chosen={chosen}
          change={change}
          first={found}
          total={total}
        />
      ) : (
        <NoCells isEmpty={counts.cells === 0} />
      )}
    </div>
  );
}

interface CellsTabProps {
  run: string;
  now: Schemas["RunRow"];
  causes: Schemas["RunOverview"]["causes"];
}

function NoCells({ isEmpty }: { isEmpty: boolean }) {
  if (isEmpty) return <Empty title="No cell has a result yet" />;
  return (
    <Empty title="No cell is like that">
      <p>Take a filter away, above.</p>
    </Empty>
  );
}
