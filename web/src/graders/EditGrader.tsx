import { Suspense, useState } from "react";
import { Link, useParams } from "react-router";
import { useMay, useProject } from "../api/me";
import type { JsonObject } from "../parts/json";
import { Loading } from "../parts/Loading";
import { later } from "../parts/later";
import { ProblemBox } from "../parts/ProblemBox";
import { usePageTitle } from "../parts/title";
import { GraderForm } from "./GraderForm";
import { type Grader, useGrader, useKinds } from "./queries";
import "./graders.css";

const FunctionPage = later(() => import("./edit/FunctionPage"));

/** The form of a stored grader: what is saved is its next version. */
export default function EditGrader() {
  const project = useProject();
  const { key = "" } = useParams();
  usePageTitle(`Edit ${key}`);
  const mayEdit = useMay("editor", project);
  const grader = useGrader(project, key);
  const kinds = useKinds(project);
  const problem = grader.error ?? kinds.error;
  // What others save meanwhile does not change what is being written.
  const [opened, setOpened] = useState<Grader>();
  if (grader.data && !opened) setOpened(grader.data);
  if (opened?.latest.kind === "function") {
    return (
      <Suspense fallback={<Loading what="Loading the editor" />}>
        <FunctionPage />
      </Suspense>
    );
  }
  const why = !mayEdit
    ? "Changing a grader needs the role editor."
    : grader.data?.locked
      ? "This grader is locked: unlock it to change it."
      : "";
  return (
    <div className="page stack grader-page">
      <div>
        <p className="crumbs">
          <Link to={`/p/${project}/graders`}>Graders</Link> /{" "}
          <Link to={`/p/${project}/graders/${key}`}>{key}</Link>
        </p>
        <h1>
          Edit <span className="mono">{key}</span>
        </h1>
      </div>
      {problem && <ProblemBox problem={problem} retry={() => grader.refetch()} />}
      {!problem && (!opened || !kinds.data) && <Loading what="Loading the grader" />}
      {why && opened && (
        <p className="notice">
          {why} <Link to={`/p/${project}/graders/${key}`}>Back to the grader</Link>
        </p>
      )}
      {!why && opened && kinds.data && (
        <GraderForm
          project={project}
          kinds={kinds.data}
          kind={opened.latest.kind}
          start={opened.latest.definition as JsonObject}
          grader={opened}
          refetch={async () => {
            const { data } = await grader.refetch({ throwOnError: true });
            if (data) setOpened(data);
            return data ?? opened;
          }}
        />
      )}
    </div>
  );
}
