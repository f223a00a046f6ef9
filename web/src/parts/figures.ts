// How numbers are written for people, as `assay.reports.figures` writes them: 0.9996 is not
// written 1.00, a price of $0.0004 not $0.00, and what is unknown is not a number.

const DASH = "–";

export function score(value: number | null | undefined): string {
  if (value === null || value === undefined) return DASH;
  const short = value.toFixed(2);
  const isRound = ["0.00", "1.00"].includes(short.replace("-", ""));
  if (!isRound || value === 0 || value === 1) return short;
  if (Math.abs(value) < 0.005) {
    return Math.abs(value) >= 0.0001 ? value.toFixed(4) : value.toExponential(0);
  }
  return value < 1 ? (Math.floor(value * 10_000) / 10_000).toFixed(4) : value.toFixed(4);
}

export function percent(rate: number | null | undefined): string {
  if (rate === null || rate === undefined) return DASH;
  if (rate > 0 && rate < 0.005) return "<1 %";
  if (rate >= 0.995 && rate < 1) return ">99 %";
  return `${Math.round(rate * 100)} %`;
}

export function money(usd: number | null | undefined): string {
  if (usd === null || usd === undefined) return "unknown";
  if (usd > 0 && usd < 0.01) return usd >= 0.0001 ? `$${usd.toPrecision(2)}` : "<$0.0001";
  return `$${usd.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

/** What is known of a price, and how many cells it is unknown of; never $0 for unknown. */
export function priced(known: number | null, unknown: number, noun = "cell"): string {
  if (known === null) return unknown ? "unknown" : DASH;
  return unknown ? `${money(known)} + ${count(unknown, noun)} unknown` : money(known);
}

/** Both ends of an interval, `0.52–0.71` or `50–73 %`; empty where there is none. */
export function between(low: number | null, high: number | null, write = score): string {
  if (low === null || high === null) return "";
  return `${write(low).replace(/ %$/, "")}${DASH}${write(high)}`;
}

export function whole(value: number): string {
  return value.toLocaleString("en");
}

export function count(value: number, noun: string): string {
  return `${whole(value)} ${noun}${value === 1 ? "" : "s"}`;
}

export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return DASH;
  if (seconds < 10) return seconds >= 0.05 || seconds === 0 ? `${seconds.toFixed(1)} s` : "<0.1 s";
  const rounded = Math.round(seconds);
  if (rounded < 60) return `${rounded} s`;
  if (rounded < 3600) return `${Math.floor(rounded / 60)} min ${rounded % 60} s`;
  return `${whole(Math.floor(rounded / 3600))} h ${Math.floor((rounded % 3600) / 60)} min`;
}

/** A moment as people read it: `23 Nov 2026, 06:12`, in their own time zone. */
export function moment(iso: string | null | undefined): string {
  if (!iso) return DASH;
  return new Date(iso).toLocaleString("en-GB", {
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
  });
}

/** The same, shorter: the hour alone today, without the year this year. */
export function lately(iso: string, now = new Date()): string {
  const then = new Date(iso);
  if (then.toDateString() === now.toDateString()) return moment(iso).split(", ")[1] ?? "";
  return then.getFullYear() === now.getFullYear()
    ? moment(iso).replace(` ${then.getFullYear()}`, "")
    : moment(iso);
}

/** A difference with its sign, with a digit more than scores have: drops are small. */
export function signed(value: number | null | undefined): string {
  if (value === null || value === undefined) return DASH;
  if (Math.abs(value) <= 1e-9) return "0";
  const size = Math.abs(value);
  const text = size >= 0.0005 ? size.toFixed(3) : size.toExponential(0);
  return `${value < 0 ? "−" : "+"}${text}`;
}
