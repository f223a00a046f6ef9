const LOOKS: Record<string, string> = {
  "+": "bg-pass-soft text-pass",
  "-": "bg-fail-soft text-fail",
  "@": "text-accent",
};

/** The lines of a unified diff. */
export function DiffView({ lines, label }: { lines: readonly string[]; label: string }) {
  return (
    <section
      aria-label={label}
      tabIndex={0}
      className="max-h-140 overflow-auto rounded-md bg-sunk py-2 font-mono text-[12.5px] leading-5"
    >
      {lines.map((line, place) => (
        <div
          // biome-ignore lint/suspicious/noArrayIndexKey: a line is known by its place
          key={place}
          className={`px-3 whitespace-pre-wrap wrap-anywhere ${lookOf(line)}`}
          dir="auto"
        >
          {line || " "}
        </div>
      ))}
    </section>
  );
}

function lookOf(line: string): string {
  if (/^(\+\+\+|---) /.test(line)) return "font-semibold";
  return LOOKS[line.slice(0, 1)] ?? "";
}
