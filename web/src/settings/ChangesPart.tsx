import { useInfiniteQuery } from "@tanstack/react-query";
import { useSearchParams } from "react-router";
import { api, ask, type Schemas } from "../api/client";
import { Empty } from "../parts/Empty";
import { moment } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import { Needs, type Part, where } from "./MePart";

type Change = Schemas["ChangeRecord"];

/** Who changed what, newest first. */
export function ChangesPart({ me }: Part) {
  const isAdmin = me.role === "admin";
  const [view, setView] = useSearchParams();
  const what = view.get("what") ?? "";
  const by = view.get("by") ?? "";
  const only = { ...(what ? { what } : {}), ...(by ? { by } : {}) };
  const changes = useInfiniteQuery({
    queryKey: ["changes", me.project, only],
    enabled: isAdmin,
    initialPageParam: "",
    queryFn: ({ signal, pageParam }) => {
      const query = { limit: 100, ...only, ...(pageParam ? { after: pageParam } : {}) };
      if (me.project === "*") return ask(api.GET("/api/v1/changes", { params: { query }, signal }));
      return ask(
        api.GET("/api/v1/projects/{project}/changes", {
          params: { path: { project: me.project }, query },
          signal,
        }),
      );
    },
    getNextPageParam: (last) => last.next ?? undefined,
  });
  if (!isAdmin) return <Needs what="The log of changes is for admins." />;
  const found = changes.data?.pages.flatMap((part) => part.items);
  const narrow = (more: Record<string, string>) => {
    const next = { tab: "changes", ...only, ...more };
    setView(Object.fromEntries(Object.entries(next).filter(([, value]) => value !== "")));
  };
  return (
    <div className="stack">
      {(what || by) && (
        <p className="row">
          Only
          {what && (
            <button type="button" onClick={() => narrow({ what: "" })}>
              {what.replaceAll("_", " ")} ✕
            </button>
          )}
          {by && (
            <button type="button" onClick={() => narrow({ by: "" })}>
              by {by} ✕
            </button>
          )}
        </p>
      )}
      {changes.isPending && <Loading what="Loading the log" />}
      {changes.error && <ProblemBox problem={changes.error} retry={() => changes.refetch()} />}
      {found?.length === 0 && (
        <Empty title="Nothing was changed" command="assay server list audit">
          <p>Every change of graders, datasets, jobs, keys and labels is written down here.</p>
        </Empty>
      )}
      {found && found.length > 0 && <Changes changes={found} narrow={narrow} />}
      {changes.hasNextPage && (
        <button type="button" disabled={changes.isFetching} onClick={() => changes.fetchNextPage()}>
          Show older changes
        </button>
      )}
    </div>
  );
}

function Changes({ changes, narrow }: { changes: readonly Change[]; narrow: Narrow }) {
  return (
    <div className="scrolls">
      <table>
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">What</th>
            <th scope="col">Of what</th>
            <th scope="col">Project</th>
            <th scope="col">By</th>
            <th scope="col">From</th>
          </tr>
        </thead>
        <tbody>
          {changes.map((one) => (
            <tr key={one.seq}>
              <td className="nowrap soft">{moment(one.time)}</td>
              <td className="anywhere">
                <button
                  type="button"
                  className="link"
                  title="Only these"
                  onClick={() => narrow({ what: one.operation })}
                >
                  {one.operation.replaceAll("_", " ")}
                </button>
              </td>
              <td className="anywhere mono">{said(one.what)}</td>
              <td>{where(one.project)}</td>
              <td className="anywhere">
                <button
                  type="button"
                  className="link"
                  title="Only theirs"
                  onClick={() => narrow({ by: one.by })}
                >
                  {one.by}
                </button>
                <span className="soft"> {one.role}</span>
              </td>
              <td className="soft nowrap">{one.address || "command line"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function said(what: Readonly<Record<string, unknown>>): string {
  return Object.entries(what)
    .filter(([, value]) => value !== null && value !== "" && value !== false)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
}

type Narrow = (more: Record<string, string>) => void;
