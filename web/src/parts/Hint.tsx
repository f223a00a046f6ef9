import type { ReactNode } from "react";

/** The key that shortcuts begin with on this machine. */
export const META = /Mac|iP/.test(navigator.platform) ? "⌘" : "Ctrl ";

/** The keys that do what a button does: a hint for who has some. */
export function Keys({ children }: { children: ReactNode }) {
  return (
    <span aria-hidden="true" className="font-mono text-xs font-normal pointer-coarse:hidden">
      {children}
    </span>
  );
}
