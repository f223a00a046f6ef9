import type { Schemas } from "../../api/client";
import { DiffView } from "../../parts/DiffView";

const GLYPHS = { added: "+", changed: "~", deleted: "−" } as const;

/** The files that are not as they were given. */
export function Files({ found }: { found: Schemas["ChangedFiles"] }) {
  return (
    <div className="stack files">
      {found.files.length === 0 && <p className="soft">No file was changed.</p>}
      {found.notes.map((note) => (
        <p key={note} className="note-line">
          {note}
        </p>
      ))}
      {found.files.map((file) => {
        const lines = file.diff.split("\n");
        return (
          <details key={file.path} open={lines.length < 200}>
            <summary>
              <span className={`how ${file.how}`}>
                {GLYPHS[file.how]} {file.how}
              </span>{" "}
              <code>{file.path}</code>
            </summary>
            <DiffView lines={lines} label={`Changes of ${file.path}`} />
          </details>
        );
      })}
    </div>
  );
}
