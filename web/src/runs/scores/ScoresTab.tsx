import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "react-router";
import { api, ask } from "../../api/client";
import { Empty } from "../../parts/Empty";
import { count, whole } from "../../parts/figures";
import { Loading } from "../../parts/Loading";
import { ProblemBox } from "../../parts/ProblemBox";
import { ScoreGrid, ScoreNumbers } from "./ScoreGrid";
import "./scores.css";

/** How often the scores of a live run are counted again, in milliseconds: all its cells are read. */
const LIVE_PACE = 10_000;

interface ScoresTabProps {
  run: string;
  isLive?: boolean;
}

/** How the scores of a run lie. */
export default function ScoresTab({ run, isLive = false }: ScoresTabProps) {
  const [query, setQuery] = useSearchParams();
  const found = useQuery({
    queryKey: ["run", run, "scores"],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/runs/{run}/scores", { params: { path: { run } }, signal })),
    refetchInterval: isLive && LIVE_PACE,
  });
  if (found.error) return <ProblemBox problem={found.error} retry={() => found.refetch()} />;
  if (!found.data) return <Loading what="Counting scores" />;
  const table = found.data;
  if (!table.cells) {
    return (
      <Empty title="No cell has a result yet" command={`assay run --resume ${run}`}>
        <p>Histograms stand here once cells were graded.</p>
      </Empty>
    );
  }
  const isTable = query.get("view") === "table";
  return (
    <div className="stack scores">
      <section>
        <div className="spread">
          <h2>
            Scores{" "}
            <span className="h2-note">
              {count(table.cells, "cell")}, {count(table.graders.length - 1, "grader")}
              {table.left_out > 0 && `; ${whole(table.left_out)} with fewer scores are not shown`}
            </span>
          </h2>
          <button
            type="button"
            className="quiet"
            onClick={() => setQuery(shownAs(isTable ? null : "table"))}
          >
            {isTable ? "Show histograms" : "Show as a table"}
          </button>
        </div>
        {isTable ? <ScoreNumbers table={table} /> : <ScoreGrid table={table} />}
      </section>
    </div>
  );
}

function shownAs(view: string | null) {
  return (old: URLSearchParams) => {
    const next = new URLSearchParams(old);
    if (view === null) next.delete("view");
    else next.set("view", view);
    return next;
  };
}
