import type { Schemas } from "../../api/client";
import { DiffView } from "../../parts/DiffView";

const LOOKS = {
  added: ["+", "text-pass"],
  changed: ["~", "text-accent"],
  deleted: ["−", "text-fail"],
} as const;

/** The files that are not as they were given. */
export function Files({ found }: { found: Schemas["ChangedFiles"] }) {
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-4">
      {found.files.length === 0 && <p className="m-0 text-soft">No file was changed.</p>}
      {found.notes.map((note) => (
        <p key={note} className="m-0 text-error">
          {note}
        </p>
      ))}
      {found.files.map((file) => {
        const lines = file.diff.split("\n");
        const [glyph, look] = LOOKS[file.how];
        return (
          <details key={file.path} open={lines.length < 200}>
            <summary className="cursor-pointer py-1 wrap-anywhere">
              <span className={look}>
                {glyph} {file.how}
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
