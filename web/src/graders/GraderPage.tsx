import { useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useParams } from "react-router";
import { $api } from "../api/client";
import { useMay, useProject } from "../api/me";
import { useAddress } from "../parts/address";
import { Button, ButtonLink } from "../parts/Button";
import { Command } from "../parts/Command";
import { Menu } from "../parts/Menu";
import { Notice, Page, Stack } from "../parts/Page";
import { Panel } from "../parts/Panel";
import { ProblemBox } from "../parts/ProblemBox";
import { When } from "../parts/When";
import { Agreement, Locked } from "./Agreement";
import { CopyAs } from "./CopyAs";
import { DefinitionView } from "./DefinitionView";
import { DeleteGrader } from "./DeleteGrader";
import { useExport } from "./Files";
import { type Grader, graderQuery, KIND_TITLES, useForget } from "./queries";
import { Use } from "./Use";
import { Versions } from "./Versions";

/** One grader: what it is, how it became so, how far it can be trusted, and what depends on it. */
export default function GraderPage() {
  const project = useProject();
  const { key = "" } = useParams();
  const [{ version }] = useAddress({ version: 0 });
  const grader = useSuspenseQuery(graderQuery(project, key, version)).data;
  const newest = useSuspenseQuery(graderQuery(project, key)).data.latest.number;
  const { name, description, latest, warnings } = grader;
  return (
    <Page
      title={key}
      crumbs={<Link to={`/p/${project}/graders`}>Graders</Link>}
      facts={<Known grader={grader} />}
      actions={<Deeds project={project} grader={grader} />}
    >
      {(name !== key || description) && (
        <p className="-mt-3 mb-6 max-w-[80ch] whitespace-pre-wrap wrap-anywhere">
          {name !== key && <strong className="block font-medium">{name}</strong>}
          {description}
        </p>
      )}
      {latest.number < newest && (
        <Notice tone="accent">
          This is version {latest.number} of {newest}.{" "}
          <Link to={`/p/${project}/graders/${key}`}>Show the newest</Link>
        </Notice>
      )}
      {warnings.map((warning) => (
        <Notice key={warning}>{warning}</Notice>
      ))}
      <div className="grid items-start gap-10 lg:grid-cols-[minmax(0,1fr)_340px]">
        <Stack>
          <DefinitionView project={project} version={latest} />
          <Panel title="Versions" what="Loading versions">
            <Versions project={project} grader={key} newest={newest} shown={latest.number} />
          </Panel>
        </Stack>
        <Stack>
          <Calibrated project={project} grader={grader} />
          <Panel title="Use">
            <Use project={project} grader={key} />
          </Panel>
          <CopyAs project={project} grader={key} />
        </Stack>
      </div>
    </Page>
  );
}

function Known({ grader }: { grader: Grader }) {
  const { latest, locked } = grader;
  return (
    <>
      <b>{KIND_TITLES[latest.kind] ?? latest.kind}</b>
      <span>
        version <b>{latest.number}</b>
      </span>
      {locked && <Locked />}
      <span>
        <When at={latest.created_at} />
        {latest.created_by && ` by ${latest.created_by}`}
      </span>
      {latest.note && <span>“{latest.note}”</span>}
      <code title={`Digest of what gives its scores: ${latest.digest}`}>
        {latest.digest.slice(0, 12)}
      </code>
    </>
  );
}

/** What one does with a grader: edit it; seldom the rest. */
function Deeds({ project, grader }: { project: string; grader: Grader }) {
  const { key, locked } = grader;
  const mayEdit = useMay("editor", project);
  const forget = useForget();
  const exported = useExport(project, key);
  const [isDeleting, setDeleting] = useState(false);
  const lock = $api.useMutation("put", "/api/v1/projects/{project}/graders/{key}/lock", {
    onSettled: () => forget(key),
  });
  return (
    <>
      <Menu
        label="More to do"
        offers={[
          { name: "Export", act: exported.save },
          {
            name: locked ? "Unlock" : "Lock",
            act: () =>
              lock.mutate({ params: { path: { project, key } }, body: { locked: !locked } }),
            isDisabled: !mayEdit || lock.isPending,
          },
          {
            name: locked ? "Delete (unlock it first)" : "Delete …",
            act: () => setDeleting(true),
            isDisabled: !mayEdit || locked,
            isDangerous: true,
          },
        ]}
      />
      {mayEdit && !locked ? (
        <ButtonLink tone="primary" to={`/p/${project}/graders/${key}/edit`}>
          Edit
        </ButtonLink>
      ) : (
        <span title={mayEdit ? "Locked: unlock it first" : "Needs the role editor"}>
          <Button isDisabled>Edit</Button>
        </span>
      )}
      {lock.error && <ProblemBox problem={lock.error} />}
      {exported.problem}
      {isDeleting && (
        <DeleteGrader project={project} grader={key} close={() => setDeleting(false)} />
      )}
    </>
  );
}

/** How far it agrees with people, in short, and what would say so. */
function Calibrated({ project, grader }: { project: string; grader: Grader }) {
  const card = grader.calibration;
  const name = encodeURIComponent(grader.key);
  return (
    <Panel title="Agreement with people">
      {card ? (
        <>
          <Agreement calibration={card} />
          {card.stale && (
            <p className="mt-2 text-error">
              Measured before a change: {card.changed.join("; ")}. Measure it again.
            </p>
          )}
          <p className="mt-2">
            <Link to={`/p/${project}/calibrations/${card.card}`}>Open the card</Link>
          </p>
        </>
      ) : (
        <>
          <p className="mb-3 text-soft">
            Not measured. Label some answers, then see whether it decides as people do.
          </p>
          <Command text={`assay calibrate ${grader.key} labelled.jsonl`} />
        </>
      )}
      <div className="mt-4 flex flex-wrap gap-2">
        <ButtonLink to={`/p/${project}/labels/queue?goal=20&grader=${name}`}>
          Label 20 examples
        </ButtonLink>
        <ButtonLink to={`/p/${project}/calibrations?new=1&grader=${name}`}>
          {card ? "Calibrate again" : "Calibrate"}
        </ButtonLink>
      </div>
    </Panel>
  );
}
