import { Link } from "react-router";
import { $api, api, ask, type Schemas } from "../api/client";
import { useList } from "../api/lists";
import { useAddress } from "../parts/address";
import { DiffView } from "../parts/DiffView";
import { More } from "../parts/More";
import { Boundary } from "../parts/Panel";
import { type Shown, Table } from "../parts/Table";
import { Titled } from "../parts/Titled";
import { When } from "../parts/When";
import { KIND_TITLES } from "./queries";

type Version = Schemas["GraderVersion"];

/** Every version, newest first, and what changed between any two: `?from=1&to=3`. */
export function Versions({ project, grader, newest, shown }: VersionsProps) {
  const [compared, change] = useAddress({ from: 0, to: 0 });
  const { from, to } = compared;
  const path = "/api/v1/projects/{project}/graders/{key}/versions";
  const list = useList(["get", path, project, grader], (rest, signal) => {
    const params = { path: { project, key: grader }, query: { limit: 20, ...rest } };
    return ask(api.GET(path, { params, signal }));
  });
  const versions = list.items;
  const choose = (name: "from" | "to", number: number) => {
    const next = { from, to, [name]: number };
    change({ from: next.from || number - 1, to: next.to || newest });
  };
  const side = (name: "from" | "to", title: string): Shown<Version> => ({
    name: title,
    show: (one) => (
      <label className="grid size-6 place-items-center pointer-coarse:size-10">
        <input
          type="radio"
          name={name}
          aria-label={`Compare ${name} version ${one.number}`}
          checked={compared[name] === one.number}
          onChange={() => choose(name, one.number)}
        />
      </label>
    ),
  });
  return (
    <>
      <Table
        label="Versions"
        items={versions}
        keyOf={(one) => one.number}
        lookOf={(one) => (one.number === shown ? "bg-accent-soft" : "")}
        columns={[
          {
            name: "Version",
            show: (one) => (
              <>
                <Link
                  to={one.number === newest ? "?" : `?version=${one.number}`}
                  aria-label={`Version ${one.number}`}
                >
                  {one.number}
                </Link>
              </>
            ),
            below: (one) => KIND_TITLES[one.kind] ?? one.kind,
          },
          {
            name: "Note",
            kind: "name",
            show: (one) => <span className="font-normal">{one.note || "–"}</span>,
            below: (one) => (
              <>
                <When at={one.created_at} />
                {one.created_by && ` by ${one.created_by}`}
              </>
            ),
          },
          ...(versions.length > 1 ? [side("from", "From"), side("to", "To")] : []),
        ]}
      />
      <More found={list} what="Older versions" />
      {from > 0 && to > 0 && from !== to && (
        <div className="mt-5">
          <Titled title={`What changed from version ${from} to ${to}`}>
            <Boundary what="Comparing" place={`${from} ${to}`}>
              <Diff project={project} grader={grader} from={from} to={to} />
            </Boundary>
          </Titled>
        </div>
      )}
    </>
  );
}

function Diff({ project, grader, from, to }: DiffProps) {
  const { diff } = $api.useSuspenseQuery("get", "/api/v1/projects/{project}/graders/{key}/diff", {
    params: { path: { project, key: grader }, query: { from, to } },
  }).data;
  if (!diff) return <p className="text-soft">Nothing: the two say the same.</p>;
  const lines = diff.replace(/\n$/, "").split("\n");
  return <DiffView lines={lines} label={`From version ${from} to ${to}`} />;
}

interface VersionsProps {
  project: string;
  grader: string;
  newest: number;
  shown: number;
}

interface DiffProps {
  project: string;
  grader: string;
  from: number;
  to: number;
}
