type Look = ["ins" | "del" | "div", string];

const LOOKS: Record<string, Look> = {
  "+": ["ins", "bg-pass-soft text-pass"],
  "-": ["del", "bg-fail-soft text-fail"],
  "@": ["div", "text-accent"],
};

/** The lines of a unified diff. */
export function DiffView({ lines, label }: { lines: readonly string[]; label: string }) {
  return (
    <section
      aria-label={label}
      tabIndex={0}
      className="max-h-140 overflow-auto rounded-md bg-sunk py-2 font-mono text-[12.5px] leading-5"
    >
      {lines.map((line, place) => {
        const [Kind, look] = lookOf(line);
        return (
          <Kind
            // biome-ignore lint/suspicious/noArrayIndexKey: a line is known by its place
            key={place}
            className={`block px-3 whitespace-pre-wrap no-underline wrap-anywhere ${look}`}
            dir="auto"
          >
            {line || " "}
          </Kind>
        );
      })}
    </section>
  );
}

function lookOf(line: string): Look {
  if (/^(\+\+\+|---) /.test(line)) return ["div", "font-semibold"];
  return LOOKS[line.slice(0, 1)] ?? ["div", ""];
}
