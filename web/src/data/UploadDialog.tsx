import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { useNavigate } from "react-router";
import { api, ask, type Schemas } from "../api/client";
import { Button } from "../parts/Button";
import { Command } from "../parts/Command";
import { FormDialog } from "../parts/Dialog";
import { Drop } from "../parts/Drop";
import { FORM_ROW, INPUT } from "../parts/Field";
import { count, percent, whole } from "../parts/figures";
import { KeyFields } from "../parts/KeyFields";
import { Loading } from "../parts/Loading";
import { Outcome } from "../parts/Outcome";
import { ProblemBox } from "../parts/ProblemBox";
import { Progress } from "../parts/Progress";
import { type Shown, Table } from "../parts/Table";
import { DATASETS, size } from "./queries";
import { headOf, keyOf, type Sending, sendFile } from "./upload";

const AS_LINES =
  "python3 -c 'import csv, json, sys; [print(json.dumps(row)) for row in csv.DictReader(sys.stdin)]' < answers.csv > answers.jsonl";
const FIELDS = ["answer", "question", "expected", "messages", "metadata", "id"] as const;

/** A file on its way into a dataset: chosen, looked at, named, sent. */
export function UploadDialog({ project, close }: { project: string; close: () => void }) {
  const [file, setFile] = useState<File | null>(null);
  const [called, setCalled] = useState({ key: "", name: "" });
  const [renames, setRenames] = useState<Record<string, string>>({});
  const [sent, setSent] = useState<number | null>(null);
  const [problem, setProblem] = useState<Error | null>(null);
  const sending = useRef<Sending | null>(null);
  const known = useQueryClient();
  const go = useNavigate();

  const take = (chosen: File | undefined) => {
    if (!chosen) return;
    setFile(chosen);
    setCalled({ ...called, key: keyOf(chosen.name) });
    setRenames({});
    setProblem(null);
  };
  const send = async () => {
    if (!file) return;
    setProblem(null);
    setSent(0);
    try {
      sending.current = sendFile({ project, ...called, renames }, file, setSent);
      const made = await sending.current.done;
      await known.invalidateQueries(DATASETS);
      go(`/p/${project}/datasets/${made.key}`);
    } catch (error) {
      setProblem(error as Error);
      setSent(null);
    }
  };
  const isTable = file !== null && /\.[ct]sv$/i.test(file.name);
  const leave = () => {
    sending.current?.cancel();
    close();
  };
  return (
    <FormDialog
      title="Upload a dataset"
      action="Store"
      isDisabled={!file || isTable || !called.key || sent !== null}
      work={{ isPending: false, error: problem }}
      close={leave}
      submit={() => void send()}
      isWide
    >
      <Drop
        words={file ? `${file.name}, ${size(file.size)}` : "Drop a file of JSON lines, or"}
        label="File of JSON lines"
        accept=".jsonl,.ndjson,.json"
        take={([chosen]) => take(chosen)}
      />
      {file && (
        <>
          <div className={FORM_ROW}>
            <KeyFields called={called} change={setCalled} />
          </div>
          {isTable ? <OfTable /> : <Preview file={file} renames={renames} rename={setRenames} />}
        </>
      )}
      {sent !== null && (
        <div className="grid gap-1">
          <Progress done={Math.round(100 * sent)} total={100} noun="percent" />
          <span className="text-soft" role="status">
            {sent < 1 ? `${percent(sent)} sent` : "Every row is checked …"}
          </span>
        </div>
      )}
    </FormDialog>
  );
}

/** What to do with a table. */
function OfTable() {
  return (
    <div role="status" className="grid justify-items-start gap-2">
      <p className="m-0">
        <Outcome state="error" text="This is a table; a dataset is lines of JSON." /> To make them
        of a file with a line of headings:
      </p>
      <Command text={AS_LINES} />
    </div>
  );
}

/** How the first rows would be read, and what to call their fields. */
function Preview({ file, renames, rename }: PreviewProps) {
  const read = useQuery({
    queryKey: ["read", file.name, file.size, file.lastModified, renames],
    queryFn: async () => {
      const lines = await headOf(file);
      return ask(api.POST("/api/v1/datasets/read", { body: { lines, mapping: renames } }));
    },
    placeholderData: (before) => before,
  });
  if (read.error) return <ProblemBox problem={read.error} />;
  if (!read.data) return <Loading what="Reading" />;
  const { rows, fields, wrong, likely } = read.data;
  const guesses = Object.entries(likely).filter(([ours]) => !renames[ours]);
  return (
    <>
      <div className="grid grid-cols-2 gap-3 md:grid-cols-6">
        {FIELDS.map((ours) => (
          <label key={ours} className="grid gap-1">
            <span className="font-mono text-sm">{ours}</span>
            <select
              aria-label={`${ours} is called`}
              value={renames[ours] ?? ""}
              onChange={(event) => rename(changed(renames, ours, event.target.value))}
              className={INPUT}
            >
              <option value="">{fields.includes(ours) ? "as it is" : "none"}</option>
              {fields
                .filter((theirs) => theirs !== ours)
                .map((theirs) => (
                  <option key={theirs}>{theirs}</option>
                ))}
            </select>
          </label>
        ))}
      </div>
      {guesses.length > 0 && (
        <span>
          <Button onPress={() => rename({ ...renames, ...likely })}>
            Take {guesses.map(([ours, theirs]) => `${theirs} as ${ours}`).join(", ")}
          </Button>
        </span>
      )}
      <p role="status" className="m-0">
        {wrong > 0 ? (
          <Outcome
            state="error"
            text={`${whole(wrong)} of the first ${count(rows.length, "row")} cannot be stored`}
          />
        ) : (
          <Outcome state="pass" text={`the first ${count(rows.length, "row")} can be stored`} />
        )}
      </p>
      <div
        role="region"
        tabIndex={0}
        aria-label="First rows"
        className="max-h-64 overflow-auto rounded-md border border-line px-2"
      >
        <Table columns={COLUMNS} items={rows} keyOf={(row) => row.number} lookOf={lookOf} />
      </div>
    </>
  );
}

type Row = Schemas["RowGlimpse"];

const lookOf = (row: Row) => (row.fault ? "bg-error-soft" : "");
const cut = (text: string) => <span className="line-clamp-2 min-w-24 wrap-anywhere">{text}</span>;

const COLUMNS: readonly Shown<Row>[] = [
  { name: "Line", kind: "number", show: (row) => row.number },
  {
    name: "Question",
    show: (row) =>
      row.fault ? (
        <>
          <Outcome state="error" text="" /> {row.fault}
          {row.hint && <span className="text-soft"> – {row.hint}</span>}
        </>
      ) : (
        cut(row.question)
      ),
  },
  { name: "Answer", show: (row) => cut(row.answer) },
  { name: "Expected", from: "md", show: (row) => cut(row.expected) },
  {
    name: "Metadata",
    from: "md",
    show: (row) =>
      [
        row.turns ? count(row.turns, "message") : "",
        row.steps ? count(row.steps, "step") : "",
        ...row.others,
      ]
        .filter(Boolean)
        .join(", "),
  },
];

function changed(renames: Record<string, string>, ours: string, theirs: string) {
  const { [ours]: _, ...rest } = renames;
  return theirs ? { ...rest, [ours]: theirs } : rest;
}

interface PreviewProps {
  file: File;
  renames: Record<string, string>;
  rename: (renames: Record<string, string>) => void;
}
