import { NavLink } from "react-router";
import { useProject } from "../api/me";
import "./data.css";

/** What there is beside datasets. */
export function DataTabs() {
  const project = useProject();
  const places = [
    [`/p/${project}/datasets`, "Datasets"],
    [`/p/${project}/jobs`, "Jobs"],
    [`/p/${project}/traces`, "Traces"],
    ["/environments", "Environments"],
  ] as const;
  return (
    <nav className="tab-row" aria-label="Data">
      {places.map(([to, name]) => (
        <NavLink key={to} to={to}>
          {name}
        </NavLink>
      ))}
    </nav>
  );
}
