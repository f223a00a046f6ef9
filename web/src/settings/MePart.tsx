import type { Schemas } from "../api/client";

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
  return (
    <dl className="named">
      <dt>You are</dt>
      <dd>
        <b>{me.name}</b>
        {me.id === "local" && " (whoever used this server's one-time link)"}
      </dd>
      <dt>Role</dt>
      <dd>
        {me.role}: you may {MAY[me.role]}
      </dd>
      <dt>In</dt>
      <dd>{where(me.project)}</dd>
      {me.id !== "local" && (
        <>
          <dt>Key</dt>
          <dd>
            <code>{me.id}</code>
          </dd>
        </>
      )}
    </dl>
  );
}

/** Shown in place of what needs more than the caller has. */
export function Needs({ what }: { what: string }) {
  return <p className="empty">{what} Ask whoever gave you your key for one that may.</p>;
}
