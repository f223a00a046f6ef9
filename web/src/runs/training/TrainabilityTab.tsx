import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useSearchParams } from "react-router";
import { api, ask, type Schemas } from "../../api/client";
import { Histogram } from "../../parts/Chart";
import { Empty } from "../../parts/Empty";
import { moment } from "../../parts/figures";
import { IN_FILE } from "../../parts/file";
import { Loading } from "../../parts/Loading";
import { ProblemBox } from "../../parts/ProblemBox";
import { runName } from "../names";
import { Groups } from "./Groups";
import { TimeBars } from "./TimeBars";
import "./training.css";

/** How often a live run is looked at again, in milliseconds: all its cells are read. */
const LIVE_PACE = 10_000;

/** Which of a run's groups of trials would teach a trainer anything. */
export default function TrainabilityTab({ run, isLive }: { run: string; isLive: boolean }) {
  const [address, setAddress] = useSearchParams();
  const floor = address.get("floor") ?? "";
  const found = useQuery({
    queryKey: ["run", run, "trainability", floor],
    queryFn: ({ signal }) => {
      const params = { path: { run }, query: { floor } };
      return ask(api.GET("/api/v1/runs/{run}/trainability", { params, signal }));
    },
    placeholderData: keepPreviousData,
    refetchInterval: isLive && LIVE_PACE,
  });
  const choose = (chosen: string) =>
    setAddress({ tab: "training", ...(chosen && { floor: chosen }) });
  const picker = !IN_FILE && <FloorPick run={run} floor={floor} choose={choose} />;
  if (found.error) {
    return (
      <div className="stack">
        {picker}
        <ProblemBox problem={found.error} retry={() => found.refetch()} />
      </div>
    );
  }
  if (!found.data) return <Loading what="Looking at the groups" />;
  return <Trainability told={found.data}>{picker}</Trainability>;
}

function Trainability({ told, children }: { told: Told; children: React.ReactNode }) {
  if (!told.groups) {
    return <Empty title="No cell has a result yet">What groups would teach stands here.</Empty>;
  }
  const isGraded = told.ungraded < told.cells;
  return (
    <div className="stack training">
      {!isGraded && (
        <Empty title="No cell has a reward">Nothing can be learned from this run.</Empty>
      )}
      {isGraded && told.ends.every((end) => end.groups === 0 || end.name === "too_few") && (
        <Empty title="There is nothing to compare" command="assay run … --trials 8">
          <p>
            A group is the trials of a case by one agent, or the rows with one <code>group</code> (
            <code>assay grade … --map group=FIELD</code>). It teaches only if two of them differ.
          </p>
        </Empty>
      )}
      <section aria-labelledby="groups">
        <div className="spread">
          <h2 id="groups">
            What groups would teach <span className="h2-note">{told.sizes}</span>
          </h2>
          {children}
        </div>
        <Groups ends={told.ends} />
        <dl className="training-lines">
          {told.lines.map((line) => (
            <div key={line.label} className={line.warns ? "warns" : undefined}>
              <dt>{line.label}</dt>
              <dd>{line.text}</dd>
            </div>
          ))}
        </dl>
      </section>
      <div className="training-charts">
        {told.spread !== null && (
          <section aria-labelledby="spreads">
            <h2 id="spreads">
              Spread within groups <span className="h2-note">standard deviation of rewards</span>
            </h2>
            <Histogram bars={told.spreads} what="Groups that teach by spread" />
          </section>
        )}
        {isGraded && (
          <section aria-labelledby="rewards">
            <h2 id="rewards">
              Rewards <span className="h2-note">graded cells</span>
            </h2>
            <Histogram bars={told.rewards} what="Graded cells by reward" />
          </section>
        )}
      </div>
      {told.seconds && (
        <section aria-labelledby="times">
          <h2 id="times">
            Time <span className="h2-note">half are quicker than the mark, 95 % than the bar</span>
          </h2>
          <TimeBars cell={told.seconds} graders={told.graders} />
        </section>
      )}
    </div>
  );
}

type Told = Schemas["Trainability"];

/** Which run does nothing, so that what beats it is told apart. */
function FloorPick({ run, floor, choose }: FloorPickProps) {
  const runs = useQuery({
    queryKey: ["runs", "newest"],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/runs", { params: { query: { limit: 50 } }, signal })),
  });
  const others = (runs.data?.items ?? []).filter((one) => one.id !== run);
  const isListed = !floor || others.some((one) => one.id === floor);
  return (
    <label className="row" title="A run of the same cases in which nothing is done">
      <span>Floor</span>
      <select value={floor} onChange={(event) => choose(event.target.value)}>
        <option value="">none</option>
        {!isListed && <option>{floor}</option>}
        {others.map((one) => (
          <option key={one.id} value={one.id}>
            {runName(one)} · {moment(one.created_at)}
          </option>
        ))}
      </select>
    </label>
  );
}

interface FloorPickProps {
  run: string;
  floor: string;
  choose: (run: string) => void;
}
