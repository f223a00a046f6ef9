import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { $api, api, ask, type Schemas } from "../api/client";
import { useList } from "../api/lists";
import { Button } from "../parts/Button";
import { Choice } from "../parts/Choice";
import { Command } from "../parts/Command";
import { Confirm } from "../parts/Dialog";
import { Empty } from "../parts/Empty";
import { FORM_ROW } from "../parts/Field";
import { moment } from "../parts/figures";
import { More } from "../parts/More";
import { Outcome } from "../parts/Outcome";
import { Stack } from "../parts/Page";
import { ProblemBox } from "../parts/ProblemBox";
import { type Shown, Table } from "../parts/Table";
import { TextField } from "../parts/TextField";
import { When } from "../parts/When";
import { Needs, type Part, where } from "./MePart";

type Key = Schemas["KeyRecord"];
type Role = Key["role"];

const KEYS = { queryKey: ["get", "/api/v1/keys"] };

/** The keys of people and programs: made, shown once, revoked. */
export function KeysPart({ me }: Part) {
  const [made, setMade] = useState<Schemas["MadeKey"] | null>(null);
  if (me.role !== "admin") return <Needs what="Keys are managed by admins." />;
  return (
    <Stack>
      <NewKey me={me} made={setMade} />
      {made && <Token made={made} close={() => setMade(null)} />}
      <Keys me={me} />
    </Stack>
  );
}

function Keys({ me }: Part) {
  const [leaving, setLeaving] = useState<Key | null>(null);
  const keys = useList(KEYS.queryKey, (rest, signal) =>
    ask(api.GET("/api/v1/keys", { params: { query: { limit: 100, ...rest } }, signal })),
  );
  if (keys.items.length === 0) {
    return (
      <Empty title="No keys yet" command="assay server create keys ci --role editor --expires 90d">
        <p>People and programs elsewhere need one; this machine's one-time link needs none.</p>
      </Empty>
    );
  }
  return (
    <div>
      <Table
        columns={[...COLUMNS, revoking(setLeaving)]}
        items={keys.items}
        keyOf={(one) => one.id}
        lookOf={(one) => (isGone(one) ? "text-soft [&_.name]:line-through" : "")}
      />
      <More found={keys} what="Show more keys" />
      {leaving && (
        <Revoke one={leaving} isOwn={leaving.id === me.id} close={() => setLeaving(null)} />
      )}
    </div>
  );
}

const isOver = (one: Key) =>
  one.expires_at !== "" && new Date(one.expires_at).getTime() <= Date.now();
const isGone = (one: Key) => one.revoked_at !== "" || isOver(one);

const COLUMNS: readonly Shown<Key>[] = [
  {
    name: "Name",
    kind: "name",
    show: (one) => <span className="name">{one.name}</span>,
    below: (one) => <code>{one.prefix}…</code>,
  },
  { name: "State", show: (one) => <State one={one} /> },
  { name: "Role", from: "md", show: (one) => one.role },
  { name: "Project", from: "md", show: (one) => where(one.project) },
  { name: "Made", kind: "number", from: "lg", show: (one) => <When at={one.created_at} /> },
  {
    name: "Last used",
    kind: "number",
    from: "md",
    show: (one) => (one.last_used_at ? <When at={one.last_used_at} /> : "never"),
  },
];

function revoking(revoke: (one: Key) => void): Shown<Key> {
  return {
    name: "Revoke",
    kind: "number",
    isMute: true,
    show: (one) =>
      !isGone(one) && (
        <Button tone="quiet" onPress={() => revoke(one)}>
          Revoke …<span className="sr-only"> {one.name}</span>
        </Button>
      ),
  };
}

function State({ one }: { one: Key }) {
  if (one.revoked_at) return <Outcome state="fail" text={`revoked ${moment(one.revoked_at)}`} />;
  if (isOver(one)) return <Outcome state="skipped" text={`expired ${moment(one.expires_at)}`} />;
  return (
    <Outcome state="pass" text={one.expires_at ? `until ${moment(one.expires_at)}` : "for ever"} />
  );
}

const ROLES = [
  ["viewer", "viewer: reads"],
  ["editor", "editor: stores and grades"],
  ["admin", "admin: manages keys, too"],
] as const;
const TERMS = [
  ["1", "a day"],
  ["30", "30 days"],
  ["90", "90 days"],
  ["365", "a year"],
  ["", "ever"],
] as const;

function NewKey({ me, made }: Part & { made: (key: Schemas["MadeKey"]) => void }) {
  const known = useQueryClient();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("editor");
  const [project, setProject] = useState(me.project);
  const [days, setDays] = useState<(typeof TERMS)[number][0]>("90");
  const projects = $api.useQuery("get", "/api/v1/projects", { params: { query: { limit: 200 } } });
  const make = $api.useMutation("post", "/api/v1/keys", {
    onSuccess: async (key) => {
      made(key);
      setName("");
      await known.invalidateQueries(KEYS);
    },
  });
  const send = (event: FormEvent) => {
    event.preventDefault();
    make.mutate({ body: { name, role, project, days: days === "" ? null : Number(days) } });
  };
  const named = (projects.data?.items ?? []).map(({ key }) => [key, key] as const);
  return (
    <form onSubmit={send} aria-label="New key">
      <div className={FORM_ROW}>
        <TextField
          label="Name"
          required
          maxLength={200}
          placeholder="who or what uses it"
          value={name}
          change={setName}
        />
        <Choice label="Role" value={role} options={ROLES} change={setRole} />
        <Choice
          label="Project"
          value={project}
          options={me.project === "*" ? [["*", "all projects"], ...named] : named}
          change={setProject}
        />
        <Choice label="Good for" value={days} options={TERMS} change={setDays} />
        <Button type="submit" tone="primary" isDisabled={!name} isPending={make.isPending}>
          Make a key
        </Button>
      </div>
      {make.error && <ProblemBox problem={make.error} />}
    </form>
  );
}

/** The token of a new key; whoever leaves has seen it for the last time. */
function Token({ made, close }: { made: Schemas["MadeKey"]; close: () => void }) {
  return (
    <section
      aria-label="The new key"
      className="grid justify-items-start gap-3 rounded-lg bg-pass-soft p-5"
    >
      <h2 className="m-0 text-lg font-semibold wrap-anywhere">The key of {made.name}</h2>
      <p role="status" className="m-0">
        It is shown this once and stored nowhere. Copy it now.
      </p>
      <Command text={made.token} />
      <Button onPress={close}>I have copied it</Button>
    </section>
  );
}

function Revoke({ one, isOwn, close }: { one: Key; isOwn: boolean; close: () => void }) {
  const known = useQueryClient();
  const revoke = $api.useMutation("delete", "/api/v1/keys/{id}", {
    onSuccess: async () => {
      await known.invalidateQueries(KEYS);
      close();
    },
  });
  return (
    <Confirm
      title={`Revoke ${one.name}?`}
      action="Revoke"
      work={revoke}
      close={close}
      confirm={() => revoke.mutate({ params: { path: { id: one.id } } })}
    >
      <p className="m-0">
        Whatever uses this key is refused from now on. It cannot be undone; a new key can be made.
      </p>
      {isOwn && <p>This is the key that you are logged in with: you will be logged out.</p>}
      {one.last_used_at && <p>It was used last on {moment(one.last_used_at)}.</p>}
    </Confirm>
  );
}
