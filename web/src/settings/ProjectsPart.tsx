import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { Link } from "react-router";
import { $api, type Schemas } from "../api/client";
import { Button } from "../parts/Button";
import { FormDialog } from "../parts/Dialog";
import { FORM_ROW } from "../parts/Field";
import { whole } from "../parts/figures";
import { KeyFields } from "../parts/KeyFields";
import { Stack } from "../parts/Page";
import { ProblemBox } from "../parts/ProblemBox";
import { type Shown, Table } from "../parts/Table";
import { TextField } from "../parts/TextField";
import { When } from "../parts/When";
import type { Part } from "./MePart";

type Project = Schemas["ProjectRecord"];

const PROJECTS = { queryKey: ["get", "/api/v1/projects"] };

/** Projects, and how much of a server each may ask for. */
export function ProjectsPart({ me }: Part) {
  const rules = me.role === "admin" && me.project === "*";
  const [limited, setLimited] = useState<Project | null>(null);
  const projects = $api.useSuspenseQuery("get", "/api/v1/projects", {
    params: { query: { limit: 200 } },
  }).data.items;
  const limiting: Shown<Project> = {
    name: "Limits",
    kind: "number",
    isMute: true,
    show: (one) => (
      <Button tone="quiet" onPress={() => setLimited(one)}>
        Limits …<span className="sr-only"> of {one.key}</span>
      </Button>
    ),
  };
  return (
    <Stack>
      {rules && <NewProject />}
      <Table
        columns={rules ? [...COLUMNS, limiting] : COLUMNS}
        items={projects}
        keyOf={(one) => one.key}
      />
      {!rules && (
        <p className="m-0 text-soft">Admins of all projects make projects and limit them.</p>
      )}
      {limited && <Limits project={limited} close={() => setLimited(null)} />}
    </Stack>
  );
}

const limit = (value: number | null) => (value === null ? "no limit" : whole(value));

const COLUMNS: readonly Shown<Project>[] = [
  {
    name: "Project",
    kind: "name",
    show: (one) => <Link to={`/p/${one.key}/graders`}>{one.key}</Link>,
    below: (one) => one.name !== one.key && one.name,
  },
  {
    name: "Requests a minute",
    kind: "number",
    from: "md",
    show: (one) => limit(one.requests_per_minute),
  },
  {
    name: "Gradings at once",
    kind: "number",
    from: "md",
    show: (one) => limit(one.gradings_at_once),
  },
  { name: "Made", kind: "number", show: (one) => <When at={one.created_at} /> },
];

const UNNAMED = { key: "", name: "" };

function NewProject() {
  const known = useQueryClient();
  const [called, setCalled] = useState(UNNAMED);
  const make = $api.useMutation("post", "/api/v1/projects", {
    onSuccess: async () => {
      setCalled(UNNAMED);
      await known.invalidateQueries(PROJECTS);
    },
  });
  const send = (event: FormEvent) => {
    event.preventDefault();
    make.mutate({ body: called });
  };
  return (
    <form onSubmit={send} aria-label="New project">
      <div className={FORM_ROW}>
        <KeyFields called={called} change={setCalled} />
        <Button type="submit" tone="primary" isDisabled={!called.key} isPending={make.isPending}>
          Make a project
        </Button>
      </div>
      {make.error && <ProblemBox problem={make.error} />}
    </form>
  );
}

function Limits({ project, close }: { project: Project; close: () => void }) {
  const known = useQueryClient();
  const [requests, setRequests] = useState(String(project.requests_per_minute ?? ""));
  const [gradings, setGradings] = useState(String(project.gradings_at_once ?? ""));
  const save = $api.useMutation("put", "/api/v1/projects/{project}/limits", {
    onSuccess: async () => {
      await known.invalidateQueries(PROJECTS);
      close();
    },
  });
  const submit = () =>
    save.mutate({
      params: { path: { project: project.key } },
      body: { requests_per_minute: number(requests), gradings_at_once: number(gradings) },
    });
  const bounds = { type: "number", min: 1, max: 1_000_000 };
  return (
    <FormDialog
      title={`Limits of ${project.key}`}
      action="Save"
      work={save}
      close={close}
      submit={submit}
    >
      <p className="m-0 text-soft">They hold on each server within seconds. Empty is no limit.</p>
      <TextField
        {...bounds}
        label="Requests a minute; more are refused"
        value={requests}
        change={setRequests}
      />
      <TextField
        {...bounds}
        label="Gradings of a sort, and jobs, at once; more wait"
        value={gradings}
        change={setGradings}
      />
    </FormDialog>
  );
}

const number = (text: string) => (text === "" ? null : Number(text));
