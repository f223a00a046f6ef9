import { type FormEvent, useId, useState } from "react";
import { Link } from "react-router";
import { $api } from "../api/client";
import { useMay, useMe } from "../api/me";
import { Button } from "../parts/Button";
import { Choice, Pick } from "../parts/Choice";
import { Empty } from "../parts/Empty";
import { Field } from "../parts/Field";
import { count } from "../parts/figures";
import { Page } from "../parts/Page";
import { TextField } from "../parts/TextField";
import type { QueueAddress } from "./QueuePage";

const CLASSES = ["PASS,FAIL,NA", "MET,UNMET,NA", "1,2,3,4,5", "A,B,TIE"];

/** What to label: a dataset or a run, the question, and the classes. */
export function QueueStart({ project, address, begin }: StartProps) {
  const me = useMe().data;
  const mayLabel = useMay("editor", project);
  const [given, setGiven] = useState(address);
  const id = useId();
  const stored = $api.useSuspenseQuery("get", "/api/v1/projects/{project}/datasets", {
    params: { path: { project }, query: { limit: 200 } },
  }).data.items;
  const runs = $api.useQuery(
    "get",
    "/api/v1/runs",
    { params: { query: { limit: 50 } } },
    { enabled: project === "default", retry: false },
  );
  const ran = runs.data?.items ?? [];
  const first = stored[0] ? `d:${stored[0].key}` : ran[0] ? `r:${ran[0].id}` : "";
  const chosen = given.dataset ? `d:${given.dataset}` : given.run ? `r:${given.run}` : first;
  const change = (part: Partial<QueueAddress>) => setGiven({ ...given, ...part });
  const take = (place: string) => ({
    dataset: place.startsWith("d:") ? place.slice(2) : "",
    run: place.startsWith("r:") ? place.slice(2) : "",
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    begin({ ...given, ...take(chosen) });
  };
  const crumbs = <Link to={`/p/${project}/labels`}>Labels</Link>;
  if (chosen === "") {
    return (
      <Page title="Label answers" crumbs={crumbs}>
        {!runs.isLoading && (
          <Empty
            title="There is nothing to label yet"
            command="assay grade answers.jsonl graders.yaml"
          >
            <p>
              Store a dataset of answers on the <Link to={`/p/${project}/datasets`}>Data page</Link>
              , or grade a file: the answers of a run can be labelled, too.
            </p>
          </Empty>
        )}
      </Page>
    );
  }
  return (
    <Page title="Label answers" crumbs={crumbs}>
      <form className="grid max-w-3xl gap-5" onSubmit={submit}>
        <Choice
          label="Answers"
          value={chosen}
          options={[
            ...stored.map(
              ({ key, rows }) => [`d:${key}`, `${key} (${count(rows, "row")})`] as const,
            ),
            ...ran.map(
              ({ id, label, planned }) =>
                [`r:${id}`, `run ${label || id} (${count(planned, "cell")})`] as const,
            ),
          ]}
          change={(place) => change(take(place))}
        />
        <TextField
          label="What is asked of every answer"
          lines={2}
          maxLength={2_000}
          value={given.criterion}
          placeholder="The answer names the city."
          change={(criterion) => change({ criterion })}
        />
        <div className="grid gap-5 sm:grid-cols-2">
          <Field id={`${id}-classes`} label="Classes" path="classes">
            <Pick
              id={`${id}-classes`}
              isFree
              value={given.classes}
              options={CLASSES}
              change={(classes) => change({ classes })}
            />
          </Field>
          <TextField
            label="Field"
            required
            maxLength={200}
            value={given.field}
            change={(field) => change({ field })}
          />
          <TextField
            label="Random order"
            type="number"
            min={0}
            max={2_147_483_647}
            value={given.seed}
            change={(seed) => change({ seed: Number(seed) })}
          />
          {me?.id === "local" && (
            <TextField
              label="Your name"
              maxLength={200}
              value={given.rater}
              placeholder={me.name}
              change={(rater) => change({ rater })}
            />
          )}
        </div>
        <div className="flex flex-wrap items-center gap-3">
          <Button type="submit" tone="primary">
            Begin
          </Button>
          <span className="text-soft">
            {mayLabel
              ? "One key labels. What graders said is not shown, and not sent to this page."
              : "Labelling needs a key of the role editor: you may look."}
          </span>
        </div>
      </form>
    </Page>
  );
}

interface StartProps {
  project: string;
  address: QueueAddress;
  begin: (asked: QueueAddress) => void;
}
