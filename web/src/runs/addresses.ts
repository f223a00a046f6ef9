/** What makes a cell unique in its run. */
export interface CellName {
  case: string;
  harness: string;
  model: string;
  trial: number;
}

/** The page of one cell. */
export function cellAddress(run: string, cell: CellName): string {
  const query = new URLSearchParams({ case: cell.case });
  if (cell.harness) query.set("harness", cell.harness);
  if (cell.model) query.set("model", cell.model);
  query.set("trial", String(cell.trial));
  return `/runs/${encodeURIComponent(run)}/cell?${query}`;
}

/** Who did a cell's work, and which repeat it is. */
export function agentWords(cell: Omit<CellName, "case">): string {
  return [cell.harness, cell.model, `trial ${cell.trial}`].filter(Boolean).join(" · ");
}
