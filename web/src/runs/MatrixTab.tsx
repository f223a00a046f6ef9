import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useSearchParams } from "react-router";
import { api, ask, type Schemas } from "../api/client";
import { whole } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import { Matrix } from "./Matrix";

const PART = 50;

/** The matrix of a run, so many cases at a time. */
export function MatrixTab({ run, leaderboard }: MatrixTabProps) {
  const [address, setAddress] = useSearchParams();
  const offset = Math.max(0, Number(address.get("from")) || 0);
  const sort = address.get("matrix") === "worst" ? "worst" : "case";
  const query = { sort, limit: PART, offset } as const;
  const matrix = useQuery({
    queryKey: ["run", run, "matrix", query],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/runs/{run}/matrix", { signal, params: { path: { run }, query } })),
    placeholderData: keepPreviousData,
    refetchOnWindowFocus: false,
  });
  const go = (from: number, order: string) => {
    const next = new URLSearchParams();
    if (order === "worst") next.set("matrix", order);
    if (from > 0) next.set("from", String(from));
    setAddress(next, { replace: true });
  };
  if (matrix.error) return <ProblemBox problem={matrix.error} retry={() => matrix.refetch()} />;
  if (!matrix.data) return <Loading what="Loading the matrix" />;
  const total = matrix.data.total ?? 0;
  if (total === 0) return null;
  const last = Math.min(total, offset + PART);
  return (
    <section aria-labelledby="matrix">
      <div className="spread">
        <h2 id="matrix">Cases and agents</h2>
        <div className="row">
          <label className="row">
            <span className="sr">Order of the cases</span>
            <select
              value={sort}
              onChange={(event) => {
                go(0, event.target.value);
              }}
            >
              <option value="case">By name</option>
              <option value="worst">Failures first</option>
            </select>
          </label>
          {total > PART && (
            <>
              <button type="button" disabled={!offset} onClick={() => go(offset - PART, sort)}>
                Previous
              </button>
              <span className="soft">
                {whole(offset + 1)} to {whole(last)} of {whole(total)}
              </span>
              <button
                type="button"
                disabled={last >= total}
                onClick={() => go(offset + PART, sort)}
              >
                Next
              </button>
            </>
          )}
        </div>
      </div>
      <Matrix matrix={matrix.data} leaderboard={leaderboard} />
    </section>
  );
}

interface MatrixTabProps {
  run: string;
  leaderboard: Schemas["RunOverview"]["leaderboard"];
}
