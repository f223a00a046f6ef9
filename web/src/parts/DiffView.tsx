import "./diff.css";

const SORTS: Record<string, string> = { "+": "added", "-": "removed", "@": "place" };

/** The lines of a unified diff. */
export function DiffView({ lines, label }: { lines: readonly string[]; label: string }) {
  return (
    <section className="diff" aria-label={label} tabIndex={0}>
      {lines.map((line, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a line is known by its place
        <div key={place} className={sortOf(line)} dir="auto">
          {line || " "}
        </div>
      ))}
    </section>
  );
}

function sortOf(line: string): string {
  if (/^(\+\+\+|---) /.test(line)) return "file";
  return SORTS[line.slice(0, 1)] ?? "";
}
