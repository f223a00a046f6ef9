import { useEffect, useState } from "react";
import { flushSync } from "react-dom";

/** Whether the page is being printed; it is drawn for that before the browser looks at it. */
export function usePrinting(): boolean {
  const [isPrinting, setPrinting] = useState(false);
  useEffect(() => {
    const medium = window.matchMedia("print");
    const follow = () => flushSync(() => setPrinting(medium.matches));
    const begin = () => flushSync(() => setPrinting(true));
    const end = () => setPrinting(false);
    medium.addEventListener("change", follow);
    window.addEventListener("beforeprint", begin);
    window.addEventListener("afterprint", end);
    return () => {
      medium.removeEventListener("change", follow);
      window.removeEventListener("beforeprint", begin);
      window.removeEventListener("afterprint", end);
    };
  }, []);
  return isPrinting;
}
