import { useInfiniteQuery } from "@tanstack/react-query";
import { useDeferredValue, useEffect, useRef, useState } from "react";
import { Link, useSearchParams } from "react-router";
import { api, ask } from "../api/client";
import { useMay, useProject } from "../api/me";
import { Empty } from "../parts/Empty";
import { useKeys } from "../parts/keys";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import { usePageTitle } from "../parts/title";
import { ExportGraders, ImportGraders } from "./Files";
import { GraderTable } from "./GraderTable";
import { KIND_TITLES } from "./queries";
import "./graders.css";

/** The graders of a project; what is searched for stands in the address. */
export default function GradersPage() {
  usePageTitle("Graders");
  const project = useProject();
  const mayEdit = useMay("editor", project);
  const [given, setGiven] = useSearchParams();
  const query = given.get("q") ?? "";
  const kind = given.get("kind") ?? "";
  const [text, setText] = useText(query);
  const search = useRef<HTMLInputElement>(null);
  const [isImporting, setImporting] = useState(false);
  const set = (name: string, value: string) =>
    setGiven(
      (before) => {
        const after = new URLSearchParams(before);
        if (value) after.set(name, value);
        else after.delete(name);
        return after;
      },
      { replace: true },
    );
  useKeys({ "/": () => search.current?.focus() });

  const wanted = useDeferredValue(query);
  const list = useInfiniteQuery({
    queryKey: ["grader-overview", project, kind, wanted],
    queryFn: ({ signal, pageParam }) =>
      ask(
        api.GET("/api/v1/projects/{project}/graders", {
          params: {
            path: { project },
            query: {
              limit: 100,
              query: wanted,
              ...(kind && { kind }),
              ...(pageParam && { after: pageParam }),
            },
          },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (last) => last.next,
    placeholderData: (before) => before,
  });
  const rows = list.data?.pages.flatMap((page) => page.items) ?? [];
  const isFiltered = query !== "" || kind !== "";

  return (
    <div className="page">
      <div className="page-head">
        <h1>Graders</h1>
        <div className="row">
          <ExportGraders project={project} />
          <button
            type="button"
            disabled={!mayEdit}
            title={mayEdit ? undefined : "Needs the role editor"}
            onClick={() => setImporting(true)}
          >
            Import
          </button>
          {mayEdit ? (
            <Link className="button primary" to={`/p/${project}/graders/new`}>
              New grader
            </Link>
          ) : (
            <button type="button" disabled title="Needs the role editor">
              New grader
            </button>
          )}
        </div>
      </div>
      <search className="filters">
        <input
          className="find-graders"
          ref={search}
          type="search"
          aria-label="Search graders"
          placeholder="Key, name or description"
          value={text}
          maxLength={200}
          onChange={(event) => {
            setText(event.target.value);
            set("q", event.target.value);
          }}
        />
        <select
          aria-label="Kind"
          value={kind}
          onChange={(event) => set("kind", event.target.value)}
        >
          <option value="">All kinds</option>
          {Object.entries(KIND_TITLES).map(([name, title]) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
      </search>
      {list.error && <ProblemBox problem={list.error} retry={() => list.refetch()} />}
      {list.isPending && <Loading what="Loading graders" />}
      {list.data && rows.length === 0 && !isFiltered && (
        <Empty title="No graders yet" command="assay graders create exact exact.py">
          <p>
            A grader turns an answer into a score: a Python function, a criterion for a model, a
            service of yours. Make one here, drop files of graders on <em>Import</em>, or store one
            from the command line.
          </p>
          {mayEdit && (
            <Link className="button primary" to={`/p/${project}/graders/new`}>
              New grader
            </Link>
          )}
        </Empty>
      )}
      {list.data && rows.length === 0 && isFiltered && (
        <Empty title="Nothing matches">
          <button type="button" onClick={() => setGiven({}, { replace: true })}>
            Show all graders
          </button>
        </Empty>
      )}
      {rows.length > 0 && (
        <GraderTable
          project={project}
          rows={rows}
          isMore={list.hasNextPage}
          more={() => {
            if (!list.isFetchingNextPage) list.fetchNextPage();
          }}
        />
      )}
      {isImporting && <ImportGraders project={project} close={() => setImporting(false)} />}
    </div>
  );
}

/** What is typed, which the address follows a little later; an address that is opened goes first. */
function useText(address: string): [string, (text: string) => void] {
  const [text, setText] = useState(address);
  const typed = useRef([address]);
  useEffect(() => {
    if (!typed.current.includes(address)) setText(address);
    typed.current = typed.current.slice(typed.current.indexOf(address) + 1);
  }, [address]);
  return [
    text,
    (changed) => {
      typed.current.push(changed);
      setText(changed);
    },
  ];
}
