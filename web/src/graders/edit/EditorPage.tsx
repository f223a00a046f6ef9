import { useState } from "react";
import { Link, useParams, useSearchParams } from "react-router";
import { useProject } from "../../api/me";
import type { JsonObject } from "../../parts/json";
import { Loading } from "../../parts/Loading";
import { ProblemBox } from "../../parts/ProblemBox";
import { usePageTitle } from "../../parts/title";
import { type Grader, type Kinds, useGrader, useKinds } from "../queries";
import { GraderEditor } from "./GraderEditor";

/** Writes a grader: a new one of the kind in the address, or the next version of a stored one. */
export default function EditorPage() {
  const { key } = useParams();
  return key === undefined ? <New /> : <Stored key={key} grader={key} />;
}

function New() {
  const project = useProject();
  const { kind = "" } = useParams();
  const [given] = useSearchParams();
  const kinds = useKinds(project);
  const found = kinds.data?.kinds.find((one) => one.name === kind);
  usePageTitle(found ? `New ${found.title} grader` : "New grader");
  if (!kinds.data) return <Waiting error={kinds.error} retry={kinds.refetch} />;
  if (!found) {
    return (
      <div className="page">
        <h1>There is no kind {kind}</h1>
        <Link to={`/p/${project}/graders/new`}>Choose one</Link>
      </div>
    );
  }
  const slot = `new ${kind} ${given.get("type") ?? given.get("family") ?? ""}`.trim();
  return (
    <GraderEditor
      key={`${project} ${slot}`}
      slot={slot}
      project={project}
      kinds={kinds.data}
      kind={kind}
      grader={null}
      start={begun(kinds.data, kind, given)}
    />
  );
}

function Stored({ grader: key }: { grader: string }) {
  const project = useProject();
  const kinds = useKinds(project);
  const grader = useGrader(project, key);
  usePageTitle(`Edit ${key}`);
  // What others save meanwhile does not change what is being written.
  const [opened, setOpened] = useState<Grader>();
  if (grader.data && !opened) setOpened(grader.data);
  if (!kinds.data || !opened) {
    return <Waiting error={grader.error ?? kinds.error} retry={grader.refetch} />;
  }
  return (
    <GraderEditor
      slot={key}
      project={project}
      kinds={kinds.data}
      kind={opened.latest.kind}
      grader={opened}
      start={{}}
    />
  );
}

function Waiting({ error, retry }: { error: Error | null; retry: () => void }) {
  return (
    <div className="page">
      {error ? <ProblemBox problem={error} retry={retry} /> : <Loading what="Loading the editor" />}
    </div>
  );
}

const EXAMPLE = `async def grade(thread: StringThread) -> float:
    answer = (thread.completion() or "").strip()
    expected = str(thread.metadata.get("expected", "")).strip()
    return 1.0 if expected and answer == expected else 0.0
`;

/** What a new grader of a kind begins as. */
function begun(kinds: Kinds, kind: string, given: URLSearchParams): JsonObject {
  if (kind === "function") return { source: EXAMPLE };
  if (kind === "binary_judge") return { criteria: "" };
  if (kind === "prebuilt_judge") return { type: "FAITHFULNESS" };
  if (kind === "external_endpoint") return { url: "" };
  if (kind !== "declared") return {};
  const family = given.get("family");
  const wanted = given.get("type") ?? kinds.declared.find((one) => one.family === family)?.name;
  return { graders: [{ type: wanted ?? "exact_match" }] };
}
