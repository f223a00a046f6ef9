import { usePageTitle } from "../parts/title";

export default function RunsPage() {
  usePageTitle("Runs");
  return (
    <div className="page">
      <h1>Runs</h1>
    </div>
  );
}
