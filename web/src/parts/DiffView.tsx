import "./diff.css";

const SORTS: Record<string, string> = { "+": "added", "-": "removed", "@": "place" };

/** A unified diff, line by line. */
export function DiffView({ text, label }: { text: string; label: string }) {
  const lines = text.replace(/\n$/, "").split("\n");
  return (
    <section className="diff" aria-label={label} tabIndex={0}>
      {lines.map((line, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a line is known by its place
        <div key={place} className={sortOf(line)}>
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
