import { useEffect } from "react";
import { Link } from "react-router";
import { $api, api, ask, type Schemas } from "../../api/client";
import { useList } from "../../api/lists";
import type { Change } from "../../parts/address";
import { Button } from "../../parts/Button";
import { Choice } from "../../parts/Choice";
import { Empty } from "../../parts/Empty";
import { whole } from "../../parts/figures";
import { More } from "../../parts/More";
import { Boundary } from "../../parts/Panel";
import { ProblemBox } from "../../parts/ProblemBox";
import { TextField } from "../../parts/TextField";

const MOST = 200;
const PAGE = 20;

/** Which rows of which dataset, as the address says where it says nothing. */
export const CHOICE = { dataset: "", mode: "first", rows: [] as readonly string[], take: 5 };

/** The rows that a choice is, as the API takes them; none where no dataset is chosen. */
export function rowsOf({ dataset, mode, rows, take }: typeof CHOICE) {
  if (!dataset) return null;
  const isChosen = mode === "chosen";
  const numbers = rows.map(Number).filter((row) => Number.isInteger(row) && row > 0);
  return { dataset, rows: isChosen ? numbers : [], take: isChosen ? 0 : Math.min(MOST, take) };
}

/** Chooses a stored dataset, and rows of it. */
export function DatasetSamples({ project, choice, change }: SamplesProps) {
  const { dataset, mode, take } = choice;
  const datasets = $api.useQuery("get", "/api/v1/projects/{project}/datasets", {
    params: { path: { project }, query: { limit: 200 } },
  });
  const items = datasets.data?.items ?? [];
  const only = items.length === 1 && !dataset ? items[0]?.key : undefined;
  useEffect(() => {
    if (only) change({ dataset: only });
  });
  if (datasets.error) return <ProblemBox problem={datasets.error} retry={datasets.refetch} />;
  if (datasets.data && items.length === 0) {
    return (
      <Empty title="No dataset is stored yet">
        <p>
          <Link to={`/p/${project}/datasets`}>Upload recorded answers</Link>, a JSON object on each
          line, to try graders on them.
        </p>
      </Empty>
    );
  }
  return (
    <div className="grid gap-3">
      <div className="flex flex-wrap items-end gap-3">
        <Choice
          label="Dataset"
          value={dataset}
          options={[
            ...(dataset ? [] : [["", datasets.data ? "choose" : "…"] as const]),
            ...items.map((one) => [one.key, `${one.key} (${whole(one.rows)})`] as const),
          ]}
          change={(key) => change({ dataset: key, rows: [] })}
        />
        <Choice
          label="Rows"
          value={mode}
          options={[
            ["first", "the first"],
            ["chosen", "chosen"],
          ]}
          change={(wanted) => change({ mode: wanted })}
        />
        {mode !== "chosen" && (
          <TextField
            label="How many"
            type="number"
            min={1}
            max={MOST}
            className="w-20!"
            value={take}
            change={(text) => text && change({ take: Number(text) })}
          />
        )}
      </div>
      {mode === "chosen" && dataset && (
        <Boundary what="Loading rows" place={dataset}>
          <ChosenRows
            project={project}
            dataset={dataset}
            chosen={rowsOf(choice)?.rows ?? []}
            choose={(rows) => change({ rows: rows.map(String) })}
          />
        </Boundary>
      )}
    </div>
  );
}

function ChosenRows({ project, dataset, chosen, choose }: ChosenProps) {
  const path = "/api/v1/projects/{project}/datasets/{key}/rows";
  const rows = useList(["get", path, project, dataset, "excerpts"], (rest, signal) => {
    const params = { path: { project, key: dataset }, query: { limit: PAGE, ...rest } };
    return ask(api.GET(path, { params, signal }));
  });
  const toggle = (number: number) =>
    choose(
      chosen.includes(number)
        ? chosen.filter((one) => one !== number)
        : [...chosen, number].sort((a, b) => a - b),
    );
  return (
    <div>
      <ul className="mb-2 max-h-80 overflow-auto">
        {rows.items.map((row) => (
          <li key={row.number} className="border-b border-line">
            <label className="flex min-h-8 cursor-pointer items-center gap-3 hover:bg-sunk pointer-coarse:min-h-10">
              <input
                type="checkbox"
                checked={chosen.includes(row.number)}
                disabled={!chosen.includes(row.number) && chosen.length >= MOST}
                onChange={() => toggle(row.number)}
              />
              <span className="text-soft tabular-nums">{row.number}</span>
              <span className="truncate">{excerpt(row)}</span>
            </label>
          </li>
        ))}
      </ul>
      <div className="flex flex-wrap items-end gap-2">
        <More found={rows} what="More rows" />
        <span className="text-soft">{chosen.length} chosen</span>
        {chosen.length > 0 && (
          <Button tone="quiet" onPress={() => choose([])}>
            None
          </Button>
        )}
      </div>
    </div>
  );
}

function excerpt({ question, answer, fault, id }: Schemas["RowGlimpse"]): string {
  return [question, answer].filter(Boolean).join(" → ").slice(0, 200) || fault || id;
}

interface SamplesProps {
  project: string;
  choice: typeof CHOICE;
  change: Change<typeof CHOICE>;
}

interface ChosenProps {
  project: string;
  dataset: string;
  chosen: number[];
  choose: (rows: number[]) => void;
}
