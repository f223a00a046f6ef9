import { usePageTitle } from "../parts/title";

export default function GradersPage() {
  usePageTitle("Graders");
  return (
    <div className="page">
      <h1>Graders</h1>
    </div>
  );
}
