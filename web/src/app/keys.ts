import { useEffect, useRef } from "react";
import { useNavigate } from "react-router";
import { isTyped, type Keys } from "../parts/keys";
import type { Place } from "./places";

/** The key of shortcuts on this machine. */
export const COMMAND = navigator.platform.startsWith("Mac") ? "⌘" : "Ctrl";

export const EVERYWHERE: Keys = {
  title: "Everywhere",
  keys: [
    [`${COMMAND} K`, "find a page, a run, a grader or an action"],
    ["?", "this list"],
    ["g o", "overview"],
    ["g g", "graders"],
    ["g r", "runs"],
    ["g l", "labels"],
    ["g d", "data"],
    ["g s", "settings"],
    ["Esc", "close what is open"],
  ],
};

const PAUSE = 1_500;

/** The keys of the frame: Ctrl or Cmd K, ?, and g with the first letter of a place. */
export function useFrameKeys(places: readonly Place[], open: (what: "palette" | "keys") => void) {
  const navigate = useNavigate();
  const began = useRef(0);
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && !event.shiftKey) {
        event.preventDefault();
        open("palette");
        return;
      }
      if (isTyped(event) || event.defaultPrevented) return;
      const isSecond = event.timeStamp - began.current < PAUSE && began.current > 0;
      began.current = 0;
      const place = isSecond ? places.find((one) => one.key === event.key)?.to : undefined;
      const to = isSecond && event.key === "o" ? "/" : place;
      if (to) {
        event.preventDefault();
        navigate(to);
      } else if (event.key === "?") {
        open("keys");
      } else if (event.key === "g") {
        began.current = event.timeStamp;
      }
    };
    window.addEventListener("keydown", hear);
    return () => window.removeEventListener("keydown", hear);
  }, [places, open, navigate]);
}
