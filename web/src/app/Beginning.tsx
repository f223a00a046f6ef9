import type { ReactNode } from "react";
import { useMay } from "../api/me";
import { ButtonLink } from "../parts/Button";
import { Command } from "../parts/Command";

/** What to do with an empty store. */
export function Beginning({ project }: { project: string }) {
  const mayStore = useMay("editor", project);
  return (
    <div className="grid gap-8 md:grid-cols-3">
      <Step title="See it work">
        <p>Grades the example suite: no key, nothing to configure. Its runs appear here.</p>
        <Command text="assay demo" />
      </Step>
      <Step title="Grade what you have">
        <p>Recorded answers as JSON lines, by graders of a file; or runs of another store.</p>
        <Command text="assay grade answers.jsonl graders.yaml" />
        <Command text="assay runs import FILE" />
      </Step>
      <Step title="Write a grader">
        <p>
          A function, a judge or a comparison, tried on samples before it is stored
          {mayStore ? "." : "; for this you need the role editor."}
        </p>
        {mayStore ? (
          <ButtonLink tone="primary" to={`/p/${encodeURIComponent(project)}/graders/new`}>
            New grader
          </ButtonLink>
        ) : (
          <Command text="assay server create keys NAME --role editor" />
        )}
        <Command text="assay init my-suite" />
      </Step>
    </div>
  );
}

function Step({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="grid content-start justify-items-start gap-3 rounded-lg bg-sunk p-6 [&_p]:m-0 [&_p]:text-soft">
      <h2 className="m-0 text-lg font-semibold">{title}</h2>
      {children}
    </section>
  );
}
