import { Link, NavLink } from "react-router";
import { useProject } from "../api/me";

export function Navigation() {
  const project = useProject();
  const places = [
    [`/p/${project}/graders`, "Graders"],
    ["/runs", "Runs"],
    [`/p/${project}/labels`, "Labels"],
    [`/p/${project}/datasets`, "Data"],
    ["/settings", "Settings"],
  ] as const;
  return (
    <header className="bar">
      <Link to="/" className="brand">
        <img src="/assets/icon.svg" alt="" />
        assay
      </Link>
      <nav aria-label="Main">
        {places.map(([to, name]) => (
          <NavLink key={name} to={to}>
            {name}
          </NavLink>
        ))}
      </nav>
    </header>
  );
}
