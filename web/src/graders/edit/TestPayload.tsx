import { useMutation } from "@tanstack/react-query";
import { type Ref, useEffect, useImperativeHandle, useMemo, useRef } from "react";
import { useSearchParams } from "react-router";
import { useMay } from "../../api/me";
import { count } from "../../parts/figures";
import { Loading } from "../../parts/Loading";
import { ProblemBox } from "../../parts/ProblemBox";
import { DatasetSamples, datasetChoice } from "./DatasetSamples";
import { BUILT_IN, HOSTILE, readOwn, WANTED } from "./given";
import { useKept } from "./kept";
import { OwnSamples } from "./OwnSamples";
import { TriedSamples } from "./TriedSamples";
import { type Definition, type SavedVersion, type Trial, tryDraft } from "./trial";
import "./payload.css";

/** Tries a draft of any kind on samples, before it is saved, beside the saved version. */
export function TestPayload(props: TestPayloadProps) {
  const { project, kind, definition, savedVersion, onTrial, onLine } = props;
  const may = useMay("editor", project);
  const [query, setQuery] = useSearchParams();
  const name = `assay.payload.${project}.${savedVersion?.key ?? `new ${kind}`}`;
  const [own, setOwn] = useKept(`${name}.own`, "");
  const [wanted, setWanted] = useKept<Record<string, number>>(`${name}.wanted`, WANTED);
  const sources = (query.get("samples") ?? "built-in").split(",").filter(Boolean);
  const isOn = (source: string) => sources.includes(source);
  const choice = datasetChoice(query);
  const read = useMemo(() => readOwn(own), [own]);
  const sent = [
    ...(isOn("built-in") ? BUILT_IN : []),
    ...(isOn("hostile") ? HOSTILE : []),
    ...(isOn("own") ? read.samples : []),
  ];
  const taken = isOn("dataset") && choice.dataset ? choice.rows.length + choice.take : 0;
  const asking = useRef<AbortController>(null);

  const trial = useMutation({
    mutationFn: (draft: Definition) => {
      asking.current?.abort();
      asking.current = new AbortController();
      const ids = new Set(sent.map((sample) => sample.id));
      const isWanted = ([id]: [string, number]) => ids.has(id) || taken > 0;
      return tryDraft(
        project,
        kind,
        draft,
        {
          samples: sent,
          wanted: Object.fromEntries(Object.entries(wanted).filter(isWanted)),
          ...(taken > 0 && { ...choice }),
          ...(savedVersion && { saved: savedVersion.key, version: savedVersion.number }),
        },
        asking.current.signal,
      );
    },
    onSuccess: (found, draft) => onTrial?.(found, draft),
  });
  useEffect(() => () => asking.current?.abort(), []);

  const isReady =
    may && definition !== null && sent.length + taken > 0 && !(isOn("own") && read.fault);
  const run = () => {
    if (isReady && definition) trial.mutate(definition);
  };
  useImperativeHandle(props.ref, () => ({ run }));

  const toggle = (source: string) => {
    const rest = sources.filter((one) => one !== source);
    const now = isOn(source) ? rest : [...rest, source];
    setQuery(
      (before) =>
        new URLSearchParams({
          ...Object.fromEntries(before),
          samples: now.join(",") || "none",
        }),
      { replace: true },
    );
  };
  const isOld =
    trial.data && JSON.stringify(trial.variables) !== JSON.stringify(definition ?? undefined);

  return (
    <section className="payload" aria-label="Test payload">
      <div className="spread">
        <h2>Test payload</h2>
        <span className="row">
          <span className="soft">{count(sent.length + taken, "sample")}</span>
          {trial.isPending ? (
            <button type="button" onClick={() => asking.current?.abort()}>
              Stop
            </button>
          ) : (
            <button type="button" className="primary" onClick={run} disabled={!isReady}>
              Run <kbd aria-hidden="true">{META}↵</kbd>
            </button>
          )}
        </span>
      </div>
      <div className="segments" role="group" aria-label="Samples of">
        {SOURCES.map(([source, text]) => (
          <button
            key={source}
            type="button"
            aria-pressed={isOn(source)}
            onClick={() => toggle(source)}
          >
            {text}
          </button>
        ))}
      </div>
      {isOn("dataset") && <DatasetSamples project={project} />}
      {isOn("own") && <OwnSamples text={own} setText={setOwn} read={read} />}
      {may && definition === null && <p className="soft">Complete the form to run it.</p>}
      {!may && <p className="soft">Trying a draft needs the role of an editor.</p>}
      {kind.endsWith("judge") && (
        <p className="soft">Each sample asks the judge's model at least once, which may cost.</p>
      )}
      {trial.isPending && <Loading what={`Running ${count(sent.length + taken, "sample")}`} />}
      {trial.error && trial.error.name !== "AbortError" && !trial.isPending && (
        <ProblemBox problem={trial.error} />
      )}
      {trial.data && !trial.isPending && (
        <TriedSamples
          trial={trial.data}
          hasChecks={kind !== "function"} // beside a function's source stand its own
          isOld={Boolean(isOld)}
          wanted={wanted}
          want={(id, score) => setWanted(changed(wanted, id, score))}
          onLine={onLine}
        />
      )}
      {!trial.data && !trial.isPending && !trial.error && may && (
        <p className="soft">
          Run it to see a score, or the error and its line, for each sample. Nothing is stored.
        </p>
      )}
    </section>
  );
}

const SOURCES = [
  ["built-in", "Built-in"],
  ["hostile", "Hostile"],
  ["dataset", "Dataset"],
  ["own", "Own"],
] as const;

/** The key that shortcuts begin with on this machine. */
export const META = /Mac|iP/.test(navigator.platform) ? "⌘" : "Ctrl ";

function changed(wanted: Record<string, number>, id: string, score: number | null) {
  const { [id]: _, ...rest } = wanted;
  return score === null ? rest : { ...rest, [id]: score };
}

export interface PayloadHandle {
  run: () => void;
}

export interface TestPayloadProps {
  project: string;
  kind: string;
  /** What is tried; null while a form is not complete. */
  definition: Definition | null;
  /** The stored version that it is compared with. */
  savedVersion?: SavedVersion | undefined;
  /** Is given what came of a definition, such as the marks for an editor. */
  onTrial?: ((trial: Trial, definition: Definition) => void) | undefined;
  /** Somebody wants to see a line of the source. */
  onLine?: ((line: number) => void) | undefined;
  ref?: Ref<PayloadHandle>;
}
