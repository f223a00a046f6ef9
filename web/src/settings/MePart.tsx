import type { Schemas } from "../api/client";
import { Empty } from "../parts/Empty";
import { Named } from "../parts/Page";

export interface Part {
  me: Schemas["Identity"];
}

const MAY: Record<Schemas["Identity"]["role"], string> = {
  viewer: "read everything",
  editor: "read, store, grade and label",
  admin: "read, store, grade, and manage keys",
};

export const where = (project: string) => (project === "*" ? "all projects" : project);

/** Who is asking. */
export function MePart({ me }: Part) {
  const isLocal = me.id === "local";
  return (
    <Named
      rows={[
        [
          "You are",
          <>
            <b className="font-medium">{me.name}</b>
            {isLocal && " (whoever used this server's one-time link)"}
          </>,
        ],
        ["Role", `${me.role}: you may ${MAY[me.role]}`],
        ["In", where(me.project)],
        ...(isLocal ? [] : [["Key", <code key="key">{me.id}</code>] as const]),
      ]}
    />
  );
}

/** Shown in place of what needs more than the caller has. */
export function Needs({ what }: { what: string }) {
  return (
    <Empty title={what}>
      <p>Ask whoever gave you your key for one that may.</p>
    </Empty>
  );
}
