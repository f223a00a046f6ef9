import type { ReactNode } from "react";
import type { Schemas } from "../api/client";
import { IconButton } from "../parts/Button";
import { Outcome } from "../parts/Outcome";
import { Boundary } from "../parts/Panel";
import { Pictures } from "../parts/Picture";
import { TextBlock } from "../parts/TextBlock";

/** What is chosen in a list, read beside it. */
export function Opened({ label, place, close, children }: OpenedProps) {
  return (
    <aside
      aria-label={label}
      className="grid max-h-[clamp(260px,calc(100vh-280px),900px)] content-start overflow-auto rounded-lg bg-sunk p-4 [&_pre]:bg-page"
    >
      <div className="flex items-center justify-between gap-4">
        <h2 className="m-0 text-lg font-semibold">{label}</h2>
        <IconButton icon="close" label="Close" onPress={close} />
      </div>
      <Boundary place={place} what="Loading the row">
        {children}
      </Boundary>
    </aside>
  );
}

interface OpenedProps {
  label: string;
  /** What tells it from others. */
  place: string;
  close: () => void;
  children: ReactNode;
}

/** A row as graders are given it, and below that as it came. */
export function OpenedRow({ row }: { row: Schemas["RowDetail"] }) {
  return (
    <>
      {row.fault && (
        <p className="m-0">
          <Outcome state="error" text="it cannot be graded" /> {row.fault}
        </p>
      )}
      {row.turns.length === 0 && row.question !== null && (
        <TextBlock title="Question" text={row.question} />
      )}
      {row.turns.map((turn, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: turns have no other name, and never move
        <TextBlock key={place} title={turn.role} text={turn.text} />
      ))}
      {row.pictures.length > 0 && (
        <section className="mt-4">
          <h3 className="m-0 mb-1 text-sm font-medium text-soft">Pictures</h3>
          <Pictures pictures={row.pictures} />
        </section>
      )}
      {row.answer !== null && <TextBlock title="Answer" text={row.answer} />}
      {row.expected !== null && <TextBlock title="Expected" text={row.expected} />}
      {row.metadata && <TextBlock title="Metadata" text={row.metadata} />}
      {row.json && (
        <details className="mt-3">
          <summary className="min-h-8 cursor-pointer text-soft">As it came</summary>
          <TextBlock title="JSON" text={row.json} />
        </details>
      )}
    </>
  );
}
