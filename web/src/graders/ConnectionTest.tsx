import { useMutation } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../api/client";
import { useMay } from "../api/me";
import type { JsonObject } from "../parts/json";
import { ProblemBox } from "../parts/ProblemBox";

/** Asks an endpoint whether it answers. */
export function ConnectionTest({ project, definition }: TestProps) {
  const mayEdit = useMay("editor", project);
  const asked = JSON.stringify(definition);
  const test = useMutation({
    mutationFn: async (wanted: string) => ({
      wanted,
      report: await ask(
        api.POST("/api/v1/projects/{project}/grader-kinds/external_endpoint/probe", {
          params: { path: { project } },
          body: { definition: JSON.parse(wanted) } as Schemas["ProbeEndpointBody"],
        }),
      ),
    }),
  });
  const report = test.data?.wanted === asked ? test.data.report : undefined;
  return (
    <section className="panel preview" aria-label="Connection test">
      <h2>Connection</h2>
      <p className="soft">
        The server asks the endpoint what it is, within 10 seconds. Nothing is graded or stored.
      </p>
      <button
        type="button"
        disabled={!mayEdit || test.isPending}
        title={mayEdit ? undefined : "Needs the role editor"}
        onClick={() => test.mutate(asked)}
      >
        {test.isPending ? "Asking …" : "Test the connection"}
      </button>
      <div aria-live="polite">
        {test.error && !test.isPending && <ProblemBox problem={test.error} />}
        {report && <Report report={report} />}
      </div>
    </section>
  );
}

function Report({ report }: { report: Schemas["EndpointReport"] }) {
  if (!report.online) {
    return (
      <div className="endpoint-tried">
        <p>
          <span className="outcome error">! It does not answer</span>
        </p>
        <p className="told">{report.error}</p>
      </div>
    );
  }
  return (
    <div className="endpoint-tried">
      <p>
        <span className="outcome pass">✓ It answers</span>{" "}
        <span className="soft">{Math.max(1, Math.round(report.milliseconds))} ms</span>
      </p>
      <p className="told">
        {report.name && <strong>{report.name}</strong>} {report.version}
        {report.description && <span className="soft"> – {report.description}</span>}
      </p>
    </div>
  );
}

interface TestProps {
  project: string;
  definition: JsonObject;
}
