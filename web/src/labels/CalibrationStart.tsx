import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { Link, useNavigate, useSearchParams } from "react-router";
import { api, ask } from "../api/client";
import { useMay } from "../api/me";
import { Empty } from "../parts/Empty";
import { count, money, whole } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import { type Asked, calibrate, forget, nameOf, stop, useRunning } from "./calibrating";

/** Measures a stored grader on people's labels; says first what that asks and costs. */
export function CalibrationStart({ project }: { project: string }) {
  const [search, setSearch] = useSearchParams();
  const graders = useQuery({
    queryKey: ["graders", project, "to calibrate"],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/graders", {
          params: { path: { project }, query: { limit: 200 } },
          signal,
        }),
      ),
  });
  const sets = useQuery({
    queryKey: ["labels", project],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/projects/{project}/labels", { params: { path: { project } }, signal })),
  });
  const error = graders.error ?? sets.error;
  if (error) return <ProblemBox problem={error} />;
  if (!graders.data || !sets.data) return <Loading />;
  const keys = graders.data.items.map((one) => one.key);
  const fields = sets.data.items.map((one) => one.field);
  if (keys.length === 0) {
    return <Empty title="There is no stored grader to calibrate" command="assay graders --help" />;
  }
  if (fields.length === 0) {
    const asked = new URLSearchParams({ goal: "20", grader: search.get("grader") ?? "" });
    return (
      <Empty
        title="There are no labels to calibrate on"
        command="assay calibrate label answers.jsonl"
      >
        <p>
          <Link className="button primary" to={`/p/${project}/labels/queue?${asked}`}>
            Label 20 examples
          </Link>
        </p>
      </Empty>
    );
  }
  const pick = (name: string, from: string[]) => {
    const asked = search.get(name) ?? "";
    return from.includes(asked) ? asked : (from[0] ?? "");
  };
  const change = (name: string, value: string) => {
    const next = new URLSearchParams(search);
    if (value) next.set(name, value);
    else next.delete(name);
    setSearch(next, { replace: true });
  };
  const asked: Asked = {
    grader: pick("grader", keys),
    field: pick("field", fields),
    repeats: Math.min(10, Math.max(1, Math.trunc(Number(search.get("repeats")) || 1))),
    attacks: search.has("attacks"),
    levels: search.get("levels") ?? "",
  };
  return (
    <section className="panel stack start" aria-label="Calibrate a grader">
      <div className="row fields">
        <label>
          <span>Grader</span>
          <select value={asked.grader} onChange={({ target }) => change("grader", target.value)}>
            {keys.map((key) => (
              <option key={key}>{key}</option>
            ))}
          </select>
        </label>
        <label>
          <span>Labels</span>
          <select value={asked.field} onChange={({ target }) => change("field", target.value)}>
            {sets.data.items.map(({ field, items }) => (
              <option key={field} value={field}>
                {field} ({count(items, "item")})
              </option>
            ))}
          </select>
        </label>
        <label>
          <span>Ask each row</span>
          <select
            value={asked.repeats}
            onChange={({ target }) => change("repeats", target.value === "1" ? "" : target.value)}
          >
            {[1, 2, 3, 5, 10].map((times) => (
              <option key={times} value={times}>
                {times === 1 ? "once" : `${times} times`}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span>Levels, lowest first</span>
          <input
            value={asked.levels}
            placeholder="such as 1,2,3,4,5"
            onChange={({ target }) => change("levels", target.value)}
          />
        </label>
      </div>
      <label className="check">
        <input
          type="checkbox"
          checked={asked.attacks}
          onChange={({ target }) => change("attacks", target.checked ? "1" : "")}
        />
        Also play attacks on failing answers
      </label>
      <Planned key={JSON.stringify(asked)} project={project} asked={asked} />
    </section>
  );
}

function Planned({ project, asked }: { project: string; asked: Asked }) {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const may = useMay("editor", project);
  const name = nameOf(project, asked);
  const running = useRunning(name);
  const { work = null, isRunning = false, problem = null } = running ?? {};
  const card = work?.card;
  useEffect(() => {
    if (!card) return;
    forget(name);
    void queries.invalidateQueries({ queryKey: ["calibrations", project] });
    navigate(`/p/${project}/calibrations/${card}`);
  }, [card, name, project, navigate, queries]);
  const plan = useQuery({
    queryKey: ["calibration plan", project, asked],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/calibrations/plan", {
          params: { path: { project }, query: asked },
          signal,
        }),
      ),
    retry: false,
  });
  if (plan.error) return <ProblemBox problem={plan.error} />;
  if (!plan.data) return <Loading what="Counting what would be asked" />;
  const { judgements, rows, models, usd, usd_from } = plan.data;
  const done = work?.done ?? plan.data.done;
  return (
    <div className="stack">
      <p>
        <strong>{count(judgements, "judgement")}</strong> of {count(rows, "labelled row")}
        {models.length > 0
          ? `, by ${models.join(", ")}. `
          : ". This grader asks no model: it costs nothing."}
        {models.length > 0 &&
          (usd === null
            ? "The cost is unknown: no card of this grader has a price yet."
            : `About ${money(usd)}, at the price of card ${usd_from}.`)}
      </p>
      {problem && <ProblemBox problem={problem} />}
      <div className="row">
        {isRunning ? (
          <button type="button" onClick={() => stop(project, asked)}>
            Stop after this stretch
          </button>
        ) : (
          <button
            type="button"
            className="primary"
            onClick={() => calibrate(project, asked)}
            disabled={!may}
          >
            {done > 0 ? "Go on" : "Calibrate"}
          </button>
        )}
        {(isRunning || done > 0) && (
          <>
            <progress max={judgements || 1} value={done} aria-label="Judged" />
            <span role="status">
              {whole(done)} of {whole(judgements)} judged
              {work && work.errors > 0 && `, ${whole(work.errors)} could not be`}
              {work && work.usd !== null && `, ${money(work.unknown ? null : work.usd)} spent`}
            </span>
          </>
        )}
        <span className="soft">
          {may
            ? "It goes on while this tab is open. What was judged is kept for later."
            : "Calibrating needs a key of the role editor."}
        </span>
      </div>
    </div>
  );
}
