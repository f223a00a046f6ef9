import { usePageTitle } from "../parts/title";

export default function LabelsPage() {
  usePageTitle("Labels");
  return (
    <div className="page">
      <h1>Labels</h1>
    </div>
  );
}
