import { usePageTitle } from "../parts/title";

export default function DatasetsPage() {
  usePageTitle("Datasets");
  return (
    <div className="page">
      <h1>Datasets</h1>
    </div>
  );
}
