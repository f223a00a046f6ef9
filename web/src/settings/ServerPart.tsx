import { $api, type Schemas } from "../api/client";
import { Command } from "../parts/Command";
import { Outcome } from "../parts/Outcome";
import { Named, Stack } from "../parts/Page";
import { Panel } from "../parts/Panel";
import { Below, type Shown, Table } from "../parts/Table";

type Server = Schemas["ServerShown"];

/** What answers here, and whether it can isolate what it grades. */
export function ServerPart() {
  const one = $api.useSuspenseQuery("get", "/api/v1/server").data;
  return (
    <Stack>
      <Named
        rows={[
          ["Version", `assay ${one.version}, Python ${one.python}, ${one.platform}`],
          [
            "Database",
            <>
              {one.database} {one.location && <code>{one.location}</code>}
            </>,
          ],
          ["Reached from", one.is_local ? "this machine only" : "other machines, with keys"],
          ["Commands run in", <Tier key="commands" name={one.commands} />],
          ["Functions run in", <Tier key="functions" name={one.functions} />],
          ["Allowed", one.allowed.map((line) => <div key={line}>{line}</div>)],
        ]}
      />
      <Panel
        title="Isolation"
        beside={
          <span className="text-soft">
            The rest of this machine: <Command text="assay doctor" />
          </span>
        }
      >
        <Table columns={CHECKS} items={one.checks} keyOf={(check) => check.name} />
      </Panel>
      <Panel title="Limits">
        <Table columns={LIMITS} items={one.limits} keyOf={(limit) => limit.name} />
      </Panel>
    </Stack>
  );
}

const CHECKS: readonly Shown<Server["checks"][number]>[] = [
  { name: "What", kind: "name", show: (check) => check.name },
  { name: "Works", show: (check) => <Outcome state={check.ok ? "pass" : "error"} /> },
  {
    name: "Because",
    show: (check) => (
      <span className="wrap-anywhere">
        {check.detail}
        {check.fix && <Below>fix: {check.fix}</Below>}
      </span>
    ),
  },
];

const LIMITS: readonly Shown<Server["limits"][number]>[] = [
  { name: "What", kind: "name", show: (limit) => limit.name },
  { name: "At most", kind: "number", show: (limit) => limit.value },
  { name: "Then", show: (limit) => <span className="text-soft">{limit.about}</span> },
];

function Tier({ name }: { name: string }) {
  if (name) return <Outcome state="pass" text={name} />;
  return <Outcome state="error" text="no sandbox works: nothing untrusted is run" />;
}
