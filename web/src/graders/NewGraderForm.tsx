import { Link, useParams, useSearchParams } from "react-router";
import { useProject } from "../api/me";
import type { JsonObject } from "../parts/json";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import { usePageTitle } from "../parts/title";
import { GraderForm } from "./GraderForm";
import { type Kinds, useKinds } from "./queries";
import "./graders.css";

/** A form for a new grader of one kind. */
export default function NewGraderForm() {
  const project = useProject();
  const { kind = "" } = useParams();
  const [given] = useSearchParams();
  const kinds = useKinds(project);
  const found = kinds.data?.kinds.find((one) => one.name === kind);
  const title = found ? `New ${found.title} grader` : "New grader";
  usePageTitle(title);
  return (
    <div className="page stack grader-page">
      <div>
        <p className="crumbs">
          <Link to={`/p/${project}/graders`}>Graders</Link> /{" "}
          <Link to={`/p/${project}/graders/new`}>New</Link>
        </p>
        <h1>{title}</h1>
        {found && <p className="soft">{sentence(found.description)}</p>}
      </div>
      {kinds.isPending && <Loading what="Loading the form" />}
      {kinds.error && <ProblemBox problem={kinds.error} retry={() => kinds.refetch()} />}
      {kinds.data && !found && (
        <p>
          There is no kind <code>{kind}</code>.{" "}
          <Link to={`/p/${project}/graders/new`}>Choose one</Link>
        </p>
      )}
      {kinds.data && found && (
        <GraderForm
          key={`${kind} ${given.get("type")} ${given.get("family")}`}
          project={project}
          kinds={kinds.data}
          kind={kind}
          start={begun(kinds.data, kind, given)}
        />
      )}
    </div>
  );
}

function begun(kinds: Kinds, kind: string, given: URLSearchParams): JsonObject {
  if (kind === "binary_judge") return { criteria: "" };
  if (kind === "prebuilt_judge") return { type: "FAITHFULNESS" };
  if (kind === "external_endpoint") return { url: "" };
  if (kind !== "declared") return {};
  const family = given.get("family");
  const wanted = given.get("type") ?? kinds.declared.find((one) => one.family === family)?.name;
  return { graders: [{ type: wanted ?? "exact_match" }] };
}

export function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
}
