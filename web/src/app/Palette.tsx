import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { useNavigate } from "react-router";
import { api, ask } from "../api/client";
import { useMay, useProject } from "../api/me";
import { Dialog } from "../parts/Dialog";
import { moment } from "../parts/figures";
import { logOut } from "./login";
import { usePlaces } from "./places";
import { useTheme } from "./theme";

interface Entry {
  kind: string;
  name: string;
  more?: string;
  act: () => void;
}

const MOST = 60;

/** Finds pages, runs, graders and actions by what is typed. */
export function Palette({ close, showKeys }: { close: () => void; showKeys: () => void }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const entries = useEntries(text, showKeys);
  const found = entries.filter((entry) => suits(entry, text)).slice(0, MOST);
  const list = useRef<HTMLUListElement>(null);
  const at = Math.min(chosen, found.length - 1);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the chosen one is scrolled to
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [at, text]);

  const act = (entry: Entry | undefined) => {
    if (!entry) return;
    close();
    entry.act();
  };
  const hear = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };
    const step = steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setChosen((at + step + found.length) % Math.max(1, found.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      act(found[at]);
    }
  };

  return (
    <Dialog title="Go to or do" close={close} className="palette">
      <input
        type="text"
        role="combobox"
        aria-label="Find a page, a run, a grader or an action"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={found.length ? `palette-${at}` : undefined}
        placeholder="A page, a run, a grader, an action"
        autoComplete="off"
        spellCheck={false}
        autoFocus
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setChosen(0);
        }}
        onKeyDown={hear}
      />
      <ul id="palette-list" role="listbox" aria-label="Found" ref={list}>
        {found.map((entry, number) => (
          <li
            key={`${entry.kind} ${entry.name} ${entry.more ?? ""}`}
            id={`palette-${number}`}
            role="option"
            aria-selected={number === at}
            onMouseMove={() => setChosen(number)}
            onClick={() => act(entry)}
            onKeyDown={hear}
          >
            <span className="soft kind">{entry.kind}</span>
            <span className="clip">{entry.name}</span>
            <span className="soft clip more">{entry.more}</span>
          </li>
        ))}
      </ul>
      {found.length === 0 && (
        <p className="soft" role="status">
          Nothing is called so.
        </p>
      )}
    </Dialog>
  );
}

function suits(entry: Entry, text: string): boolean {
  const said = `${entry.kind} ${entry.name} ${entry.more ?? ""}`.toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => said.includes(word));
}

function useEntries(text: string, showKeys: () => void): readonly Entry[] {
  const navigate = useNavigate();
  const project = useProject();
  const places = usePlaces();
  const { next, turn } = useTheme();
  const seesRuns = useMay("viewer", "default");
  const mayStore = useMay("editor", project);
  const search = text.trim().slice(0, 200);
  const runs = useQuery({
    queryKey: ["palette", "runs", search],
    enabled: seesRuns,
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/runs", { signal, params: { query: { limit: 30, search } } })),
  });
  const graders = useQuery({
    queryKey: ["palette", "graders", project],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/graders", {
          signal,
          params: { path: { project }, query: { limit: 200 } },
        }),
      ),
  });
  const to = (address: string) => () => navigate(address);
  const below = `/p/${encodeURIComponent(project)}`;
  return [
    { kind: "Page", name: "Overview", act: to("/") },
    ...places.map((place) => ({ kind: "Page", name: place.name, act: to(place.to) })),
    { kind: "Page", name: "Jobs", act: to(`${below}/jobs`) },
    { kind: "Page", name: "Calibrations", act: to(`${below}/calibrations`) },
    { kind: "Page", name: "Traces", act: to(`${below}/traces`) },
    ...(seesRuns ? [{ kind: "Page", name: "Compare two runs", act: to("/compare") }] : []),
    ...(mayStore ? [{ kind: "Do", name: "New grader", act: to(`${below}/graders/new`) }] : []),
    { kind: "Do", name: `Theme: ${next}`, act: turn },
    { kind: "Do", name: "List the keys", act: showKeys },
    {
      kind: "Do",
      name: "Copy the address of this page",
      act: () => void navigator.clipboard?.writeText(window.location.href),
    },
    { kind: "Do", name: "Log out", act: () => void logOut() },
    ...(graders.data?.items ?? []).map((grader) => ({
      kind: "Grader",
      name: grader.key,
      more: grader.name === grader.key ? "" : grader.name,
      act: to(`${below}/graders/${encodeURIComponent(grader.key)}`),
    })),
    ...(runs.data?.items ?? []).map((run) => ({
      kind: "Run",
      name: run.label || run.suite || run.id,
      more: `${run.id} · ${moment(run.created_at)}`,
      act: to(`/runs/${encodeURIComponent(run.id)}`),
    })),
  ];
}
