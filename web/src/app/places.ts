import { useMemo } from "react";
import { useMay, useProject } from "../api/me";
import type { IconName } from "../parts/Icon";

/** A section of the page. */
export interface Place {
  name: string;
  icon: IconName;
  to: string;
  /** Other parts of the same section. */
  also?: readonly string[];
}

const RUNS: readonly Place[] = [{ name: "Runs", icon: "run", to: "/runs", also: ["/compare"] }];

/** Where the caller can go. Runs of cases are the default project's. */
export function usePlaces(): readonly Place[] {
  const project = encodeURIComponent(useProject());
  const seesRuns = useMay("viewer", "default");
  return useMemo<readonly Place[]>(
    () => [
      { name: "Graders", icon: "grader", to: `/p/${project}/graders` },
      ...(seesRuns ? RUNS : []),
      {
        name: "Labels",
        icon: "label",
        to: `/p/${project}/labels`,
        also: [`/p/${project}/calibrations`],
      },
      {
        name: "Data",
        icon: "data",
        to: `/p/${project}/datasets`,
        also: [`/p/${project}/jobs`, `/p/${project}/traces`],
      },
      { name: "Settings", icon: "settings", to: "/settings" },
    ],
    [project, seesRuns],
  );
}
