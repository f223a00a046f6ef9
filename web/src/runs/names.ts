/** What did the work, as one name. */
export function agentName(agent: { harness: string; model: string }): string {
  return [agent.harness, agent.model].filter(Boolean).join(" · ") || "no agent";
}

export function runName(run: { id: string; label: string }): string {
  return run.label || run.id;
}

/** The end of a path, by which people tell it from others. */
export function suiteName(suite: string): string {
  return suite.startsWith("/") ? suite.split("/").slice(-2).join("/") : suite;
}

/** What makes a cell unique in its run. */
export interface CellName {
  case: string;
  harness: string;
  model: string;
  trial: number;
}

/** Who did a cell's work, and which repeat it is. */
export function trialName(cell: Omit<CellName, "case">): string {
  return `${agentName(cell)} · trial ${cell.trial}`;
}

export function cellAddress(run: string, cell: CellName): string {
  const { case: name, harness, model, trial } = cell;
  const where = new URLSearchParams({ case: name, harness, model, trial: String(trial) });
  return `${runAddress(run)}/cell?${where}`;
}

/** Where a run's cells are that suit some filters. */
export function cellsAddress(filters: Record<string, string>): string {
  return `?${new URLSearchParams({ tab: "cells", ...filters })}`;
}

const KINDS: Record<string, string> = { matrix: "cases", dataset: "dataset", job: "Python" };

/** What a run is of: `cases: evals`. */
export function subjectOf(run: { kind: string; suite: string }): string {
  return [KINDS[run.kind] ?? run.kind, suiteName(run.suite)].filter(Boolean).join(": ");
}

export function runAddress(run: string): string {
  return `/runs/${encodeURIComponent(run)}`;
}
