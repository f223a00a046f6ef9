import { useSearchParams } from "react-router";
import { $api, type Schemas } from "../api/client";
import { IN_PARTS } from "../api/pages";
import { Button } from "../parts/Button";
import { Empty } from "../parts/Empty";
import { Loading } from "../parts/Loading";
import { More } from "../parts/More";
import { ProblemBox } from "../parts/ProblemBox";
import { Below, type Shown, Table } from "../parts/Table";
import { When } from "../parts/When";
import { Needs, type Part, where } from "./MePart";

type Change = Schemas["ChangeRecord"];

/** Who changed what, newest first. */
export function ChangesPart({ me }: Part) {
  if (me.role !== "admin") return <Needs what="The log of changes is for admins." />;
  return me.project === "*" ? <All /> : <OfProject project={me.project} />;
}

function All() {
  const [query, narrow] = useNarrowed();
  const found = $api.useInfiniteQuery("get", "/api/v1/changes", { params: { query } }, IN_PARTS);
  return <Log found={found} query={query} narrow={narrow} />;
}

function OfProject({ project }: { project: string }) {
  const [query, narrow] = useNarrowed();
  const found = $api.useInfiniteQuery(
    "get",
    "/api/v1/projects/{project}/changes",
    { params: { path: { project }, query } },
    IN_PARTS,
  );
  return <Log found={found} query={query} narrow={narrow} />;
}

/** What the address says is looked at, and what changes that. */
function useNarrowed(): [Query, Narrow] {
  const [view, setView] = useSearchParams();
  const only = {
    ...(view.get("what") ? { what: view.get("what") ?? "" } : {}),
    ...(view.get("by") ? { by: view.get("by") ?? "" } : {}),
  };
  const narrow = (more: Record<string, string>) => {
    const next = { tab: "changes", ...only, ...more };
    setView(Object.fromEntries(Object.entries(next).filter(([, value]) => value !== "")));
  };
  return [{ limit: 100, ...only }, narrow];
}

function Log({ found, query, narrow }: LogProps) {
  const { what, by } = query;
  if (found.isPending) return <Loading what="Loading the log" />;
  if (found.error) return <ProblemBox problem={found.error} retry={() => found.refetch()} />;
  const changes = found.data?.pages.flatMap((part) => part.items) ?? [];
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
      {changes.length === 0 ? (
        <Empty title="Nothing was changed" command="assay server list audit">
          <p>Every change of graders, datasets, jobs, keys and labels is written down here.</p>
        </Empty>
      ) : (
        <Table columns={columnsOf(narrow)} items={changes} keyOf={(one) => one.seq} />
      )}
      <More found={found} what="Show older changes" />
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
          <Below>
            <code className="wrap-anywhere">{said(one.what)}</code>
          </Below>
        </>
      ),
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
          <Below>{one.role}</Below>
        </>
      ),
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

type Narrow = (more: Record<string, string>) => void;
type Query = { limit: number; what?: string; by?: string };

interface LogProps {
  found: {
    isPending: boolean;
    error: Error | null;
    refetch: () => void;
    data: { pages: { items: Change[] }[] } | undefined;
    hasNextPage: boolean;
    isFetching: boolean;
    fetchNextPage: () => Promise<unknown>;
  };
  query: Query;
  narrow: Narrow;
}
