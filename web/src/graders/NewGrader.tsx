import { useState } from "react";
import { Link } from "react-router";
import { useMay, useProject } from "../api/me";
import { Described } from "../parts/Field";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import { usePageTitle } from "../parts/title";
import { type Kinds, useKinds } from "./queries";
import "./graders.css";

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
  usePageTitle("New grader");
  const project = useProject();
  const mayEdit = useMay("editor", project);
  const kinds = useKinds(project);
  return (
    <div className="page stack grader-page">
      <div>
        <p className="crumbs">
          <Link to={`/p/${project}/graders`}>Graders</Link>
        </p>
        <h1>New grader</h1>
      </div>
      {!mayEdit && <p className="notice">Storing a grader needs the role editor.</p>}
      <ul className="kinds">
        {CARDS.map(([to, title, told]) => (
          <li key={to}>
            <Link className="card" to={`/p/${project}/graders/new/${to}`}>
              <strong>{title}</strong>
              <span className="soft">{told}</span>
            </Link>
          </li>
        ))}
      </ul>
      <section>
        <h2>Any built-in grader, as a form</h2>
        {kinds.isPending && <Loading what="Loading kinds" />}
        {kinds.error && <ProblemBox problem={kinds.error} retry={() => kinds.refetch()} />}
        {kinds.data && <Declared project={project} kinds={kinds.data} />}
      </section>
    </div>
  );
}

function Declared({ project, kinds }: { project: string; kinds: Kinds }) {
  const [wanted, setWanted] = useState("");
  const found = kinds.declared.filter((kind) =>
    `${kind.name} ${kind.description}`.toLowerCase().includes(wanted.toLowerCase()),
  );
  return (
    <>
      <input
        type="search"
        aria-label="Search built-in graders"
        placeholder="Search, such as json or regex"
        value={wanted}
        onChange={(event) => setWanted(event.target.value)}
      />
      <div className="families">
        {Object.entries(FAMILIES).map(([family, title]) => {
          const listed = found.filter((kind) => kind.family === family);
          return listed.length ? (
            <section key={family}>
              <h3>{title}</h3>
              <ul>
                {listed.map((kind) => (
                  <li key={kind.name}>
                    <Link to={`/p/${project}/graders/new/declared?type=${kind.name}`}>
                      <code>{kind.name}</code>
                    </Link>{" "}
                    <span className="soft">
                      <Described text={kind.description} />
                      {kind.needs.length > 0 && ` Needs a ${kind.needs.join(", ")}.`}
                    </span>
                  </li>
                ))}
              </ul>
            </section>
          ) : null;
        })}
      </div>
      {found.length === 0 && <p className="soft">None is called so.</p>}
    </>
  );
}
