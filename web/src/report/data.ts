import type { components } from "../api/schema";
import type { Ended } from "../parts/Outcome";

type Schemas = components["schemas"];

/** A cell with all that the file has of it. */
export interface OpenedCell {
  view: Schemas["CellView"];
  outline: Schemas["StepOutline"];
  steps: Schemas["StepPart"];
  files: Schemas["ChangedFiles"] | null;
  pictures: Schemas["CellPictures"] | null;
}

/** What the file holds: the JSON that the server would answer with. */
export type FileData = { run: RunData } | { comparison: Schemas["RunComparison"]; ending: Ended };

/** A run. */
export interface RunData {
  overview: Schemas["RunOverview"];
  matrix: Schemas["RunMatrix"];
  /** Places of the matrix's cases, those that fail most first. */
  worst: number[];
  record: Schemas["RunRecord"];
  rows: Schemas["CellRow"][];
  /** Of each row the key of why it could not be graded; empty where it was. */
  causes: string[];
  opened: OpenedCell[];
  /** How its scores lie; null of a run too large for that. */
  scores: Schemas["ScoreTable"] | null;
  /** What its groups would teach; likewise. */
  trainability: Schemas["Trainability"] | null;
  /** What is not in the file. */
  left_out: string[];
}

let data: FileData | null = null;

/** Reads the file's data, which may be compressed. */
export async function readData(): Promise<FileData> {
  const told = document.getElementById("data");
  const text = told?.textContent ?? "";
  if (told?.dataset.form === "deflate") {
    const bytes = Uint8Array.from(atob(text.trim()), (one) => one.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    data = (await new Response(stream).json()) as FileData;
  } else {
    data = JSON.parse(text) as FileData;
  }
  return data;
}

/** The run that the file holds. */
export function runData(): RunData {
  if (data === null || !("run" in data)) throw new Error("the file holds no run");
  return data.run;
}
