import { useState } from "react";
import { Link } from "react-router";
import { useMay, useProject } from "../api/me";
import { Described, INPUT } from "../parts/Field";
import { Notice, Page, Stack } from "../parts/Page";
import { Panel } from "../parts/Panel";
import { Titled } from "../parts/Titled";
import { useKinds } from "./queries";

const CARDS = [
  [
    "function",
    "Function",
    "A Python function gets the conversation and returns a number: string match, regex, JSON shape, arithmetic. Runs in the sandbox.",
  ],
  [
    "binary_judge",
    "AI judge",
    "A criterion in plain words; a model says whether it is met, and why. With few-shot examples and a template of your own.",
  ],
  [
    "prebuilt_judge",
    "Pre-built",
    "For answers that rest on documents: faithfulness, context relevancy, answer relevancy.",
  ],
  [
    "external_endpoint",
    "External",
    "A reward server that you host is asked over HTTP; its connection can be tried here.",
  ],
  [
    "declared",
    "Combined",
    "One or more built-in graders, weighted, with gates: exact match, JSON schema, numbers, tests, trace checks.",
  ],
  [
    "declared?family=openai",
    "OpenAI graders",
    "string_check, text_similarity, score_model, label_model, python and multi, as OpenAI's Evals have them.",
  ],
  [
    "custom",
    "Custom",
    "A Grader class of your own project, or a name that scores are written to from elsewhere.",
  ],
] as const;

const FAMILIES: Record<string, string> = {
  comparison: "Compare the answer",
  judge: "Judges",
  openai: "OpenAI graders",
  trace: "What the agent did",
  code: "Code and workspaces",
  other: "Others",
};

/** What kind of grader to make. */
export default function NewGrader() {
  const project = useProject();
  const mayEdit = useMay("editor", project);
  return (
    <Page title="New grader" crumbs={<Link to={`/p/${project}/graders`}>Graders</Link>}>
      {!mayEdit && <Notice>Storing a grader needs the role editor.</Notice>}
      <Stack>
        <ul className="grid gap-3 sm:grid-cols-2 lg:grid-cols-4">
          {CARDS.map(([to, title, told]) => (
            <li key={to}>
              <Link
                to={`/p/${project}/graders/new/${to}`}
                className="block h-full rounded-lg bg-sunk p-4 text-ink no-underline hover:bg-fill"
              >
                <span className="mb-1 block font-medium">{title}</span>
                <span className="block text-sm text-soft">{told}</span>
              </Link>
            </li>
          ))}
        </ul>
        <Panel title="Any built-in grader, as a form" what="Loading kinds">
          <Declared project={project} />
        </Panel>
      </Stack>
    </Page>
  );
}

function Declared({ project }: { project: string }) {
  const kinds = useKinds(project);
  const [wanted, setWanted] = useState("");
  const found = kinds.declared.filter((kind) =>
    `${kind.name} ${kind.description}`.toLowerCase().includes(wanted.toLowerCase()),
  );
  const families = Object.entries(FAMILIES).map(
    ([family, title]) => [title, found.filter((kind) => kind.family === family)] as const,
  );
  return (
    <>
      <input
        type="search"
        className={`${INPUT} mb-5 max-w-80!`}
        aria-label="Search built-in graders"
        placeholder="Search, such as json or regex"
        value={wanted}
        onChange={(event) => setWanted(event.target.value)}
      />
      <div className="gap-x-8 md:columns-2 xl:columns-3">
        {families.map(
          ([title, listed]) =>
            listed.length > 0 && (
              <div key={title} className="mb-6 break-inside-avoid">
                <Titled title={title}>
                  <ul className="grid gap-2">
                    {listed.map((kind) => (
                      <li key={kind.name}>
                        <Link to={`/p/${project}/graders/new/declared?type=${kind.name}`}>
                          <code>{kind.name}</code>
                        </Link>
                        <span className="block text-sm text-soft">
                          <Described text={kind.description} />
                          {kind.needs.length > 0 && ` Needs a ${kind.needs.join(", ")}.`}
                        </span>
                      </li>
                    ))}
                  </ul>
                </Titled>
              </div>
            ),
        )}
      </div>
      {found.length === 0 && <p className="text-soft">None is called so.</p>}
    </>
  );
}
