import { useDeferredValue, useRef, useState } from "react";
import { api, ask } from "../api/client";
import { useList } from "../api/lists";
import { useMay, useProject } from "../api/me";
import { useAddress } from "../parts/address";
import { Button, ButtonLink } from "../parts/Button";
import { Choice } from "../parts/Choice";
import { Rows } from "../parts/Disclosure";
import { Empty } from "../parts/Empty";
import { useKeys } from "../parts/keys";
import { Menu } from "../parts/Menu";
import { Page } from "../parts/Page";
import { Boundary } from "../parts/Panel";
import { Search } from "../parts/Search";
import { Table } from "../parts/Table";
import { columnsOf } from "./columns";
import { ImportGraders, useExport } from "./Files";
import { KIND_TITLES } from "./queries";

/** The graders of a project; what is searched for stands in the address. */
export default function GradersPage() {
  const project = useProject();
  const mayEdit = useMay("editor", project);
  const [{ q, kind }, change] = useAddress({ q: "", kind: "" });
  const filters = useRef<HTMLElement>(null);
  const [isImporting, setImporting] = useState(false);
  const exported = useExport(project);
  useKeys({ "/": () => filters.current?.querySelector("input")?.focus() });
  return (
    <Page
      title="Graders"
      facts={!mayEdit && "You may read them; storing one needs the role editor."}
      actions={
        <>
          <Menu
            label="Files of graders"
            offers={[
              { name: "Import …", act: () => setImporting(true), isDisabled: !mayEdit },
              { name: "Export all", act: exported.save },
            ]}
          />
          {mayEdit && (
            <ButtonLink tone="primary" icon="plus" to={`/p/${project}/graders/new`}>
              New grader
            </ButtonLink>
          )}
        </>
      }
    >
      <search ref={filters} className="mb-4 flex flex-wrap items-center gap-2">
        <Search
          label="Search graders"
          placeholder="Key, name or description"
          value={q}
          change={(text) => change({ q: text })}
        />
        <Choice
          label="Kind"
          isInline="hidden"
          value={kind}
          options={[["", "All kinds"], ...Object.entries(KIND_TITLES)]}
          change={(wanted) => change({ kind: wanted })}
        />
      </search>
      <Boundary place={project} what="Loading graders">
        <List
          project={project}
          query={useDeferredValue(q)}
          kind={useDeferredValue(kind)}
          showAll={() => change({ q: "", kind: "" })}
        />
      </Boundary>
      {exported.problem}
      {isImporting && <ImportGraders project={project} close={() => setImporting(false)} />}
    </Page>
  );
}

function List({ project, query, kind, showAll }: ListProps) {
  const mayEdit = useMay("editor", project);
  const path = "/api/v1/projects/{project}/graders";
  const list = useList(["get", path, project, query, kind], (rest, signal) => {
    const wanted = { limit: 100, query, ...(kind && { kind }), ...rest };
    return ask(api.GET(path, { params: { path: { project }, query: wanted }, signal }));
  });
  const rows = list.items;
  const end = useSeen(() => list.hasNextPage && !list.isFetching && list.fetchNextPage());
  if (rows.length === 0 && (query || kind)) {
    return (
      <Empty title="Nothing matches">
        <Button onPress={showAll}>Show all graders</Button>
      </Empty>
    );
  }
  if (rows.length === 0) {
    return (
      <Empty title="No graders yet" command="assay graders create exact exact.py">
        <p>
          A grader turns an answer into a score: a Python function, a criterion for a model, a
          service of yours. Make one here, import files of graders, or store one from the command
          line.
        </p>
        {mayEdit && <ButtonLink to={`/p/${project}/graders/new`}>Make the first one</ButtonLink>}
      </Empty>
    );
  }
  return (
    <Rows label="Graders">
      <Table label="Graders" columns={columnsOf(project)} items={rows} keyOf={(row) => row.key} />
      <span ref={end} />
    </Rows>
  );
}

/** Calls when the end of a list comes into sight, and again while it stays there. */
function useSeen(act: () => void) {
  const latest = useRef(act);
  latest.current = act;
  return (element: HTMLElement | null) => {
    if (!element) return;
    const watch = new IntersectionObserver(
      (seen) => seen.some((one) => one.isIntersecting) && latest.current(),
      { rootMargin: "600px" },
    );
    watch.observe(element);
    return () => watch.disconnect();
  };
}

interface ListProps {
  project: string;
  query: string;
  kind: string;
  showAll: () => void;
}
