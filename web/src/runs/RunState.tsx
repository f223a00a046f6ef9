import type { Schemas } from "../api/client";

const WORDS: Record<Schemas["RunRow"]["state"], string> = {
  running: "running",
  interrupted: "interrupted",
  unfinished: "not finished",
  finished: "finished",
};

const TONES: Record<string, string> = { running: "live", interrupted: "warns" };

/** Whether a run goes on; nothing for one that has ended as it should. */
export function RunState({ state }: { state: Schemas["RunRow"]["state"] }) {
  if (state === "finished") return null;
  return <span className={`badge ${TONES[state] ?? ""}`}>{WORDS[state]}</span>;
}
