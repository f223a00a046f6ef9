import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, ask, type Schemas } from "../api/client";
import { Command } from "../parts/Command";
import { Confirm } from "../parts/Dialog";
import { Empty } from "../parts/Empty";
import { moment } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { Outcome } from "../parts/Outcome";
import { ProblemBox } from "../parts/ProblemBox";
import { Needs, type Part, where } from "./MePart";

type Key = Schemas["KeyRecord"];
type Role = Key["role"];

/** The keys of people and programs: made, shown once, revoked. */
export function KeysPart({ me }: Part) {
  const isAdmin = me.role === "admin";
  const [made, setMade] = useState<Schemas["MadeKey"] | null>(null);
  const [leaving, setLeaving] = useState<Key | null>(null);
  const keys = useInfiniteQuery({
    queryKey: ["keys"],
    enabled: isAdmin,
    initialPageParam: "",
    queryFn: ({ signal, pageParam }) =>
      ask(
        api.GET("/api/v1/keys", {
          params: { query: { limit: 100, ...(pageParam ? { after: pageParam } : {}) } },
          signal,
        }),
      ),
    getNextPageParam: (last) => last.next ?? undefined,
  });
  if (!isAdmin) return <Needs what="Keys are managed by admins." />;
  const found = keys.data?.pages.flatMap((part) => part.items);
  return (
    <div className="stack">
      <NewKey me={me} made={setMade} />
      {made && <Token made={made} close={() => setMade(null)} />}
      {keys.isPending && <Loading what="Loading keys" />}
      {keys.error && <ProblemBox problem={keys.error} retry={() => keys.refetch()} />}
      {found?.length === 0 && (
        <Empty
          title="No keys yet"
          command="assay server create keys ci --role editor --expires 90d"
        >
          <p>People and programs elsewhere need one; this machine's one-time link needs none.</p>
        </Empty>
      )}
      {found && found.length > 0 && (
        <div className="scrolls">
          <table className="keys-table">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Begins with</th>
                <th scope="col">Role</th>
                <th scope="col">Project</th>
                <th scope="col">Made</th>
                <th scope="col">Last used</th>
                <th scope="col">State</th>
                <th scope="col">
                  <span className="sr">Revoke</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {found.map((key) => (
                <KeyRow key={key.id} one={key} revoke={() => setLeaving(key)} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {keys.hasNextPage && (
        <button type="button" disabled={keys.isFetching} onClick={() => keys.fetchNextPage()}>
          Show more keys
        </button>
      )}
      {leaving && (
        <Revoke one={leaving} isOwn={leaving.id === me.id} close={() => setLeaving(null)} />
      )}
    </div>
  );
}

function KeyRow({ one, revoke }: { one: Key; revoke: () => void }) {
  const isOver = one.expires_at !== "" && new Date(one.expires_at).getTime() <= Date.now();
  const isGone = one.revoked_at !== "" || isOver;
  return (
    <tr className={isGone ? "gone" : ""}>
      <td className="name anywhere">{one.name}</td>
      <td className="mono">{one.prefix}…</td>
      <td>{one.role}</td>
      <td>{where(one.project)}</td>
      <td className="nowrap">{moment(one.created_at)}</td>
      <td className="nowrap">{one.last_used_at ? moment(one.last_used_at) : "never"}</td>
      <td className="nowrap">
        {one.revoked_at ? (
          <Outcome state="fail" text={`revoked ${moment(one.revoked_at)}`} />
        ) : isOver ? (
          <Outcome state="skipped" text={`expired ${moment(one.expires_at)}`} />
        ) : one.expires_at ? (
          <Outcome state="pass" text={`until ${moment(one.expires_at)}`} />
        ) : (
          <Outcome state="pass" text="for ever" />
        )}
      </td>
      <td>
        {!isGone && (
          <button type="button" className="danger" onClick={revoke}>
            Revoke …<span className="sr"> {one.name}</span>
          </button>
        )}
      </td>
    </tr>
  );
}

function NewKey({ me, made }: Part & { made: (key: Schemas["MadeKey"]) => void }) {
  const known = useQueryClient();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("editor");
  const [project, setProject] = useState(me.project);
  const [days, setDays] = useState("90");
  const projects = useQuery({
    queryKey: ["projects"],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/projects", { params: { query: { limit: 200 } }, signal })),
  });
  const make = useMutation({
    mutationFn: () =>
      ask(
        api.POST("/api/v1/keys", {
          body: { name, role, project, days: days === "" ? null : Number(days) },
        }),
      ),
    onSuccess: async (key) => {
      made(key);
      setName("");
      await known.invalidateQueries({ queryKey: ["keys"] });
    },
  });
  const send = (event: FormEvent) => {
    event.preventDefault();
    make.mutate();
  };
  return (
    <form className="panel" onSubmit={send} aria-label="New key">
      <div className="row">
        <label>
          <span>Name</span>
          <input
            required
            maxLength={200}
            placeholder="who or what uses it"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        <label>
          <span>Role</span>
          <select value={role} onChange={(event) => setRole(event.target.value as Role)}>
            <option value="viewer">viewer: reads</option>
            <option value="editor">editor: stores and grades</option>
            <option value="admin">admin: manages keys, too</option>
          </select>
        </label>
        <label>
          <span>Project</span>
          <select value={project} onChange={(event) => setProject(event.target.value)}>
            {me.project === "*" && <option value="*">all projects</option>}
            {projects.data?.items.map((one) => (
              <option key={one.key}>{one.key}</option>
            ))}
          </select>
        </label>
        <label>
          <span>Good for</span>
          <select value={days} onChange={(event) => setDays(event.target.value)}>
            <option value="1">a day</option>
            <option value="30">30 days</option>
            <option value="90">90 days</option>
            <option value="365">a year</option>
            <option value="">ever</option>
          </select>
        </label>
        <button
          type="submit"
          className="primary settings-form-end"
          disabled={!name || make.isPending}
        >
          Make a key
        </button>
      </div>
      {make.error && <ProblemBox problem={make.error} />}
    </form>
  );
}

/** The token of a new key; whoever leaves has seen it for the last time. */
function Token({ made, close }: { made: Schemas["MadeKey"]; close: () => void }) {
  return (
    <section className="panel key-token" aria-label="The new key">
      <h2>The key of {made.name}</h2>
      <p role="status">It is shown this once and stored nowhere. Copy it now.</p>
      <div>
        <Command text={made.token} />
      </div>
      <div>
        <button type="button" onClick={close}>
          I have copied it
        </button>
      </div>
    </section>
  );
}

function Revoke({ one, isOwn, close }: { one: Key; isOwn: boolean; close: () => void }) {
  const known = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => ask(api.DELETE("/api/v1/keys/{id}", { params: { path: { id: one.id } } })),
    onSuccess: async () => {
      await known.invalidateQueries({ queryKey: ["keys"] });
      close();
    },
  });
  return (
    <Confirm
      title={`Revoke ${one.name}?`}
      action="Revoke"
      disabled={revoke.isPending}
      close={close}
      confirm={() => revoke.mutate()}
    >
      <p>
        Whatever uses this key is refused from now on. It cannot be undone; a new key can be made.
      </p>
      {isOwn && <p>This is the key that you are logged in with: you will be logged out.</p>}
      {one.last_used_at && <p>It was used last on {moment(one.last_used_at)}.</p>}
      {revoke.error && <ProblemBox problem={revoke.error} />}
    </Confirm>
  );
}
