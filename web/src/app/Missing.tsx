import { Link } from "react-router";
import { usePageTitle } from "../parts/title";

export default function Missing() {
  usePageTitle("No such page");
  return (
    <div className="page stack">
      <h1>There is no such page</h1>
      <p>
        <Link to="/">Go to the overview</Link>
      </p>
    </div>
  );
}
