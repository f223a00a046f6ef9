import { useEffect, useState } from "react";
import "./parts.css";

/** Says that something loads, once it takes longer than people notice. */
export function Loading({ what = "Loading" }: { what?: string }) {
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    const timer = window.setTimeout(() => setSlow(true), 300);
    return () => window.clearTimeout(timer);
  }, []);
  return (
    <output className="loading" aria-live="polite">
      {isSlow ? `${what} …` : ""}
    </output>
  );
}
