import { type Ref, Suspense, useImperativeHandle, useRef, useState } from "react";
import { Complaints } from "../../parts/Field";
import { Keys, META } from "../../parts/Hint";
import type { JsonObject } from "../../parts/json";
import { Loading } from "../../parts/Loading";
import { later } from "../../parts/later";
import { Checks } from "./Checks";
import { useMetadataKeys } from "./metadata";
import type { SourceHandle } from "./SourceEditor";
import { type Definition, type Mark, type Trial, tryDraft } from "./trial";

const SourceEditor = later(() => import("./SourceEditor"));

/** The source of a function, checked as it is typed, and marked by what a run of it found. */
export function SourceField({ project, definition, change, isReadOnly, ref }: SourceProps) {
  const [checked, setChecked] = useState<Pick<Trial, "checks" | "warnings"> | null>(null);
  const keys = useMetadataKeys(project);
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
    <section aria-label="Source" className="grid grid-cols-[minmax(0,1fr)] gap-3">
      <div className="h-[max(320px,calc(100vh-380px))] max-md:h-72 overflow-hidden rounded-lg border border-line focus-within:outline-2 focus-within:outline-accent">
        <Suspense fallback={<Loading what="Loading the editor" />}>
          <SourceEditor
            ref={editor}
            source={String(definition.source ?? "")}
            change={change}
            check={check}
            keys={[...keys, "expected"]}
            readOnly={isReadOnly}
          />
        </Suspense>
      </div>
      <Complaints path="definition.source" id="source" />
      {checked && <Checks trial={checked} onLine={jump} />}
      <p className="m-0 text-sm text-soft pointer-coarse:hidden">
        <Keys>Esc Tab</Keys> leaves the editor, <Keys>{META}Space</Keys> completes.
      </p>
    </section>
  );
}

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
