import { api, ask, type Schemas } from "../../api/client";

export type Trial = Schemas["Trial"];
export type Mark = Schemas["Mark"];
export type Check = Schemas["Check"];
type Body = Schemas["TryGraderBody"];

/** A kind's fields, as the API takes them. */
export type Definition = Body["definition"];

export interface SavedVersion {
  key: string;
  number: number;
}

const NOTHING = { samples: [], rows: [], take: 0, runs: true };

/** Tries a draft; nothing is stored. */
export function tryDraft(
  project: string,
  kind: string,
  definition: Definition,
  more: Partial<Body>,
  signal?: AbortSignal,
): Promise<Trial> {
  const body = { ...NOTHING, ...more, kind: kind as Body["kind"], definition };
  return ask(
    api.POST("/api/v1/projects/{project}/graders/try", {
      params: { path: { project } },
      body,
      ...(signal && { signal }),
    }),
  );
}
