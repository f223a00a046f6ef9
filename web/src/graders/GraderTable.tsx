import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Link } from "react-router";
import { count, moment, score, whole } from "../parts/figures";
import { KIND_TITLES, type Overview } from "./queries";

const ROW = 53;

/** The list: rows that can be seen are in the document; arrows or j and k walk it. */
export function GraderTable({ project, rows, isMore, more }: TableProps) {
  const body = useRef<HTMLTableSectionElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => setTop(body.current?.offsetTop ?? 0), []);
  const list = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => ROW,
    overscan: 12,
    scrollMargin: top,
  });
  const seen = list.getVirtualItems();
  const first = seen[0];
  const last = seen.at(-1);
  useEffect(() => {
    if (isMore && last && last.index >= rows.length - 20) more();
  }, [isMore, last, rows.length, more]);

  const walk = (event: KeyboardEvent<HTMLTableSectionElement>) => {
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const row = (event.target as Element).closest("tr");
    const next = step > 0 ? row?.nextElementSibling : row?.previousElementSibling;
    const link = next?.querySelector<HTMLAnchorElement>("a");
    if (!link) return;
    event.preventDefault();
    link.focus();
  };

  return (
    <table className="graders" aria-rowcount={isMore ? -1 : rows.length + 1}>
      <thead>
        <tr>
          <th scope="col">Grader</th>
          <th scope="col">Kind</th>
          <th scope="col" className="number">
            Version
          </th>
          <th scope="col">Used by</th>
          <th scope="col">Agreement with people</th>
          <th scope="col">Changed</th>
        </tr>
      </thead>
      <tbody ref={body} onKeyDown={walk}>
        {first && first.start > top && <Gap height={first.start - top} />}
        {seen.map((item) => {
          const row = rows[item.index];
          return row && <Row key={row.key} project={project} row={row} place={item.index + 2} />;
        })}
        {last && <Gap height={list.getTotalSize() - (last.end - top)} />}
      </tbody>
    </table>
  );
}

function Gap({ height }: { height: number }) {
  return height > 0 ? (
    <tr aria-hidden="true">
      <td colSpan={6} style={{ height, padding: 0, border: 0 }} />
    </tr>
  ) : null;
}

function Row({ project, row, place }: { project: string; row: Overview; place: number }) {
  const told = row.name !== row.key ? row.name : row.description;
  return (
    <tr aria-rowindex={place} style={{ height: ROW }}>
      <td className="who">
        <div className="row nowrap">
          <Link className="clip mono" to={`/p/${project}/graders/${row.key}`}>
            {row.key}
          </Link>
          {row.locked && <Locked />}
        </div>
        <div className="soft clip">{told || " "}</div>
      </td>
      <td>{KIND_TITLES[row.latest.kind] ?? row.latest.kind}</td>
      <td className="number">{row.latest.number}</td>
      <td>
        <UsedBy row={row} />
      </td>
      <td>
        <Agreement calibration={row.calibration} />
      </td>
      <td className="soft when">
        {moment(row.updated_at)}
        <div className="clip">{row.latest.created_by && `by ${row.latest.created_by}`}</div>
      </td>
    </tr>
  );
}

export function Locked() {
  return (
    <span className="badge" title="Locked: changes are refused">
      <svg viewBox="0 0 12 12" width="11" height="11" aria-hidden="true">
        <path
          d="M3 5V3.5a3 3 0 0 1 6 0V5h.5a.5.5 0 0 1 .5.5v5a.5.5 0 0 1-.5.5h-7a.5.5 0 0 1-.5-.5v-5A.5.5 0 0 1 2.5 5zm1.2 0h3.6V3.5a1.8 1.8 0 0 0-3.6 0z"
          fill="currentColor"
        />
      </svg>
      locked
    </span>
  );
}

function UsedBy({ row }: { row: Overview }) {
  const { jobs, active_jobs: active, scores } = row.use;
  if (!jobs && !scores) return <span className="soft">not used yet</span>;
  return (
    <>
      {scores > 0 && <div>{scores >= 10_000 ? "10,000+ scores" : count(scores, "score")}</div>}
      {jobs > 0 && (
        <div className="soft">
          {count(jobs, "job")}
          {active > 0 && `, ${whole(active)} running`}
        </div>
      )}
    </>
  );
}

/** How far a grader agrees with people: kappa, its interval, how many rows; or that it is stale. */
export function Agreement({ calibration }: { calibration: Overview["calibration"] }) {
  if (!calibration) return <span className="soft">not measured</span>;
  const { kappa, kappa_interval: interval, n, stale, line, changed } = calibration;
  const [low, high] = interval ?? [];
  return (
    <div title={line}>
      <div className="nowrap">
        <span className="kappa">κ {score(kappa)}</span>{" "}
        {low !== undefined && high !== undefined && (
          <span className="soft">
            [{score(low)}, {score(high)}]
          </span>
        )}
      </div>
      <div className="soft">
        n = {whole(n)}
        {stale && (
          <span className="badge warns" title={changed.join("; ")}>
            stale
          </span>
        )}
      </div>
    </div>
  );
}

interface TableProps {
  project: string;
  rows: Overview[];
  isMore: boolean;
  more: () => void;
}
