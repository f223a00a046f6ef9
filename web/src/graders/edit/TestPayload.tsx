import { useMutation } from "@tanstack/react-query";
import { type Ref, useEffect, useImperativeHandle, useMemo, useRef } from "react";
import { useMay } from "../../api/me";
import { useAddress } from "../../parts/address";
import { Button } from "../../parts/Button";
import { count } from "../../parts/figures";
import { Keys, META } from "../../parts/Hint";
import { Loading } from "../../parts/Loading";
import { Panel } from "../../parts/Panel";
import { ProblemBox } from "../../parts/ProblemBox";
import { Segments } from "../../parts/Segments";
import { CHOICE, DatasetSamples, rowsOf } from "./DatasetSamples";
import { BUILT_IN, HOSTILE, readOwn, WANTED } from "./given";
import { useKept } from "./kept";
import { OwnSamples } from "./OwnSamples";
import { TriedSamples } from "./TriedSamples";
import { type Definition, type SavedVersion, type Trial, tryDraft } from "./trial";

/** Tries a draft of any kind on samples, before it is saved, beside the saved version. */
export function TestPayload(props: TestPayloadProps) {
  const { project, kind, definition, savedVersion, onTrial, onLine } = props;
  const may = useMay("editor", project);
  const [{ samples: sources, ...choice }, change] = useAddress({
    samples: ["built-in"],
    ...CHOICE,
  });
  const name = `assay.payload.${project}.${savedVersion?.key ?? `new ${kind}`}`;
  const [own, setOwn] = useKept(`${name}.own`, "");
  const [wanted, setWanted] = useKept<Record<string, number>>(`${name}.wanted`, WANTED);
  const isOn = (source: string) => sources.includes(source);
  const read = useMemo(() => readOwn(own), [own]);
  const sent = [
    ...(isOn("built-in") ? BUILT_IN : []),
    ...(isOn("hostile") ? HOSTILE : []),
    ...(isOn("own") ? read.samples : []),
  ];
  const stored = isOn("dataset") ? rowsOf(choice) : null;
  const taken = stored ? stored.rows.length + stored.take : 0;
  const size = count(sent.length + taken, "sample");
  const asking = useRef<AbortController>(null);

  const trial = useMutation({
    mutationFn: (draft: Definition) => {
      asking.current?.abort();
      asking.current = new AbortController();
      const ids = new Set(sent.map((sample) => sample.id));
      const isWanted = ([id]: [string, number]) => ids.has(id) || taken > 0;
      const body = {
        samples: sent,
        wanted: Object.fromEntries(Object.entries(wanted).filter(isWanted)),
        ...stored,
        ...(savedVersion && { saved: savedVersion.key, version: savedVersion.number }),
      };
      return tryDraft(project, kind, draft, body, asking.current.signal);
    },
    onSuccess: (found, draft) => onTrial(found, draft),
  });
  useEffect(() => () => asking.current?.abort(), []);

  const isReady = may && sent.length + taken > 0 && !(isOn("own") && read.fault);
  const run = () => {
    if (isReady) trial.mutate(definition);
  };
  useImperativeHandle(props.ref, () => ({ run }));

  return (
    <section aria-label="Test payload">
      <Panel
        title="Test payload"
        note={size}
        beside={
          trial.isPending ? (
            <Button onPress={() => asking.current?.abort()}>Stop</Button>
          ) : (
            <Button icon="run" onPress={run} isDisabled={!isReady}>
              Run <Keys>{META}↵</Keys>
            </Button>
          )
        }
      >
        <div className="grid grid-cols-[minmax(0,1fr)] gap-4">
          <Segments
            label="Samples of"
            options={SOURCES}
            isOn={isOn}
            press={(source) =>
              change({
                samples: isOn(source)
                  ? sources.filter((one) => one !== source)
                  : [...sources, source],
              })
            }
          />
          {isOn("dataset") && <DatasetSamples project={project} choice={choice} change={change} />}
          {isOn("own") && <OwnSamples text={own} setText={setOwn} read={read} />}
          {trial.isPending && <Loading what={`Running ${size}`} />}
          {trial.error && trial.error.name !== "AbortError" && !trial.isPending && (
            <ProblemBox problem={trial.error} />
          )}
          {trial.data && !trial.isPending && (
            <TriedSamples
              trial={trial.data}
              hasChecks={kind !== "function"} // beside a function's source stand its own
              isOld={JSON.stringify(trial.variables) !== JSON.stringify(definition)}
              wanted={wanted}
              want={(id, score) => setWanted(changed(wanted, id, score))}
              onLine={onLine}
            />
          )}
          <p className="m-0 text-soft">
            {!may && "Trying a draft needs the role editor. "}
            {may &&
              !trial.data &&
              !trial.isPending &&
              "Run it to see a score, or the error and its line, for each sample. Nothing is stored. "}
            {kind.endsWith("judge") &&
              "Each sample asks the judge's model at least once, which may cost."}
          </p>
        </div>
      </Panel>
    </section>
  );
}

const SOURCES = [
  ["built-in", "Built-in"],
  ["hostile", "Hostile"],
  ["dataset", "Dataset"],
  ["own", "Own"],
] as const;

function changed(wanted: Record<string, number>, id: string, score: number | null) {
  const { [id]: _, ...rest } = wanted;
  return score === null ? rest : { ...rest, [id]: score };
}

export interface PayloadHandle {
  run: () => void;
}

interface TestPayloadProps {
  project: string;
  kind: string;
  /** What is tried. */
  definition: Definition;
  /** The stored version that it is compared with. */
  savedVersion: SavedVersion | undefined;
  /** Is given what came of a definition, such as the marks for an editor. */
  onTrial: (trial: Trial, definition: Definition) => void;
  /** Somebody wants to see a line of the source. */
  onLine: ((line: number) => void) | undefined;
  ref: Ref<PayloadHandle>;
}
