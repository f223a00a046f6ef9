import { useState } from "react";
import { Command } from "../parts/Command";

/** How to use the grader from elsewhere. */
export function CopyAs({ project, grader }: { project: string; grader: string }) {
  const [form, setForm] = useState<keyof ReturnType<typeof formsOf>>("CLI");
  const forms = formsOf(project, grader, window.location.origin);
  return (
    <section className="panel" aria-label="Use it from elsewhere">
      <div className="spread">
        <h2>Use it from</h2>
        <div className="segments" role="group" aria-label="Form">
          {(Object.keys(forms) as (keyof typeof forms)[]).map((name) => (
            <button
              key={name}
              type="button"
              aria-pressed={form === name}
              onClick={() => setForm(name)}
            >
              {name}
            </button>
          ))}
        </div>
      </div>
      <Command text={forms[form]} />
    </section>
  );
}

function formsOf(project: string, grader: string, server: string) {
  const where = project === "default" ? "" : ` --project ${project}`;
  return {
    CLI: `assay grade answers.jsonl ${grader}${where}`,
    Python: `import assay

with assay.Client("${server}", api_key="…", project="${project}") as client:
    for one in client.graders.grade("${grader}", [{"question": "2 + 2?", "answer": "4"}]):
        print(one.score, one.reason or one.error)`,
    curl: `curl ${server}/api/v1/projects/${project}/graders/${grader}/grade \\\n  -H "Authorization: Bearer $ASSAY_API_KEY" -H "Content-Type: application/json" \\\n  -d '{"items": [{"question": "2 + 2?", "answer": "4"}]}'`,
  };
}
