import type { ReactNode } from "react";

/** A few choices side by side, of which one or several are pressed. */
export function Segments<Key extends string>({ label, options, isOn, press }: SegmentsProps<Key>) {
  return (
    <span
      role="group"
      aria-label={label}
      className="inline-flex w-fit max-w-full overflow-x-auto rounded-md bg-fill p-0.5 [scrollbar-width:none]"
    >
      {options.map(([key, name]) => (
        <button
          key={key}
          type="button"
          aria-pressed={isOn(key)}
          onClick={() => press(key)}
          className="min-h-7 shrink-0 cursor-pointer rounded-[5px] px-2.5 text-sm text-soft outline-offset-[-2px] hover:text-ink
            aria-pressed:bg-page aria-pressed:font-medium aria-pressed:text-ink pointer-coarse:min-h-10"
        >
          {name}
        </button>
      ))}
    </span>
  );
}

interface SegmentsProps<Key> {
  label: string;
  options: readonly (readonly [Key, ReactNode])[];
  isOn: (key: Key) => boolean;
  press: (key: Key) => void;
}
