import { useMemo } from "react";
import { useMay, useProject } from "../api/me";

/** A section of the page. */
export interface Place {
  name: string;
  to: string;
  /** Other parts of the same section. */
  also?: readonly string[];
}

/** Where the caller can go. Runs of cases are the default project's. */
export function usePlaces(): readonly Place[] {
  const project = encodeURIComponent(useProject());
  const seesRuns = useMay("viewer", "default");
  return useMemo(
    () => [
      { name: "Graders", to: `/p/${project}/graders` },
      ...(seesRuns ? [{ name: "Runs", to: "/runs", also: ["/compare"] }] : []),
      {
        name: "Labels",
        to: `/p/${project}/labels`,
        also: [`/p/${project}/calibrations`],
      },
      {
        name: "Data",
        to: `/p/${project}/datasets`,
        also: [`/p/${project}/jobs`, `/p/${project}/traces`],
      },
      { name: "Settings", to: "/settings" },
    ],
    [project, seesRuns],
  );
}
