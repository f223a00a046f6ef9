import { useState } from "react";
import { Link, useSearchParams } from "react-router";
import { useMay, useProject } from "../api/me";
import { Button } from "../parts/Button";
import { Empty } from "../parts/Empty";
import { whole } from "../parts/figures";
import { Boundary } from "../parts/Panel";
import { type Shown, Table } from "../parts/Table";
import { When } from "../parts/When";
import { DataPage } from "./DataPage";
import { type Dataset, NEEDS, size, useAllDatasets } from "./queries";
import { UploadDialog } from "./UploadDialog";

export default function DatasetsPage() {
  const project = useProject();
  const mayUpload = useMay("editor", project);
  const [asked, setAsked] = useSearchParams();
  // Not kept in the address, which follows later: the button that has the focus then gets it back.
  const [isUploading, setUploading] = useState(asked.has("upload"));
  const close = () => {
    setUploading(false);
    if (asked.has("upload")) setAsked({}, { replace: true });
  };
  return (
    <DataPage
      title="Datasets"
      actions={
        <span title={mayUpload ? undefined : NEEDS}>
          <Button
            tone="primary"
            icon="up"
            isDisabled={!mayUpload}
            onPress={() => setUploading(true)}
          >
            Upload
          </Button>
        </span>
      }
    >
      <Boundary what="Loading datasets">
        <Datasets project={project} />
      </Boundary>
      {mayUpload && isUploading && <UploadDialog project={project} close={close} />}
    </DataPage>
  );
}

const EXAMPLE = `{"question": "What is 2 + 2?", "answer": "4", "expected": "4"}`;

function Datasets({ project }: { project: string }) {
  const datasets = useAllDatasets(project).data;
  const mayUpload = useMay("editor", project);
  if (datasets.length === 0) {
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
  const columns: readonly Shown<Dataset>[] = [
    {
      name: "Dataset",
      kind: "name",
      show: (one) => <Link to={`/p/${project}/datasets/${one.key}`}>{one.key}</Link>,
      below: (one) => one.name !== one.key && one.name,
    },
    { name: "Rows", kind: "number", show: (one) => whole(one.rows) },
    { name: "Size", kind: "number", show: (one) => size(one.size) },
    { name: "Stored", kind: "number", from: "md", show: (one) => <When at={one.created_at} /> },
  ];
  return <Table columns={columns} items={datasets} keyOf={(one) => one.key} />;
}
