import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { Link, NavLink, useLocation, useNavigate } from "react-router";
import { api, ask } from "../api/client";
import { rememberProject, useMe, useProject } from "../api/me";
import { logOut } from "./login";
import { type Place as Section, usePlaces } from "./places";
import { useTheme } from "./theme";

export function Navigation() {
  return (
    <header className="bar">
      <Link to="/" className="brand">
        <img src="/assets/icon.svg" alt="" />
        assay
      </Link>
      <nav aria-label="Main">
        {usePlaces().map((place) => (
          <Place key={place.name} place={place} />
        ))}
      </nav>
      <ProjectSwitch />
      <ThemeSwitch />
      <Caller />
    </header>
  );
}

function Place({ place }: { place: Section }) {
  const { pathname } = useLocation();
  const isHere = place.also?.some((part) => pathname.startsWith(part)) ?? false;
  const Kind = isHere ? Link : NavLink;
  return (
    <Kind to={place.to} aria-current={isHere ? "page" : undefined}>
      {place.name}
    </Kind>
  );
}

/** Which project is looked at, where the caller sees several. */
function ProjectSwitch() {
  const project = useProject();
  const { pathname } = useLocation();
  const navigate = useNavigate();
  const projects = useQuery({
    queryKey: ["projects", "switch"],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/projects", { signal, params: { query: { limit: 200 } } })),
    staleTime: 60_000,
  });
  const keys = (projects.data?.items ?? []).map((one) => one.key);
  const isKnown = keys.includes(project);
  useEffect(() => {
    if (isKnown) rememberProject(project);
  }, [isKnown, project]);
  if (keys.length < 2 && (keys.length === 0 || isKnown)) return null;
  const section = /^\/p\/[^/]+\/([^/]+)/.exec(pathname)?.[1] ?? "graders";
  return (
    <select
      aria-label="Project"
      value={project}
      onChange={(event) => navigate(`/p/${encodeURIComponent(event.target.value)}/${section}`)}
    >
      {!isKnown && <option>{project}</option>}
      {keys.map((key) => (
        <option key={key}>{key}</option>
      ))}
    </select>
  );
}

const SIGNS = { system: "◐", light: "☀", dark: "☾" };

function ThemeSwitch() {
  const { theme, next, turn } = useTheme();
  const said = `Theme: ${theme}; change to ${next}`;
  return (
    <button type="button" className="quiet" onClick={turn} aria-label={said} title={said}>
      <span aria-hidden="true">{SIGNS[theme]}</span>
    </button>
  );
}

/** Who is logged in, and the way out. */
function Caller() {
  const me = useMe().data;
  if (!me) return null;
  const what = `${me.role} of ${me.project === "*" ? "all projects" : me.project}`;
  return (
    <span className="caller">
      <span className="soft clip" title={`${me.name}: ${what}`}>
        {me.name === "local" ? "this machine" : me.name}
      </span>
      <button type="button" className="quiet" onClick={() => void logOut()}>
        Log out
      </button>
    </span>
  );
}
