import { noAnswer, Problem, problemOf } from "../api/problem";
import type { Dataset } from "./queries";

export interface Sending {
  done: Promise<Dataset>;
  cancel: () => void;
}

/**
 * Sends a file and tells how much of it went: `fetch` tells nothing of that.
 *
 */
export function sendFile(place: Place, file: File, told: (share: number) => void): Sending {
  const request = new XMLHttpRequest();
  const query = new URLSearchParams();
  if (place.name) query.set("name", place.name);
  for (const [ours, theirs] of Object.entries(place.renames)) {
    query.append("map", `${ours}=${theirs}`);
  }
  const done = new Promise<Dataset>((resolve, reject) => {
    const path = `/api/v1/projects/${place.project}/datasets/${encodeURIComponent(place.key)}`;
    request.open("POST", `${path}?${query}`);
    request.setRequestHeader("Content-Type", "application/x-ndjson");
    request.responseType = "json";
    request.upload.onprogress = (event) => told(event.total ? event.loaded / event.total : 0);
    request.onerror = () => reject(noAnswer());
    request.onabort = () =>
      reject(new Problem(0, "The upload was cancelled", "Nothing is stored."));
    request.onload = () => {
      if (request.status === 201) resolve(request.response as Dataset);
      else reject(problemOf(request.status, request.response));
    };
    request.send(file);
  });
  return { done, cancel: () => request.abort() };
}

interface Place {
  project: string;
  key: string;
  name: string;
  renames: Readonly<Record<string, string>>;
}

const HEAD = 512 * 1024;

/** The first whole lines of a file. */
export async function headOf(file: File): Promise<string> {
  const text = await file.slice(0, HEAD).text();
  const end = text.lastIndexOf("\n");
  return file.size > HEAD && end > 0 ? text.slice(0, end) : text;
}

/** A key as the server takes them, made of a file's name. */
export function keyOf(name: string): string {
  const stem = name.replace(/\.(jsonl|ndjson|json|csv|tsv)$/i, "").toLowerCase();
  return stem
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[^a-z0-9]+/, "")
    .slice(0, 64);
}
