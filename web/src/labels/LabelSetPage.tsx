import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useParams, useSearchParams } from "react-router";
import { api, ask, type Schemas } from "../api/client";
import { Command } from "../parts/Command";
import { Empty } from "../parts/Empty";
import { moment } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import { usePageTitle } from "../parts/title";
import { ExportButton } from "./ExportButton";
import { Agreement } from "./LabelsPage";
import "./labels.css";
import { LabelTabs } from "./LabelTabs";
import { SeenText, visible } from "./SeenText";

const WHICH = { all: "All", several: "Of several people", disagreed: "People differ" } as const;
type Which = keyof typeof WHICH;

/** The items of a field, with what everybody said of them. */
export default function LabelSetPage() {
  const { project = "default" } = useParams();
  const [search, setSearch] = useSearchParams();
  const field = search.get("field") || "label";
  const asked = search.get("which") ?? "";
  const which: Which = asked in WHICH ? (asked as Which) : "all";
  usePageTitle(`Labels ${field}`);
  const sets = useQuery({
    queryKey: ["labels", project],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/projects/{project}/labels", { params: { path: { project } }, signal })),
  });
  const items = useInfiniteQuery({
    queryKey: ["labelled", project, field, which],
    queryFn: ({ signal, pageParam }) =>
      ask(
        api.GET("/api/v1/projects/{project}/labels/items", {
          params: {
            path: { project },
            query: { field, which, limit: 50, ...(pageParam && { after: pageParam }) },
          },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next ?? undefined,
  });
  const set = sets.data?.items.find((one) => one.field === field);
  const rows = items.data?.pages.flatMap((page) => page.items) ?? [];
  const choose = (value: Which) => {
    const next = new URLSearchParams(search);
    if (value === "all") next.delete("which");
    else next.set("which", value);
    setSearch(next);
  };
  return (
    <div className="page">
      <LabelTabs project={project} />
      <div className="page-head">
        <h1>{field}</h1>
        <span className="row">
          <ExportButton project={project} field={field} />
          <Link
            className="button primary"
            to={`/p/${project}/calibrations?new=1&field=${encodeURIComponent(field)}`}
          >
            Calibrate a grader
          </Link>
        </span>
      </div>
      {set && (
        <p className="row">
          <span>
            People agree: <Agreement set={set} />
          </span>
          {set.criterion && <span className="soft">Criterion: {set.criterion}</span>}
        </p>
      )}
      <div className="segments" role="group" aria-label="Which items">
        {(Object.keys(WHICH) as Which[]).map((one) => (
          <button key={one} type="button" aria-pressed={one === which} onClick={() => choose(one)}>
            {WHICH[one]}
          </button>
        ))}
      </div>
      {items.error && <ProblemBox problem={items.error} retry={() => items.refetch()} />}
      {items.isLoading && <Loading what="Loading items" />}
      {items.data && rows.length === 0 && <Nothing which={which} field={field} />}
      {rows.length > 0 && (
        <div className="scrolls">
          <table>
            <thead>
              <tr>
                <th>Item</th>
                <th>What was read</th>
                <th>What people said</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <ItemRow key={row.item} row={row} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {items.hasNextPage && (
        <p>
          <button
            type="button"
            onClick={() => items.fetchNextPage()}
            disabled={items.isFetchingNextPage}
          >
            {items.isFetchingNextPage ? "Loading …" : "Show more"}
          </button>
        </p>
      )}
    </div>
  );
}

function Nothing({ which, field }: { which: Which; field: string }) {
  if (which === "all") {
    return (
      <Empty
        title={`There are no labels ${field}`}
        command={`assay calibrate label answers.jsonl --label ${/^[\w.-]+$/.test(field) ? field : "NAME"}`}
      />
    );
  }
  return (
    <Empty
      title={which === "several" ? "No item has two raters" : "People say the same of every item"}
    >
      <p>
        Let a second person label the same items: their agreement is the most a judge can reach.
      </p>
      {which === "several" && <Command text="assay calibrate label answers.jsonl --rater bo" />}
    </Empty>
  );
}

function ItemRow({ row }: { row: Schemas["LabelledRow"] }) {
  const text = (name: string) => row.parts.find((part) => part.name === name)?.text ?? "";
  return (
    <tr>
      <td>
        <code>{row.id}</code>
      </td>
      <td>
        <details className="labelled">
          <summary>
            <span className="soft">{visible(text("question").slice(0, 120))}</span>{" "}
            {visible(text("answer").slice(0, 200))}
          </summary>
          {row.parts.map((part) => (
            <SeenText key={part.name} name={part.name} text={part.text} />
          ))}
        </details>
      </td>
      <td>
        <Said said={row.said} odd={!row.agreed} />
      </td>
    </tr>
  );
}

/** What each person said, with their notes. */
export function Said({ said, odd }: { said: readonly Schemas["SaidLabel"][]; odd: boolean }) {
  return (
    <span className="row tight">
      {said.map(({ rater, label, note, created_at }) => (
        <span key={rater} className={`badge ${odd ? "live" : ""}`} title={moment(created_at)}>
          {rater}: <strong>{label}</strong>
          {note && ` “${visible(note)}”`}
        </span>
      ))}
    </span>
  );
}
