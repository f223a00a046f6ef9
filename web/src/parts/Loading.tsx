import { useEffect, useState } from "react";

/** Says that something loads, once it takes longer than people notice. */
export function Loading({ what = "Loading" }: { what?: string | undefined }) {
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    const timer = window.setTimeout(() => setSlow(true), 300);
    return () => window.clearTimeout(timer);
  }, []);
  return (
    <output className="block min-h-14 py-4 text-soft" aria-live="polite">
      {isSlow ? `${what} …` : ""}
    </output>
  );
}
