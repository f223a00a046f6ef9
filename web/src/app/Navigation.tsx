import { useEffect } from "react";
import { Link, NavLink, useLocation, useNavigate } from "react-router";
import { $api } from "../api/client";
import { rememberProject, useMe, useProject } from "../api/me";
import { IconButton } from "../parts/Button";
import { Icon } from "../parts/Icon";
import { Menu } from "../parts/Menu";
import { logOut } from "./login";
import { type Place as Section, usePlaces } from "./places";
import { useTheme } from "./theme";

/** The bar above every page; on a phone its sections stand below, where a thumb is. */
export function Navigation() {
  return (
    <header
      className="sticky top-0 z-20 flex h-13 items-center gap-1 border-b border-line bg-page px-4 max-md:static md:gap-2
          md:px-[max(32px,calc(50vw-688px))]
        print:static"
    >
      <Link
        to="/"
        className="flex min-h-10 items-center gap-2 text-lg font-semibold tracking-tight text-ink no-underline"
      >
        <img src="/assets/icon.svg" alt="" className="size-6" />
        assay
      </Link>
      <ProjectSwitch />
      <nav
        aria-label="Main"
        className="flex grow gap-0.5 md:ml-3 max-md:fixed max-md:inset-x-0 max-md:bottom-0 max-md:z-20 max-md:border-t
          max-md:border-line max-md:bg-page max-md:px-1 max-md:pb-[env(safe-area-inset-bottom)] print:hidden"
      >
        {usePlaces().map((place) => (
          <Place key={place.name} place={place} />
        ))}
      </nav>
      <span className="grow md:hidden" />
      <ThemeSwitch />
      <Caller />
    </header>
  );
}

const PLACE = `flex items-center rounded-md px-2.5 text-soft no-underline hover:text-ink aria-[current=page]:text-ink
  aria-[current=page]:font-medium md:min-h-8 md:aria-[current=page]:bg-fill max-md:min-h-14 max-md:flex-1 max-md:flex-col
  max-md:justify-center max-md:gap-1 max-md:px-0 max-md:text-xs max-md:outline-offset-[-2px]`;

function Place({ place }: { place: Section }) {
  const { pathname } = useLocation();
  const isHere = place.also?.some((part) => pathname.startsWith(part)) ?? false;
  const Kind = isHere ? Link : NavLink;
  return (
    <Kind to={place.to} aria-current={isHere ? "page" : undefined} className={PLACE}>
      <span className="md:hidden">
        <Icon name={place.icon} size={20} />
      </span>
      {place.name}
    </Kind>
  );
}

/** Which project is looked at, where the caller sees several. */
function ProjectSwitch() {
  const project = useProject();
  const { pathname } = useLocation();
  const navigate = useNavigate();
  const projects = $api.useQuery(
    "get",
    "/api/v1/projects",
    { params: { query: { limit: 200 } } },
    { staleTime: 60_000 },
  );
  const keys = (projects.data?.items ?? []).map((one) => one.key);
  const isKnown = keys.includes(project);
  useEffect(() => {
    if (isKnown) rememberProject(project);
  }, [isKnown, project]);
  if (keys.length < 2 && (keys.length === 0 || isKnown)) return null;
  const section = /^\/p\/[^/]+\/([^/]+)/.exec(pathname)?.[1] ?? "graders";
  return (
    <>
      <span className="text-edge" aria-hidden="true">
        /
      </span>
      <select
        aria-label="Project"
        value={project}
        onChange={(event) => navigate(`/p/${encodeURIComponent(event.target.value)}/${section}`)}
        className="min-h-8 max-w-44 min-w-0 cursor-pointer rounded-md border-0 bg-transparent px-1 hover:bg-fill
          pointer-coarse:min-h-10"
      >
        {!isKnown && <option>{project}</option>}
        {keys.map((key) => (
          <option key={key}>{key}</option>
        ))}
      </select>
    </>
  );
}

function ThemeSwitch() {
  const { theme, next, turn } = useTheme();
  return <IconButton icon={theme} label={`Theme: ${theme}; change to ${next}`} onPress={turn} />;
}

/** Who is logged in, and the way out. */
function Caller() {
  const me = useMe().data;
  if (!me) return null;
  const name = me.name === "local" ? "this machine" : me.name;
  const what = `${me.role} ${me.project === "*" ? "everywhere" : `in ${me.project}`}`;
  return (
    <Menu
      label={`${name}: ${what}`}
      name={<span className="max-w-40 truncate max-md:max-w-24">{name}</span>}
      offers={[
        { name: "Your role and keys", icon: "settings", to: "/settings" },
        { name: "Log out", icon: "right", act: () => void logOut() },
      ]}
    />
  );
}
