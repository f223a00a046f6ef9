import { whole } from "./figures";

/** How much of something is done. */
export function Progress({ done, total, noun }: { done: number; total: number; noun: string }) {
  return (
    <progress
      value={done}
      max={Math.max(total, 1)}
      aria-label={`${whole(done)} of ${whole(total)} ${noun}`}
      className="block h-1.5 w-full min-w-16 appearance-none overflow-hidden rounded-full border-0 bg-fill
        [&::-moz-progress-bar]:bg-accent [&::-webkit-progress-bar]:bg-fill [&::-webkit-progress-value]:bg-accent"
    />
  );
}
