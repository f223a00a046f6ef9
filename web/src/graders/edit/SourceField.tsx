import { useQuery } from "@tanstack/react-query";
import { type Ref, Suspense, useImperativeHandle, useRef, useState } from "react";
import { useSearchParams } from "react-router";
import { api, ask } from "../../api/client";
import { Complaints } from "../../parts/Field";
import type { JsonObject } from "../../parts/json";
import { Loading } from "../../parts/Loading";
import { later } from "../../parts/later";
import { Checks } from "./Checks";
import type { SourceHandle } from "./SourceEditor";
import { META } from "./TestPayload";
import { type Definition, type Mark, type Trial, tryDraft } from "./trial";

const SourceEditor = later(() => import("./SourceEditor"));

/** The source of a function, checked as it is typed, and marked by what a run of it found. */
export function SourceField({ project, definition, change, isReadOnly, ref }: SourceProps) {
  const [checked, setChecked] = useState<Pick<Trial, "checks" | "warnings"> | null>(null);
  const [query] = useSearchParams();
  const keys = useMetadataKeys(project, query.get("dataset"));
  const editor = useRef<SourceHandle>(null);
  const now = useRef(definition);
  now.current = definition;
  const ran = useRef<{ name: string; marks: readonly Mark[] }>({ name: "", marks: [] });

  const check = async (source: string): Promise<readonly Mark[]> => {
    if (isReadOnly) return [];
    const wanted = { ...definition, source } as Definition;
    const name = JSON.stringify(wanted);
    if (ran.current.name !== name) {
      // What is wrong with the server is said when it is run, or saved.
      const read = await tryDraft(project, "function", wanted, { runs: false }).catch(() => null);
      if (ran.current.name !== name) {
        if (read) setChecked(read);
        return read?.marks ?? [];
      }
    }
    return ran.current.marks; // a run says more than reading it does
  };
  const jump = (line: number) => editor.current?.jump(line);
  useImperativeHandle(ref, () => ({
    jump,
    found: (trial, of) => {
      const name = JSON.stringify(of);
      if (name !== JSON.stringify(now.current)) return; // its lines are not those of today
      ran.current = { name, marks: trial.marks };
      setChecked(trial);
      editor.current?.show(trial.marks);
    },
  }));
  return (
    <section className="function-source" aria-label="Source">
      <div className="source-frame">
        <Suspense fallback={<Loading what="Loading the editor" />}>
          <SourceEditor
            ref={editor}
            source={String(definition.source ?? "")}
            change={change}
            check={check}
            keys={keys}
            readOnly={isReadOnly}
          />
        </Suspense>
      </div>
      <Complaints path="definition.source" id="source" />
      {checked && <Checks trial={checked} onLine={jump} />}
      <p className="soft editor-keys">
        <kbd>Esc</kbd> <kbd>Tab</kbd> leaves the editor · <kbd>{META}Space</kbd> completes
      </p>
    </section>
  );
}

/** Keys that the first row of a dataset has for `thread.metadata`. */
function useMetadataKeys(project: string, dataset: string | null): readonly string[] {
  const rows = useQuery({
    queryKey: ["rows", project, dataset, null, 1],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/datasets/{key}/rows", {
          params: { path: { project, key: dataset ?? "" }, query: { limit: 1, whole: true } },
          signal,
        }),
      ),
    enabled: dataset !== null,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const data = rows.data?.items[0]?.data ?? {};
  const metadata = typeof data.metadata === "object" && data.metadata ? data.metadata : {};
  const own = Object.keys(data).filter((field) => !ROW_FIELDS.includes(field));
  return [...new Set([...Object.keys(metadata), ...own, "expected"])];
}

const ROW_FIELDS = ["id", "answer", "messages", "completion", "question", "expected", "metadata"];

export interface SourceFieldHandle {
  /** Shows a line and puts the cursor there. */
  jump: (line: number) => void;
  /** Shows what a run found, if the source is still the one that ran. */
  found: (trial: Trial, of: Definition) => void;
}

interface SourceProps {
  project: string;
  definition: JsonObject;
  change: (source: string) => void;
  isReadOnly: boolean;
  ref: Ref<SourceFieldHandle>;
}
