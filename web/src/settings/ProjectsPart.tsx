import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { Link } from "react-router";
import { api, ask, type Schemas } from "../api/client";
import { Dialog } from "../parts/Dialog";
import { moment, whole } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import type { Part } from "./MePart";

type Project = Schemas["ProjectRecord"];

/** Projects, and how much of a server each may ask for. */
export function ProjectsPart({ me }: Part) {
  const rules = me.role === "admin" && me.project === "*";
  const [limited, setLimited] = useState<Project | null>(null);
  const projects = useQuery({
    queryKey: ["projects"],
    queryFn: ({ signal }) =>
      ask(api.GET("/api/v1/projects", { params: { query: { limit: 200 } }, signal })),
  });
  return (
    <div className="stack">
      {rules && <NewProject />}
      {projects.isPending && <Loading what="Loading projects" />}
      {projects.error && <ProblemBox problem={projects.error} retry={() => projects.refetch()} />}
      {projects.data && (
        <div className="scrolls">
          <table>
            <thead>
              <tr>
                <th scope="col">Project</th>
                <th scope="col">Name</th>
                <th scope="col" className="number">
                  Requests a minute
                </th>
                <th scope="col" className="number">
                  Gradings at once
                </th>
                <th scope="col">Made</th>
                {rules && (
                  <th scope="col">
                    <span className="sr">Limits</span>
                  </th>
                )}
              </tr>
            </thead>
            <tbody>
              {projects.data.items.map((one) => (
                <tr key={one.key}>
                  <td>
                    <Link to={`/p/${one.key}/graders`}>{one.key}</Link>
                  </td>
                  <td className="anywhere">{one.name === one.key ? "" : one.name}</td>
                  <td className="number">{limit(one.requests_per_minute)}</td>
                  <td className="number">{limit(one.gradings_at_once)}</td>
                  <td className="nowrap soft">{moment(one.created_at)}</td>
                  {rules && (
                    <td>
                      <button type="button" onClick={() => setLimited(one)}>
                        Limits …<span className="sr"> of {one.key}</span>
                      </button>
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {!rules && <p className="soft">Admins of all projects make projects and limit them.</p>}
      {limited && <Limits project={limited} close={() => setLimited(null)} />}
    </div>
  );
}

const limit = (value: number | null) => (value === null ? "no limit" : whole(value));

function NewProject() {
  const known = useQueryClient();
  const [key, setKey] = useState("");
  const [name, setName] = useState("");
  const make = useMutation({
    mutationFn: () => ask(api.POST("/api/v1/projects", { body: { key, name } })),
    onSuccess: async () => {
      setKey("");
      setName("");
      await known.invalidateQueries({ queryKey: ["projects"] });
    },
  });
  const send = (event: FormEvent) => {
    event.preventDefault();
    make.mutate();
  };
  return (
    <form className="panel" onSubmit={send} aria-label="New project">
      <div className="row">
        <label>
          <span>Key</span>
          <input
            required
            pattern="[a-z0-9][a-z0-9._\-]{0,63}"
            title="Small letters, digits, dots, dashes"
            value={key}
            onChange={(event) => setKey(event.target.value)}
          />
        </label>
        <label>
          <span>Name for people (optional)</span>
          <input maxLength={200} value={name} onChange={(event) => setName(event.target.value)} />
        </label>
        <button
          type="submit"
          className="primary settings-form-end"
          disabled={!key || make.isPending}
        >
          Make a project
        </button>
      </div>
      {make.error && <ProblemBox problem={make.error} />}
    </form>
  );
}

function Limits({ project, close }: { project: Project; close: () => void }) {
  const known = useQueryClient();
  const [requests, setRequests] = useState(String(project.requests_per_minute ?? ""));
  const [gradings, setGradings] = useState(String(project.gradings_at_once ?? ""));
  const save = useMutation({
    mutationFn: () =>
      ask(
        api.PUT("/api/v1/projects/{project}/limits", {
          params: { path: { project: project.key } },
          body: { requests_per_minute: number(requests), gradings_at_once: number(gradings) },
        }),
      ),
    onSuccess: async () => {
      await known.invalidateQueries({ queryKey: ["projects"] });
      close();
    },
  });
  const send = (event: FormEvent) => {
    event.preventDefault();
    save.mutate();
  };
  return (
    <Dialog title={`Limits of ${project.key}`} close={close}>
      <form className="stack" onSubmit={send}>
        <p className="soft">They hold on each server within seconds. Empty is no limit.</p>
        <label>
          <span>Requests a minute; more are refused</span>
          <input
            type="number"
            min={1}
            max={1_000_000}
            value={requests}
            onChange={(event) => setRequests(event.target.value)}
          />
        </label>
        <label>
          <span>Gradings of a sort, and jobs, at once; more wait</span>
          <input
            type="number"
            min={1}
            max={1_000_000}
            value={gradings}
            onChange={(event) => setGradings(event.target.value)}
          />
        </label>
        {save.error && <ProblemBox problem={save.error} />}
        <div className="row end">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={save.isPending}>
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}

const number = (text: string) => (text === "" ? null : Number(text));
