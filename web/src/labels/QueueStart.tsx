import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useNavigate } from "react-router";
import { api, ask } from "../api/client";
import { useMay, useMe } from "../api/me";
import { Empty } from "../parts/Empty";
import { count } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import type { QueueAddress } from "./QueuePage";

const CLASSES = ["PASS,FAIL,NA", "MET,UNMET,NA", "1,2,3,4,5", "A,B,TIE"];

/** What to label: a dataset or a run, the question, and the classes. */
export function QueueStart({ project, address }: { project: string; address: QueueAddress }) {
  const navigate = useNavigate();
  const me = useMe().data;
  const mayLabel = useMay("editor", project);
  const [given, setGiven] = useState(address);
  const datasets = useQuery({
    queryKey: ["datasets", project],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/datasets", {
          params: { path: { project }, query: { limit: 200 } },
          signal,
        }),
      ),
  });
  const runs = useQuery({
    queryKey: ["runs", "to label"],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/runs", { params: { query: { limit: 50 } }, signal })),
    enabled: project === "default",
    retry: false,
  });
  const error = datasets.error;
  if (error) return <ProblemBox problem={error} retry={() => datasets.refetch()} />;
  if (!datasets.data || runs.isLoading) return <Loading what="Loading datasets" />;
  const stored = datasets.data.items;
  const ran = runs.data?.items ?? [];
  const chosen = given.dataset
    ? `d:${given.dataset}`
    : given.run
      ? `r:${given.run}`
      : stored[0]
        ? `d:${stored[0].key}`
        : ran[0]
          ? `r:${ran[0].id}`
          : "";
  const change = (part: Partial<QueueAddress>) => setGiven({ ...given, ...part });
  const begin = (event: FormEvent) => {
    event.preventDefault();
    const where = chosen.slice(2);
    const asked = {
      ...given,
      dataset: chosen.startsWith("d:") ? where : "",
      run: chosen.startsWith("r:") ? where : "",
    };
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(asked)) {
      if (value) search.set(name, String(value));
    }
    navigate(`/p/${project}/labels/queue?${search}`);
  };
  return (
    <div className="page">
      <div className="page-head">
        <h1>Label answers</h1>
      </div>
      {chosen === "" ? (
        <Empty
          title="There is nothing to label yet"
          command="assay grade answers.jsonl graders.yaml"
        >
          <p>
            Store a dataset of answers on the Data page, or grade a file: the answers of a run can
            be labelled, too.
          </p>
        </Empty>
      ) : (
        <form className="panel stack start" onSubmit={begin}>
          <label>
            <span>Answers</span>
            <select
              value={chosen}
              onChange={({ target }) =>
                change(
                  target.value.startsWith("d:")
                    ? { dataset: target.value.slice(2), run: "" }
                    : { run: target.value.slice(2), dataset: "" },
                )
              }
            >
              {stored.length > 0 && (
                <optgroup label="Datasets">
                  {stored.map(({ key, rows }) => (
                    <option key={key} value={`d:${key}`}>
                      {key} ({count(rows, "row")})
                    </option>
                  ))}
                </optgroup>
              )}
              {ran.length > 0 && (
                <optgroup label="Runs">
                  {ran.map(({ id, label, planned }) => (
                    <option key={id} value={`r:${id}`}>
                      {label || id} ({count(planned, "cell")})
                    </option>
                  ))}
                </optgroup>
              )}
            </select>
          </label>
          <label>
            <span>What is asked of every answer</span>
            <textarea
              rows={2}
              maxLength={2_000}
              value={given.criterion}
              placeholder="The answer names the city."
              onChange={({ target }) => change({ criterion: target.value })}
            />
          </label>
          <div className="row fields">
            <label>
              <span>Classes</span>
              <input
                list="classes"
                required
                value={given.classes}
                onChange={({ target }) => change({ classes: target.value })}
              />
              <datalist id="classes">
                {CLASSES.map((one) => (
                  <option key={one} value={one} />
                ))}
              </datalist>
            </label>
            <label>
              <span>Field</span>
              <input
                required
                maxLength={200}
                value={given.field}
                onChange={({ target }) => change({ field: target.value })}
              />
            </label>
            <label>
              <span>Random order</span>
              <input
                type="number"
                min={0}
                max={2_147_483_647}
                value={given.seed}
                onChange={({ target }) => change({ seed: Number(target.value) })}
              />
            </label>
            {me?.id === "local" && (
              <label>
                <span>Your name</span>
                <input
                  maxLength={200}
                  value={given.rater}
                  placeholder={me.name}
                  onChange={({ target }) => change({ rater: target.value })}
                />
              </label>
            )}
          </div>
          <div className="row">
            <button type="submit" className="primary">
              Begin
            </button>
            <span className="soft">
              {mayLabel
                ? "One key labels. What graders said is not shown, and not sent to this page."
                : "Labelling needs a key of the role editor: you may look."}
            </span>
          </div>
        </form>
      )}
    </div>
  );
}
