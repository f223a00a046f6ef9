import { NavLink } from "react-router";

/** What people said, and how far graders agree with it. */
export function Tabs({ project }: { project: string }) {
  return (
    <nav className="tabs" aria-label="Labels">
      <NavLink to={`/p/${project}/labels`}>Label sets</NavLink>
      <NavLink to={`/p/${project}/calibrations`}>Calibrations</NavLink>
    </nav>
  );
}
