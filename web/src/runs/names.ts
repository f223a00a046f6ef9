/** What did the work, as one name. */
export function agentName(agent: { harness: string; model: string }): string {
  return [agent.harness, agent.model].filter(Boolean).join(" · ") || "no agent";
}

export function runName(run: { id: string; label: string }): string {
  return run.label || run.id;
}

export const KINDS: Record<string, string> = {
  matrix: "cases",
  dataset: "dataset",
  job: "Python",
};
