import { $api, type Schemas } from "../api/client";
import { useMay } from "../api/me";
import { Button } from "../parts/Button";
import type { JsonObject } from "../parts/json";
import { Outcome } from "../parts/Outcome";
import { Panel } from "../parts/Panel";
import { ProblemBox } from "../parts/ProblemBox";

/** Asks an endpoint whether it answers. */
export function ConnectionTest({ project, definition }: TestProps) {
  const mayEdit = useMay("editor", project);
  const test = $api.useMutation(
    "post",
    "/api/v1/projects/{project}/grader-kinds/external_endpoint/probe",
  );
  const asked = JSON.stringify(test.variables?.body.definition);
  return (
    <Panel
      title="Connection"
      beside={
        mayEdit && (
          <Button
            isPending={test.isPending}
            onPress={() =>
              test.mutate({ params: { path: { project } }, body: { definition } } as Asked)
            }
          >
            {test.isPending ? "Asking …" : "Test the connection"}
          </Button>
        )
      }
    >
      <p className="mb-3 text-soft">
        The server asks the endpoint what it is, within 10 seconds. Nothing is graded or stored.
      </p>
      <div aria-live="polite">
        {test.error && !test.isPending && <ProblemBox problem={test.error} />}
        {test.data && asked === JSON.stringify(definition) && <Report report={test.data} />}
      </div>
    </Panel>
  );
}

function Report({ report }: { report: Schemas["EndpointReport"] }) {
  const { online, error, name, version, description, milliseconds } = report;
  return (
    <div className="rounded-lg bg-sunk p-4 wrap-anywhere">
      <p className="m-0 mb-1">
        <Outcome
          state={online ? "pass" : "error"}
          text={online ? "It answers" : "It does not answer"}
        />{" "}
        {online && <span className="text-soft">{Math.max(1, Math.round(milliseconds))} ms</span>}
      </p>
      {online ? (
        <p className="m-0">
          {name && <strong className="font-medium">{name}</strong>} {version}
          {description && <span className="text-soft"> – {description}</span>}
        </p>
      ) : (
        <p className="m-0">{error}</p>
      )}
    </div>
  );
}

interface Asked {
  params: { path: { project: string } };
  body: Schemas["ProbeEndpointBody"];
}

interface TestProps {
  project: string;
  definition: JsonObject;
}
