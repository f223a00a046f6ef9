import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useSearchParams } from "react-router";
import { api, ask, type Schemas } from "../../api/client";
import { Empty } from "../../parts/Empty";
import { count, whole } from "../../parts/figures";
import { IN_FILE } from "../../parts/file";
import { Loading } from "../../parts/Loading";
import { ProblemBox } from "../../parts/ProblemBox";
import { PairView } from "./PairView";
import { graderPath, ScoreGrid, ScoreNumbers } from "./ScoreGrid";
import "./scores.css";

/** How often the scores of a live run are counted again, in milliseconds: all its cells are read. */
const LIVE_PACE = 10_000;

interface ScoresTabProps {
  run: string;
  isLive?: boolean;
}

/** How the scores of a run lie, and how far two of its graders agree. */
export default function ScoresTab({ run, isLive = false }: ScoresTabProps) {
  const [query, setQuery] = useSearchParams();
  const found = useQuery({
    queryKey: ["run", run, "scores"],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/runs/{run}/scores", { params: { path: { run } }, signal })),
    refetchInterval: isLive && LIVE_PACE,
  });
  const change = (changes: Record<string, string | null>) =>
    setQuery((old) => {
      const next = new URLSearchParams(old);
      for (const [name, value] of Object.entries(changes)) {
        if (value === null) next.delete(name);
        else next.set(name, value);
      }
      return next;
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
  const x = query.get("x");
  const y = query.get("y");
  const pick = (key: string) => {
    if (key === x) change({ x: y, y: null });
    else if (key === y) change({ y: null });
    else if (x === null) change({ x: key });
    else change({ y: key });
  };
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
            onClick={() => change({ view: isTable ? null : "table" })}
          >
            {isTable ? "Show histograms" : "Show as a table"}
          </button>
        </div>
        {isTable ? (
          <ScoreNumbers table={table} />
        ) : (
          <ScoreGrid table={table} picked={[x, y]} {...(!IN_FILE && { onPick: pick })} />
        )}
      </section>
      {!IN_FILE && (
        <section>
          <h2>Two side by side</h2>
          <div className="row pick">
            <Pick mark="A" name="First" value={x} onPick={(key) => change({ x: key })}>
              <Graders table={table} />
            </Pick>
            <Pick mark="B" name="Second" value={y} onPick={(key) => change({ y: key })}>
              <Graders table={table} />
              <optgroup label="What cells took">
                <option value="=seconds">Seconds</option>
                {table.priced > 0 && <option value="=cost_usd">Cost in dollars</option>}
                {table.counted > 0 && <option value="=tokens">Tokens</option>}
              </optgroup>
            </Pick>
          </div>
          {x !== null && y !== null ? (
            <Pair run={run} x={x} y={y} isLive={isLive} />
          ) : (
            <p className="soft">
              Pick two graders above to see where they agree, and read where they do not.
            </p>
          )}
        </section>
      )}
    </div>
  );
}

function Graders({ table }: { table: Schemas["ScoreTable"] }) {
  return table.graders.map((grader) => (
    <option key={grader.key} value={`=${grader.key}`}>
      {graderPath(grader)}
    </option>
  ));
}

function Pick({ mark, name, value, onPick, children }: PickProps) {
  return (
    <label className="row">
      <span className="pick-mark">{mark}</span>
      <span className="sr">{name}</span>
      <select
        // The reward's key is empty, and so is the value of nothing: one of them gets a sign.
        value={value === null ? "" : `=${value}`}
        onChange={(event) => onPick(event.target.value ? event.target.value.slice(1) : null)}
      >
        <option value="">nothing yet</option>
        {children}
      </select>
    </label>
  );
}

interface PickProps {
  mark: string;
  name: string;
  value: string | null;
  onPick: (key: string | null) => void;
  children: React.ReactNode;
}

function Pair({ run, x, y, isLive }: ScoresTabProps & { x: string; y: string }) {
  const found = useQuery({
    queryKey: ["run", run, "scores", x, y],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/runs/{run}/scores/pair", {
          params: { path: { run }, query: { x, y } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
    refetchInterval: isLive === true && LIVE_PACE,
  });
  if (found.error) return <ProblemBox problem={found.error} retry={() => found.refetch()} />;
  if (!found.data) return <Loading what="Comparing scores" />;
  return <PairView pair={found.data} />;
}
