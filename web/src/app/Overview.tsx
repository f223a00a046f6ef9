import { usePageTitle } from "../parts/title";

export default function Overview() {
  usePageTitle("Overview");
  return (
    <div className="page">
      <h1>Overview</h1>
    </div>
  );
}
