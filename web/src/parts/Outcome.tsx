import "./parts.css";

/** How something ended: five shapes and five colours, the same as in reports and terminals. */
export type Ended = "pass" | "fail" | "error" | "skipped" | "scored";

const GLYPHS: Record<Ended, string> = {
  pass: "✓",
  fail: "✗",
  error: "!",
  skipped: "–",
  scored: "·",
};

const WORDS: Record<Ended, string> = {
  pass: "passed",
  fail: "failed",
  error: "error",
  skipped: "skipped",
  scored: "scored",
};

/** The mark alone, with its word for who cannot see it; or with a text of its own beside it. */
export function Outcome({ state, text }: { state: Ended; text?: string }) {
  return (
    <span className={`outcome ${state}`}>
      <span aria-hidden="true">{GLYPHS[state]}</span>
      {text === undefined ? <span className="sr">{WORDS[state]}</span> : ` ${text}`}
    </span>
  );
}

/** A sign of tampering, which must not be overlooked. */
export function Flag({ text }: { text: string }) {
  return <span className="outcome flag">⚑ {text}</span>;
}
