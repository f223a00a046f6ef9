import { useState } from "react";
import { CopyText } from "../parts/CopyText";
import { Panel } from "../parts/Panel";
import { Segments } from "../parts/Segments";

/** How to use the grader from elsewhere. */
export function CopyAs({ project, grader }: { project: string; grader: string }) {
  const [form, setForm] = useState<keyof ReturnType<typeof formsOf>>("CLI");
  const forms = formsOf(project, grader, window.location.origin);
  const text = forms[form];
  return (
    <Panel
      title="Use it from"
      beside={
        <Segments
          label="Form"
          options={[
            ["CLI", "CLI"],
            ["Python", "Python"],
            ["curl", "curl"],
          ]}
          isOn={(one) => one === form}
          press={setForm}
        />
      }
    >
      <pre className="mb-2 rounded-md bg-sunk px-3 py-2.5 whitespace-pre-wrap wrap-anywhere">
        {text}
      </pre>
      <CopyText name="Copy" text={() => text} />
    </Panel>
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
