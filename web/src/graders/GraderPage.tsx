import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useParams, useSearchParams } from "react-router";
import { api, ask } from "../api/client";
import { useMay, useProject } from "../api/me";
import { moment } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import { usePageTitle } from "../parts/title";
import { CalibrationCard } from "./CalibrationCard";
import { CopyAs } from "./CopyAs";
import { DefinitionView } from "./DefinitionView";
import { DeleteGrader } from "./DeleteGrader";
import { ExportGraders } from "./Files";
import { Locked } from "./GraderTable";
import { type Grader, KIND_TITLES, useForget, useGrader } from "./queries";
import { UsePanel } from "./UsePanel";
import { Versions } from "./Versions";
import "./graders.css";

/** One grader: what it is, how it became so, how far it can be trusted, and what depends on it. */
export default function GraderPage() {
  const project = useProject();
  const { key = "" } = useParams();
  usePageTitle(key);
  const [given] = useSearchParams();
  const number = Number(given.get("version")) || undefined;
  const grader = useGrader(project, key, number);
  return (
    <div className="page stack grader-page">
      <p className="crumbs">
        <Link to={`/p/${project}/graders`}>Graders</Link>
      </p>
      {grader.error && <ProblemBox problem={grader.error} retry={() => grader.refetch()} />}
      {grader.isPending && <Loading what="Loading the grader" />}
      {grader.data && <Shown project={project} grader={grader.data} asked={number} />}
    </div>
  );
}

function Shown({ project, grader, asked }: ShownProps) {
  const { key, name, description, locked, latest } = grader;
  const newest = useGrader(project, key).data?.latest.number ?? latest.number;
  const isOld = asked !== undefined && latest.number < newest;
  return (
    <>
      <Head project={project} grader={grader} />
      {name !== key && <p className="name">{name}</p>}
      {description && <p className="described">{description}</p>}
      <p className="facts">
        <span className="badge">{KIND_TITLES[latest.kind] ?? latest.kind}</span>
        <span className="badge">version {latest.number}</span>
        {locked && <Locked />}
        <span>
          {moment(latest.created_at)}
          {latest.created_by && ` by ${latest.created_by}`}
        </span>
        {latest.note && <span>“{latest.note}”</span>}
        <span className="mono digest" title={`Digest of what gives its scores: ${latest.digest}`}>
          {latest.digest.slice(0, 12)}
        </span>
      </p>
      {isOld && (
        <p className="notice">
          This is version {latest.number} of {newest}.{" "}
          <Link to={`/p/${project}/graders/${key}`}>Show the newest</Link>
        </p>
      )}
      {grader.warnings.length > 0 && (
        <ul className="notice">
          {grader.warnings.map((warning) => (
            <li key={warning}>{warning}</li>
          ))}
        </ul>
      )}
      <div className="detail">
        <div className="stack">
          <DefinitionView project={project} version={latest} />
          <Versions project={project} grader={key} newest={newest} shown={latest.number} />
        </div>
        <div className="stack">
          <CalibrationCard project={project} grader={grader} />
          <UsePanel project={project} grader={key} />
          <CopyAs project={project} grader={key} />
        </div>
      </div>
    </>
  );
}

function Head({ project, grader }: { project: string; grader: Grader }) {
  const { key, locked } = grader;
  const mayEdit = useMay("editor", project);
  const forget = useForget();
  const [isOpen, setOpen] = useState(false);
  const lock = useMutation({
    mutationFn: (wanted: boolean) =>
      ask(
        api.PUT("/api/v1/projects/{project}/graders/{key}/lock", {
          params: { path: { project, key } },
          body: { locked: wanted },
        }),
      ),
    onSettled: () => forget(project, key),
  });
  const why = !mayEdit ? "Needs the role editor" : locked ? "Locked: unlock it first" : undefined;
  return (
    <>
      <div className="page-head">
        <h1 className="mono">{key}</h1>
        <div className="row">
          <ExportGraders project={project} keys={[key]} />
          <button
            type="button"
            disabled={!mayEdit || lock.isPending}
            title={mayEdit ? undefined : "Needs the role editor"}
            onClick={() => lock.mutate(!locked)}
          >
            {locked ? "Unlock" : "Lock"}
          </button>
          <button
            type="button"
            className="danger"
            disabled={why !== undefined}
            title={why}
            onClick={() => setOpen(true)}
          >
            Delete
          </button>
          {why ? (
            <button type="button" className="primary" disabled title={why}>
              Edit
            </button>
          ) : (
            <Link className="button primary" to={`/p/${project}/graders/${key}/edit`}>
              Edit
            </Link>
          )}
        </div>
      </div>
      {lock.error && <ProblemBox problem={lock.error} />}
      {isOpen && <DeleteGrader project={project} grader={key} close={() => setOpen(false)} />}
    </>
  );
}

interface ShownProps {
  project: string;
  grader: Grader;
  asked: number | undefined;
}
