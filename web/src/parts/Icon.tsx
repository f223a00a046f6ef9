const PATHS = {
  pass: "M3.5 8.5l3 3 6-7",
  fail: "M4 4l8 8M12 4l-8 8",
  error: "M8 3.2v5.6M8 12v.6",
  skipped: "M4 8h8",
  scored: "M8 7.6v.8",
  flag: "M4 14V2.5h8l-2 3 2 3H4",
  down: "M4 6l4 4 4-4",
  right: "M6 4l4 4-4 4",
  left: "M10 4l-4 4 4 4",
  close: "M4 4l8 8M12 4l-8 8",
  more: "M3 8a.5.5 0 1 0 1 0 .5.5 0 1 0-1 0M7.5 8a.5.5 0 1 0 1 0 .5.5 0 1 0-1 0M12 8a.5.5 0 1 0 1 0 .5.5 0 1 0-1 0",
  plus: "M8 3v10M3 8h10",
  copy: "M6 5.5h7v8H6zM10 5.5v-3H3v8h3",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.5 10.5L14 14",
  up: "M8 13V3M4 7l4-4 4 4",
  light:
    "M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6zM8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.4 3.4l.7.7M11.9 11.9l.7.7M3.4 12.6l.7-.7M11.9 4.1l.7-.7",
  dark: "M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5z",
  system: "M2 3h12v8H2zM5.5 13.5h5",
  home: "M2.5 7.5L8 3l5.5 4.5V13h-11z",
  grader: "M3 13l5-10 5 10M4.8 9.5h6.4",
  run: "M4.5 3l8 5-8 5z",
  label: "M2.5 2.5h5l6 6-5 5-6-6zM5.2 5.2h.01",
  data: "M2.5 4c0-2 11-2 11 0s-11 2-11 0v8c0 2 11 2 11 0V4M2.5 8c0 2 11 2 11 0",
  settings: "M2 5h7M12 5h2M2 11h2M7 11h7M10.5 3.5v3M5.5 9.5v3",
} as const;

export type IconName = keyof typeof PATHS;

/** A sign that stands beside a word, or in a button that says its name to who cannot see it. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      viewBox="0 0 16 16"
      width={size}
      height={size}
      fill="none"
      stroke="currentColor"
      strokeWidth="1.6"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      className="shrink-0"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
