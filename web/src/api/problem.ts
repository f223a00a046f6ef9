/** What the server says went wrong (RFC 9457), or that it did not answer. */
export interface Fault {
  field: string;
  message: string;
  fix: string;
}

export class Problem extends Error {
  readonly status: number;
  readonly title: string;
  readonly faults: readonly Fault[];

  constructor(status: number, title: string, detail: string, faults: readonly Fault[] = []) {
    super(detail || title);
    this.name = "Problem";
    this.status = status;
    this.title = title;
    this.faults = faults;
  }
}

/** The server did not answer: it is stopped, or the connection broke. */
export function noAnswer(): Problem {
  return new Problem(
    0,
    "The server does not answer",
    "The page goes on by itself when it is back. Start it again with `assay serve`.",
  );
}

export function isRetryable(error: unknown): boolean {
  return error instanceof Problem && (error.status === 0 || error.status === 503);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Reads a reply that is no success. */
export function problemOf(status: number, body: unknown): Problem {
  if (typeof body !== "object" || body === null) {
    return new Problem(status, `The server answered ${status}`, text(body).slice(0, 500));
  }
  const told = body as Record<string, unknown>;
  const listed = Array.isArray(told.errors) ? (told.errors as Record<string, unknown>[]) : [];
  const faults = listed.map((one) => ({
    field: text(one.field) || text(one.pointer),
    message: text(one.message) || text(one.detail),
    fix: text(one.hint) || text(one.fix),
  }));
  return new Problem(
    status,
    text(told.title) || `The server answered ${status}`,
    text(told.detail),
    faults,
  );
}
