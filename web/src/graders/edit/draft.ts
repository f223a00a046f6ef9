import { api, ask, type Schemas } from "../../api/client";
import type { Definition } from "./trial";

export type Grader = Schemas["GraderDetail"];

/** What a person writes of a function grader; numbers are text while they are typed. */
export interface Draft {
  key: string;
  name: string;
  description: string;
  feedbackKey: string;
  note: string;
  source: string;
  isolation: "call" | "batch";
  low: string;
  high: string;
}

const EXAMPLE = `async def grade(thread: StringThread) -> float:
    answer = (thread.completion() or "").strip()
    expected = str(thread.metadata.get("expected", "")).strip()
    return 1.0 if expected and answer == expected else 0.0
`;

/** What is stored, as a person sees it; an example to begin with where nothing is. */
export function draftOf(grader: Grader | null): Draft {
  const definition = (grader?.latest.definition ?? { source: EXAMPLE }) as {
    source?: string;
    isolation?: Draft["isolation"];
    range?: [number, number] | null;
  };
  const [low, high] = definition.range ?? [];
  return {
    key: grader?.key ?? "",
    name: grader && grader.name !== grader.key ? grader.name : "",
    description: grader?.description ?? "",
    feedbackKey: grader && grader.feedback_key !== grader.key ? grader.feedback_key : "",
    note: "",
    source: definition.source ?? "",
    isolation: definition.isolation ?? "call",
    low: low === undefined ? "" : String(low),
    high: high === undefined ? "" : String(high),
  };
}

export function isSame(one: Draft, other: Draft): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** The definition that a draft is; null where its range has one end only. */
export function definitionOf(draft: Draft): Definition | null {
  const { source, isolation, low, high } = draft;
  if ((low === "") !== (high === "")) return null;
  return {
    source,
    ...(isolation !== "call" && { isolation }),
    ...(low !== "" && { range: [Number(low), Number(high)] }),
  } as Definition;
}

/** Stores a draft: a new grader, or a new version of the one that was seen. */
export async function saveDraft(
  project: string,
  draft: Draft,
  definition: Definition,
  base: Grader | null,
  number: number,
): Promise<Grader> {
  const path = { project, key: draft.key };
  const said = {
    name: draft.name || draft.key,
    description: draft.description,
    feedback_key: draft.feedbackKey || draft.key,
  };
  const stored = { kind: "function" as const, definition, note: draft.note, samples: [] };
  if (base === null) {
    const body = { ...stored, ...said, key: draft.key };
    return ask(
      api.POST("/api/v1/projects/{project}/graders", { params: { path: { project } }, body }),
    );
  }
  const saved = await ask(
    api.PUT("/api/v1/projects/{project}/graders/{key}", {
      params: { path, header: { "if-match": `"${base.key}@${number}"` } },
      body: stored,
    }),
  );
  const before = draftOf(base);
  const isDescribed =
    before.name === draft.name &&
    before.description === draft.description &&
    before.feedbackKey === draft.feedbackKey;
  if (isDescribed) return saved;
  const described = await ask(
    api.PATCH("/api/v1/projects/{project}/graders/{key}", { params: { path }, body: said }),
  );
  return { ...saved, ...described };
}
