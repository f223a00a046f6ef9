import type { Schemas } from "../api/client";

/** What did the work, as one name. */
export function agentName(agent: { harness: string; model: string }): string {
  return [agent.harness, agent.model].filter(Boolean).join(" · ") || "no agent";
}

export function runName(run: { id: string; label: string }): string {
  return run.label || run.id;
}

export function cellAddress(run: string, cell: Schemas["CellRow"]): string {
  const { case: name, harness, model, trial } = cell;
  const where = new URLSearchParams({ case: name, harness, model, trial: String(trial) });
  return `/runs/${encodeURIComponent(run)}/cell?${where}`;
}

export const KINDS: Record<string, string> = {
  matrix: "cases",
  dataset: "dataset",
  job: "Python",
};
