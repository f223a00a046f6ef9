import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, ask } from "../api/client";
import { Dialog } from "../parts/Dialog";
import { ProblemBox } from "../parts/ProblemBox";
import { type Grader, useForget } from "./queries";

/** Changes what people read of a grader: it makes no version. */
export function DescribeGrader({ project, grader, close }: DescribeProps) {
  const [said, setSaid] = useState({
    name: grader.name,
    description: grader.description,
    feedback_key: grader.feedback_key,
  });
  const forget = useForget();
  const describe = useMutation({
    mutationFn: () =>
      ask(
        api.PATCH("/api/v1/projects/{project}/graders/{key}", {
          params: { path: { project, key: grader.key } },
          body: said,
        }),
      ),
    onSuccess: () => {
      forget(project, grader.key);
      close();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    describe.mutate();
  };
  return (
    <Dialog title={`Describe ${grader.key}`} close={close}>
      <form className="fields" onSubmit={submit}>
        <label className="field">
          <span>Name</span>
          <input
            maxLength={200}
            value={said.name}
            onChange={(event) => setSaid({ ...said, name: event.target.value })}
          />
        </label>
        <label className="field">
          <span>Description</span>
          <textarea
            className="grows"
            rows={3}
            maxLength={10_000}
            value={said.description}
            onChange={(event) => setSaid({ ...said, description: event.target.value })}
          />
        </label>
        <label className="field">
          <span>Feedback key</span>
          <input
            maxLength={200}
            value={said.feedback_key}
            onChange={(event) => setSaid({ ...said, feedback_key: event.target.value })}
          />
        </label>
        {describe.error && <ProblemBox problem={describe.error} />}
        <div className="actions">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={describe.isPending}>
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}

interface DescribeProps {
  project: string;
  grader: Grader;
  close: () => void;
}
