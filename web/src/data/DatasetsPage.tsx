import { Link, useSearchParams } from "react-router";
import { useMay, useProject } from "../api/me";
import { Empty } from "../parts/Empty";
import { moment, whole } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import { usePageTitle } from "../parts/title";
import { DataTabs } from "./DataTabs";
import { type Dataset, size, useDatasets } from "./queries";
import { UploadDialog } from "./UploadDialog";

export default function DatasetsPage() {
  usePageTitle("Datasets");
  const project = useProject();
  const mayUpload = useMay("editor", project);
  const [shown, setShown] = useSearchParams();
  const datasets = useDatasets(project);
  const isUploading = mayUpload && shown.has("upload");
  const upload = (open: boolean) => setShown(open ? { upload: "" } : {});
  return (
    <div className="page">
      <DataTabs />
      <div className="page-head">
        <h1>Datasets</h1>
        <button
          type="button"
          className="primary"
          disabled={!mayUpload}
          title={mayUpload ? undefined : "This needs the role editor"}
          onClick={() => upload(true)}
        >
          Upload
        </button>
      </div>
      {datasets.isPending && <Loading what="Loading datasets" />}
      {datasets.error && <ProblemBox problem={datasets.error} retry={() => datasets.refetch()} />}
      {datasets.data?.length === 0 && <NoDatasets mayUpload={mayUpload} />}
      {datasets.data && datasets.data.length > 0 && (
        <Datasets project={project} datasets={datasets.data} />
      )}
      {isUploading && <UploadDialog project={project} close={() => upload(false)} />}
    </div>
  );
}

const EXAMPLE = `{"question": "What is 2 + 2?", "answer": "4", "expected": "4"}`;

function NoDatasets({ mayUpload }: { mayUpload: boolean }) {
  return (
    <Empty title="No datasets yet" command={EXAMPLE}>
      <p>
        A dataset is recorded answers that graders are run on again and again: one row of JSON on
        each line, with <code>answer</code> (or <code>messages</code>), and what it is graded
        against.
      </p>
      {mayUpload ? <p>Upload a file with the button above.</p> : <p>Editors upload them.</p>}
    </Empty>
  );
}

function Datasets({ project, datasets }: { project: string; datasets: readonly Dataset[] }) {
  return (
    <div className="scrolls">
      <table>
        <thead>
          <tr>
            <th scope="col">Dataset</th>
            <th scope="col">Name</th>
            <th scope="col" className="number">
              Rows
            </th>
            <th scope="col" className="number">
              Size
            </th>
            <th scope="col">Stored</th>
          </tr>
        </thead>
        <tbody>
          {datasets.map((one) => (
            <tr key={one.key}>
              <td>
                <Link to={`/p/${project}/datasets/${one.key}`}>{one.key}</Link>
              </td>
              <td className="anywhere">{one.name === one.key ? "" : one.name}</td>
              <td className="number">{whole(one.rows)}</td>
              <td className="number">{size(one.size)}</td>
              <td className="nowrap soft">{moment(one.created_at)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
