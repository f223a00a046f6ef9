import { api, ask, type Schemas } from "../api/client";
import { useList } from "../api/lists";
import { useAddress } from "../parts/address";
import { Button } from "../parts/Button";
import { Empty } from "../parts/Empty";
import { More } from "../parts/More";
import { type Shown, Table } from "../parts/Table";
import { When } from "../parts/When";
import { Needs, type Part, where } from "./MePart";

type Change = Schemas["ChangeRecord"];

/** Who changed what, newest first. */
export function ChangesPart({ me }: Part) {
  if (me.role !== "admin") return <Needs what="The log of changes is for admins." />;
  return me.project === "*" ? <All /> : <OfProject project={me.project} />;
}

function All() {
  const [only, narrow] = useAddress(ANY);
  const list = useList(["get", "/api/v1/changes", only], (rest, signal) =>
    ask(api.GET("/api/v1/changes", { params: { query: queryOf(only, rest) }, signal })),
  );
  return <Log list={list} only={only} narrow={narrow} />;
}

function OfProject({ project }: { project: string }) {
  const [only, narrow] = useAddress(ANY);
  const path = "/api/v1/projects/{project}/changes";
  const list = useList(["get", path, project, only], (rest, signal) => {
    const params = { path: { project }, query: queryOf(only, rest) };
    return ask(api.GET(path, { params, signal }));
  });
  return <Log list={list} only={only} narrow={narrow} />;
}

/** Which changes are looked at: those of an operation, of somebody. */
const ANY = { what: "", by: "" };

function queryOf({ what, by }: typeof ANY, rest: { after?: string }) {
  return { limit: 100, ...(what && { what }), ...(by && { by }), ...rest };
}

function Log({ list, only: { what, by }, narrow }: LogProps) {
  return (
    <>
      {(what || by) && (
        <p className="mt-0 mb-4 flex items-center gap-2">
          Only
          {what && (
            <Button icon="close" onPress={() => narrow({ what: "" })}>
              {what.replaceAll("_", " ")}
            </Button>
          )}
          {by && (
            <Button icon="close" onPress={() => narrow({ by: "" })}>
              by {by}
            </Button>
          )}
        </p>
      )}
      {list.items.length === 0 ? (
        <Empty title="Nothing was changed" command="assay server list audit">
          <p>Every change of graders, datasets, jobs, keys and labels is written down here.</p>
        </Empty>
      ) : (
        <Table columns={columnsOf(narrow)} items={list.items} keyOf={(one) => one.seq} />
      )}
      <More found={list} what="Show older changes" />
    </>
  );
}

const LINK = "cursor-pointer text-left text-ink hover:underline pointer-coarse:min-h-10";

function columnsOf(narrow: Narrow): readonly Shown<Change>[] {
  return [
    {
      name: "What",
      kind: "name",
      show: (one) => (
        <>
          <button
            type="button"
            className={LINK}
            title="Only these"
            onClick={() => narrow({ what: one.operation })}
          >
            {one.operation.replaceAll("_", " ")}
          </button>
        </>
      ),
      below: (one) => <code className="wrap-anywhere">{said(one.what)}</code>,
    },
    {
      name: "By",
      show: (one) => (
        <>
          <button
            type="button"
            className={`${LINK} wrap-anywhere`}
            title="Only theirs"
            onClick={() => narrow({ by: one.by })}
          >
            {one.by}
          </button>
        </>
      ),
      below: (one) => one.role,
    },
    { name: "Project", from: "md", show: (one) => where(one.project) },
    { name: "From", from: "lg", show: (one) => one.address || "command line" },
    { name: "Time", kind: "number", show: (one) => <When at={one.time} /> },
  ];
}

function said(what: Readonly<Record<string, unknown>>): string {
  return Object.entries(what)
    .filter(([, value]) => value !== null && value !== "" && value !== false)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
}

type Narrow = (only: Partial<typeof ANY>) => void;

interface LogProps {
  list: ReturnType<typeof useList<Change>>;
  only: typeof ANY;
  narrow: Narrow;
}
