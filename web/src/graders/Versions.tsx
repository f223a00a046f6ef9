import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useSearchParams } from "react-router";
import { api, ask } from "../api/client";
import { DiffView } from "../parts/DiffView";
import { moment } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import { KIND_TITLES } from "./queries";

/** Every version, newest first, and what changed between any two: `?from=1&to=3`. */
export function Versions({ project, grader, newest, shown }: VersionsProps) {
  const [given, setGiven] = useSearchParams();
  const list = useInfiniteQuery({
    queryKey: ["grader-versions", project, grader],
    queryFn: ({ signal, pageParam }) =>
      ask(
        api.GET("/api/v1/projects/{project}/graders/{key}/versions", {
          params: {
            path: { project, key: grader },
            query: { limit: 20, ...(pageParam && { after: pageParam }) },
          },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (last) => last.next,
  });
  const versions = list.data?.pages.flatMap((page) => page.items) ?? [];
  const from = Number(given.get("from")) || 0;
  const to = Number(given.get("to")) || 0;
  const choose = (name: "from" | "to", number: number) =>
    setGiven(
      (before) => {
        const after = new URLSearchParams(before);
        after.set(name, String(number));
        const other = name === "from" ? "to" : "from";
        if (!after.get(other)) after.set(other, String(name === "from" ? newest : number - 1));
        return after;
      },
      { replace: true, preventScrollReset: true },
    );
  return (
    <section className="panel" aria-label="Versions">
      <h2>Versions</h2>
      {list.error && <ProblemBox problem={list.error} retry={() => list.refetch()} />}
      {list.isPending && <Loading what="Loading versions" />}
      {versions.length > 0 && (
        <div className="scrolls">
          <table className="versions">
            <thead>
              <tr>
                {versions.length > 1 && (
                  <>
                    <th scope="col">From</th>
                    <th scope="col">To</th>
                  </>
                )}
                <th scope="col">Version</th>
                <th scope="col">Kind</th>
                <th scope="col">Note</th>
                <th scope="col">Made</th>
              </tr>
            </thead>
            <tbody>
              {versions.map((one) => (
                <tr key={one.number} aria-current={one.number === shown || undefined}>
                  {versions.length > 1 &&
                    (["from", "to"] as const).map((name) => (
                      <td key={name}>
                        <input
                          type="radio"
                          name={name}
                          aria-label={`Compare ${name} version ${one.number}`}
                          checked={(name === "from" ? from : to) === one.number}
                          onChange={() => choose(name, one.number)}
                        />
                      </td>
                    ))}
                  <td>
                    <Link
                      to={one.number === newest ? "?" : `?version=${one.number}`}
                      aria-label={`Version ${one.number}`}
                    >
                      {one.number}
                    </Link>
                  </td>
                  <td>{KIND_TITLES[one.kind] ?? one.kind}</td>
                  <td className="note">{one.note || <span className="soft">–</span>}</td>
                  <td className="soft nowrap">
                    {moment(one.created_at)}
                    {one.created_by && ` by ${one.created_by}`}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {list.hasNextPage && (
        <button type="button" onClick={() => list.fetchNextPage()}>
          Older versions
        </button>
      )}
      {from > 0 && to > 0 && from !== to && (
        <Diff project={project} grader={grader} from={from} to={to} />
      )}
    </section>
  );
}

function Diff({ project, grader, from, to }: DiffProps) {
  const diff = useQuery({
    queryKey: ["grader-diff", project, grader, from, to],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/graders/{key}/diff", {
          params: { path: { project, key: grader }, query: { from, to } },
          signal,
        }),
      ),
  });
  return (
    <div className="version-diff">
      <h3>
        What changed from version {from} to {to}
      </h3>
      {diff.error && <ProblemBox problem={diff.error} />}
      {diff.isPending && <Loading what="Comparing" />}
      {diff.data &&
        (diff.data.diff ? (
          <DiffView
            lines={diff.data.diff.replace(/\n$/, "").split("\n")}
            label={`From version ${from} to ${to}`}
          />
        ) : (
          <p className="soft">Nothing: the two say the same.</p>
        ))}
    </div>
  );
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
