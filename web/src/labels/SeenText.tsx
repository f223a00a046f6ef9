const SHOWN_LINES: Record<string, number> = {
  question: 16,
  documents: 24,
  reference: 12,
  answer: 40,
};
const SHOWN_CHARACTERS = 6_000;

// What a reader cannot see, or what turns the order of what they see, is written out.
const UNSEEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it is about.
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/gu;

/** A text with its unseen characters written out, as `\u{202e}`. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (one) => `\\u{${one.codePointAt(0)?.toString(16)}}`);
}

/** The beginning of a text, and how much is left out. */
function beginning(name: string, text: string): [string, number] {
  const lines = SHOWN_LINES[name] ?? 16;
  let end = -1;
  for (let line = 0; line < lines; line++) {
    end = text.indexOf("\n", end + 1);
    if (end < 0) break;
  }
  const cut = Math.min(end < 0 ? text.length : end, SHOWN_CHARACTERS);
  return [text.slice(0, cut), text.length - cut];
}

/** One text of an item, as text whatever it holds; a long one from its beginning. */
export function SeenText({ name, text, all = false }: SeenProps) {
  const [shown, left] = all ? [text, 0] : beginning(name, text);
  return (
    <section
      className={`rounded-lg p-4 ${name === "answer" ? "bg-page ring-1 ring-line" : "bg-sunk"}`}
      aria-label={name}
    >
      <h3 className="m-0 mb-1 text-sm font-medium text-soft first-letter:uppercase">{name}</h3>
      <pre className="m-0 font-sans text-[15px] leading-6 whitespace-pre-wrap wrap-anywhere">
        {shown === "" ? <span className="text-soft">(nothing)</span> : visible(shown)}
      </pre>
      {left > 0 && (
        <p className="mt-2 mb-0 text-soft">
          {left.toLocaleString("en")} more characters: <kbd>m</kbd> shows all
        </p>
      )}
    </section>
  );
}

interface SeenProps {
  name: string;
  text: string;
  all?: boolean;
}
