import type { ReactNode } from "react";
import { Navigate, Route, Routes } from "react-router";
import { useTheme } from "../app/theme";
import { Unfolded } from "../parts/Disclosure";
import { Outcome } from "../parts/Outcome";
import { Boundary } from "../parts/Panel";
import { usePageTitle } from "../parts/title";
import CellPage from "../runs/cell/CellPage";
import { Comparison } from "../runs/compare/Comparison";
import { runName } from "../runs/names";
import RunPage from "../runs/RunPage";
import type { FileData, RunData } from "./data";
import { Foot } from "./Foot";
import { Printed } from "./Printed";
import { usePrinting } from "./printing";
import "./report.css";

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
        <ul className="left-out">
          {data.left_out.map((said) => (
            <li key={said}>{said}</li>
          ))}
        </ul>
      )}
      <Routes>
        <Route path="/runs/:run/cell" element={<CellPage />} />
        <Route path="/runs/:run" element={<RunPage />} />
        <Route
          path="*"
          element={<Navigate to={`/runs/${encodeURIComponent(data.record.id)}`} replace />}
        />
      </Routes>
    </>
  );
}

function Compared({ comparison, ending }: Extract<FileData, { comparison: unknown }>) {
  const names = [comparison.before, comparison.after].map((side) =>
    runName({ id: side.run, label: side.label }),
  );
  const title = [...new Set(names)].join(" → ");
  usePageTitle(title);
  return (
    <div className="page stack">
      <div className="page-head">
        <h1>{title}</h1>
      </div>
      <p className={`verdict panel ${ending}`}>
        <Outcome state={ending} /> <span>{comparison.verdict}</span>
      </p>
      <Comparison found={comparison} cases={{ withUnchanged: true }} />
    </div>
  );
}

function Frame({ children }: { children: ReactNode }) {
  const { theme, turn } = useTheme();
  return (
    <div className="report">
      <header className="bar">
        <strong className="brand">assay</strong>
        <span className="soft grow">report in one file</span>
        <button type="button" className="quiet" onClick={turn}>
          Theme: {theme}
        </button>
        <button type="button" className="quiet" onClick={() => window.print()}>
          Print
        </button>
      </header>
      <main id="main">
        <Boundary>{children}</Boundary>
      </main>
      <Foot />
    </div>
  );
}
