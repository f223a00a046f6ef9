import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { useNavigate } from "react-router";
import { $api } from "../api/client";
import { useMay } from "../api/me";
import { useAddress } from "../parts/address";
import { Button, ButtonLink } from "../parts/Button";
import { Choice } from "../parts/Choice";
import { Empty } from "../parts/Empty";
import { count, money, whole } from "../parts/figures";
import { Boundary, Panel } from "../parts/Panel";
import { ProblemBox } from "../parts/ProblemBox";
import { Progress } from "../parts/Progress";
import { TextField } from "../parts/TextField";
import { type Asked, useCalibration } from "./calibrating";
import { useSets } from "./sets";

const REPEATS = [1, 2, 3, 5, 10];

/** Measures a stored grader on people's labels; says first what that asks and costs. */
export function CalibrationStart({ project }: { project: string }) {
  const [given, change] = useAddress({
    grader: "",
    field: "",
    repeats: 1,
    attacks: "",
    levels: "",
  });
  const graders = $api.useSuspenseQuery("get", "/api/v1/projects/{project}/graders", {
    params: { path: { project }, query: { limit: 200 } },
  }).data.items;
  const sets = useSets(project);
  if (graders.length === 0) {
    return <Empty title="There is no stored grader to calibrate" command="assay graders --help" />;
  }
  if (sets.length === 0) {
    const asked = new URLSearchParams({ goal: "20", grader: given.grader });
    return (
      <Empty
        title="There are no labels to calibrate on"
        command="assay calibrate label answers.jsonl"
      >
        <ButtonLink to={`/p/${project}/labels/queue?${asked}`}>Label 20 examples</ButtonLink>
      </Empty>
    );
  }
  const keys = graders.map((one) => one.key);
  const fields = sets.map((one) => one.field);
  const asked: Asked = {
    grader: known(given.grader, keys),
    field: known(given.field, fields),
    repeats: Math.min(10, Math.max(1, Math.trunc(given.repeats))),
    attacks: given.attacks !== "",
    levels: given.levels,
  };
  return (
    <Panel title="Calibrate a grader">
      <div className="grid max-w-3xl gap-5">
        <div className="grid gap-4 sm:grid-cols-2">
          <Choice
            label="Grader"
            value={asked.grader}
            options={graders.map(({ key, latest }) => [key, `${key} (version ${latest.number})`])}
            change={(grader) => change({ grader })}
          />
          <Choice
            label="Labels"
            value={asked.field}
            options={sets.map(({ field, items }) => [field, `${field} (${count(items, "item")})`])}
            change={(field) => change({ field })}
          />
          <Choice
            label="Ask each row"
            value={String(asked.repeats)}
            options={REPEATS.map((times) => [
              String(times),
              times === 1 ? "once" : `${times} times`,
            ])}
            change={(repeats) => change({ repeats: Number(repeats) })}
          />
          <TextField
            label="Levels, lowest first"
            value={given.levels}
            placeholder="such as 1,2,3,4,5"
            change={(levels) => change({ levels })}
          />
        </div>
        <label className="flex min-h-8 items-center gap-2">
          <input
            type="checkbox"
            checked={asked.attacks}
            onChange={({ target }) => change({ attacks: target.checked ? "1" : "" })}
          />
          Also play attacks on failing answers
        </label>
        <Boundary what="Counting what would be asked" place={JSON.stringify(asked)}>
          <Planned key={JSON.stringify(asked)} project={project} asked={asked} />
        </Boundary>
      </div>
    </Panel>
  );
}

function known(asked: string, all: readonly string[]): string {
  return all.includes(asked) ? asked : (all[0] ?? "");
}

function Planned({ project, asked }: { project: string; asked: Asked }) {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const may = useMay("editor", project);
  const { work, isRunning, problem, start, stop, forget } = useCalibration(project, asked);
  const card = work?.card;
  useEffect(() => {
    if (!card) return;
    forget();
    const queryKey = ["get", "/api/v1/projects/{project}/calibrations"];
    void queries.invalidateQueries({ queryKey });
    navigate(`/p/${project}/calibrations/${card}`);
  }, [card, forget, project, navigate, queries]);
  const plan = $api.useSuspenseQuery(
    "get",
    "/api/v1/projects/{project}/calibrations/plan",
    { params: { path: { project }, query: asked } },
    { retry: false },
  ).data;
  const { judgements, rows, models, usd, usd_from } = plan;
  const done = work?.done ?? plan.done;
  return (
    <div className="grid gap-3">
      <p className="m-0">
        <strong className="font-semibold">{count(judgements, "judgement")}</strong> of{" "}
        {count(rows, "labelled row")}
        {models.length > 0
          ? `, by ${models.join(", ")}. `
          : ". This grader asks no model: it costs nothing."}
        {models.length > 0 &&
          (usd === null
            ? "The cost is unknown: no card of this grader has a price yet."
            : `About ${money(usd)}, at the price of card ${usd_from}.`)}
      </p>
      {problem && <ProblemBox problem={problem} />}
      <div className="flex flex-wrap items-center gap-3">
        {isRunning ? (
          <Button onPress={stop}>Stop after this stretch</Button>
        ) : (
          <Button tone="primary" isDisabled={!may} onPress={start}>
            {done > 0 ? "Go on" : "Calibrate"}
          </Button>
        )}
        {(isRunning || done > 0) && (
          <>
            <span className="w-40">
              <Progress done={done} total={judgements} noun="judged" />
            </span>
            <span role="status" className="tabular-nums">
              {whole(done)} of {whole(judgements)} judged
              {work && work.errors > 0 && `, ${whole(work.errors)} could not be`}
              {work && work.usd !== null && `, ${money(work.unknown ? null : work.usd)} spent`}
            </span>
          </>
        )}
        <span className="text-soft">
          {may
            ? "It goes on while this tab is open. What was judged is kept for later."
            : "Calibrating needs a key of the role editor."}
        </span>
      </div>
    </div>
  );
}
