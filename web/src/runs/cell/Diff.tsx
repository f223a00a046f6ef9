import { numbered } from "./numbered";

const TONES: Record<string, string> = { "+": "add", "-": "del", "@": "at" };

/** Lines of a unified diff. */
export function Diff({ lines, label }: { lines: readonly string[]; label: string }) {
  return (
    <pre className="diff" tabIndex={0} role="region" aria-label={label}>
      {numbered(lines).map(({ place, one: line }) => (
        <span key={place} className={TONES[line[0] ?? ""]}>
          {`${line}\n`}
        </span>
      ))}
    </pre>
  );
}
