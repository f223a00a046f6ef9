import { useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useParams } from "react-router";
import { useProject } from "../../api/me";
import { useAddress } from "../../parts/address";
import type { JsonObject } from "../../parts/json";
import { Page } from "../../parts/Page";
import { graderQuery, type Kinds, useKinds } from "../queries";
import { GraderEditor } from "./GraderEditor";

/** Writes a grader: a new one of the kind in the address, or the next version of a stored one. */
export default function EditorPage() {
  const { key } = useParams();
  return key === undefined ? <New /> : <Stored key={key} grader={key} />;
}

function New() {
  const project = useProject();
  const { kind = "" } = useParams();
  const [given] = useAddress({ type: "", family: "" });
  const kinds = useKinds(project);
  if (!kinds.kinds.some((one) => one.name === kind)) {
    return (
      <Page title="New grader">
        There is no kind <code>{kind}</code>.{" "}
        <Link to={`/p/${project}/graders/new`}>Choose one</Link>
      </Page>
    );
  }
  const slot = `new ${kind} ${given.type || given.family}`.trim();
  return (
    <GraderEditor
      key={`${project} ${slot}`}
      slot={slot}
      project={project}
      kinds={kinds}
      kind={kind}
      grader={null}
      start={begun(kinds, kind, given)}
    />
  );
}

function Stored({ grader: key }: { grader: string }) {
  const project = useProject();
  const kinds = useKinds(project);
  const grader = useSuspenseQuery(graderQuery(project, key)).data;
  // What others save meanwhile does not change what is being written.
  const [opened] = useState(grader);
  return (
    <GraderEditor
      slot={key}
      project={project}
      kinds={kinds}
      kind={opened.latest.kind}
      grader={opened}
      start={{}}
    />
  );
}

const EXAMPLE = `async def grade(thread: StringThread) -> float:
    answer = (thread.completion() or "").strip()
    expected = str(thread.metadata.get("expected", "")).strip()
    return 1.0 if expected and answer == expected else 0.0
`;

/** What a new grader of a kind begins as. */
function begun(
  kinds: Kinds,
  kind: string,
  { type, family }: { type: string; family: string },
): JsonObject {
  if (kind === "function") return { source: EXAMPLE };
  if (kind === "binary_judge") return { criteria: "" };
  if (kind === "prebuilt_judge") return { type: "FAITHFULNESS" };
  if (kind === "external_endpoint") return { url: "" };
  if (kind !== "declared") return {};
  const first = family && kinds.declared.find((one) => one.family === family)?.name;
  return { graders: [{ type: type || first || "exact_match" }] };
}
