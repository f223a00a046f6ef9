import type { ReactNode } from "react";
import { Navigate, Route, Routes, useLocation } from "react-router";

import { useTheme } from "../app/theme";
import { Button } from "../parts/Button";
import { Unfolded } from "../parts/Disclosure";
import { Page } from "../parts/Page";
import { Boundary } from "../parts/Panel";
import CellPage from "../runs/cell/CellPage";
import { Comparison } from "../runs/compare/Comparison";
import { runAddress, runName } from "../runs/names";
import { Verdict } from "../runs/RunHead";
import RunPage from "../runs/RunPage";
import type { FileData, RunData } from "./data";
import { Foot } from "./Foot";
import { Printed } from "./Printed";
import { usePrinting } from "./printing";

/** One file: the same parts that the page has, on what the file holds. */
export function Report({ data }: { data: FileData }) {
  const isPrinting = usePrinting();
  if ("comparison" in data) {
    return (
      <Frame>
        <Unfolded.Provider value={isPrinting}>
          <Compared key={String(isPrinting)} {...data} />
        </Unfolded.Provider>
      </Frame>
    );
  }
  if (isPrinting) return <Printed data={data.run} />;
  return (
    <Frame>
      <Run data={data.run} />
    </Frame>
  );
}

function Run({ data }: { data: RunData }) {
  return (
    <>
      {data.left_out.length > 0 && (
        <ul className="m-0 list-disc bg-error-soft px-12 py-2 text-error" aria-label="Left out">
          {data.left_out.map((said) => (
            <li key={said}>{said}</li>
          ))}
        </ul>
      )}
      <Routes>
        <Route path="/runs/:run/cell" element={<CellPage />} />
        <Route path="/runs/:run" element={<RunPage />} />
        <Route path="*" element={<Navigate to={runAddress(data.record.id)} replace />} />
      </Routes>
    </>
  );
}

function Compared({ comparison, ending }: Extract<FileData, { comparison: unknown }>) {
  const names = [comparison.before, comparison.after].map((side) =>
    runName({ id: side.run, label: side.label }),
  );
  return (
    <Page title={[...new Set(names)].join(" → ")}>
      <div className="mb-6">
        <Verdict state={ending}>{comparison.verdict}</Verdict>
      </div>
      <Comparison found={comparison} cases={{ withUnchanged: true }} />
    </Page>
  );
}

function Frame({ children }: { children: ReactNode }) {
  const { theme, turn } = useTheme();
  return (
    <div className="grid min-h-screen grid-cols-[minmax(0,1fr)] grid-rows-[auto_1fr_auto]">
      <header className="flex flex-wrap items-center gap-2 border-b border-line px-4 py-2 md:px-8 print:hidden">
        <b className="font-semibold">assay</b>
        <span className="grow text-soft max-md:invisible">report in one file</span>
        <Button tone="quiet" onPress={turn}>
          Theme: {theme}
        </Button>
        <Button tone="quiet" onPress={() => window.print()}>
          Print
        </Button>
      </header>
      <main id="main">
        <Boundary place={useLocation().pathname}>{children}</Boundary>
      </main>
      <Foot />
    </div>
  );
}
