import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useRef, useState } from "react";
import { useNavigate } from "react-router";
import { api, ask, type Schemas } from "../api/client";
import { Command } from "../parts/Command";
import { Dialog } from "../parts/Dialog";
import { Drop } from "../parts/Drop";
import { count, percent, whole } from "../parts/figures";
import { Loading } from "../parts/Loading";
import { Outcome } from "../parts/Outcome";
import { ProblemBox } from "../parts/ProblemBox";
import { size } from "./queries";
import { headOf, keyOf, type Sending, sendFile } from "./upload";

const AS_LINES =
  "python3 -c 'import csv, json, sys; [print(json.dumps(row)) for row in csv.DictReader(sys.stdin)]' < answers.csv > answers.jsonl";
const FIELDS = ["answer", "question", "expected", "messages", "metadata", "id"] as const;

/** A file on its way into a dataset: chosen, looked at, named, sent. */
export function UploadDialog({ project, close }: { project: string; close: () => void }) {
  const [file, setFile] = useState<File | null>(null);
  const [key, setKey] = useState("");
  const [name, setName] = useState("");
  const [renames, setRenames] = useState<Record<string, string>>({});
  const [sent, setSent] = useState<number | null>(null);
  const [problem, setProblem] = useState<Error | null>(null);
  const sending = useRef<Sending | null>(null);
  const known = useQueryClient();
  const go = useNavigate();

  const take = (chosen: File | undefined) => {
    if (!chosen) return;
    setFile(chosen);
    setKey(keyOf(chosen.name));
    setRenames({});
    setProblem(null);
  };
  const send = async (event: FormEvent) => {
    event.preventDefault();
    if (!file) return;
    setProblem(null);
    setSent(0);
    try {
      sending.current = sendFile({ project, key, name, renames }, file, setSent);
      const made = await sending.current.done;
      await known.invalidateQueries({ queryKey: ["datasets", project] });
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
    <Dialog title="Upload a dataset" close={leave} isWide>
      <form className="data-upload" onSubmit={send}>
        <Drop
          words={file ? `${file.name}, ${size(file.size)}` : "Drop a file of JSON lines, or"}
          label="File of JSON lines"
          accept=".jsonl,.ndjson,.json"
          take={([chosen]) => take(chosen)}
        />
        {file && (
          <>
            <div className="row">
              <label>
                <span>Key</span>
                <input
                  required
                  value={key}
                  pattern="[a-z0-9][a-z0-9._\-]{0,63}"
                  title="Small letters, digits, dots, dashes"
                  onChange={(event) => setKey(event.target.value)}
                />
              </label>
              <label>
                <span>Name for people (optional)</span>
                <input
                  value={name}
                  maxLength={200}
                  onChange={(event) => setName(event.target.value)}
                />
              </label>
            </div>
            {isTable ? <Table /> : <Preview file={file} renames={renames} rename={setRenames} />}
          </>
        )}
        {problem && <ProblemBox problem={problem} />}
        {sent !== null && (
          <div>
            <progress value={sent} max={1} aria-label="Sent" />
            <span className="soft" role="status">
              {sent < 1 ? `${percent(sent)} sent` : "Every row is checked …"}
            </span>
          </div>
        )}
        <div className="row end">
          <button type="button" onClick={leave}>
            Cancel
          </button>
          <button
            type="submit"
            className="primary"
            disabled={!file || isTable || !key || sent !== null}
          >
            Store
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** What to do with a table. */
function Table() {
  return (
    <div role="status" className="stack tight">
      <p>
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
      <div className="row">
        {FIELDS.map((ours) => (
          <label key={ours}>
            <span>{ours}</span>
            <select
              aria-label={`${ours} is called`}
              value={renames[ours] ?? ""}
              onChange={(event) => rename(changed(renames, ours, event.target.value))}
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
        <p className="row">
          <button type="button" onClick={() => rename({ ...renames, ...likely })}>
            Take {guesses.map(([ours, theirs]) => `${theirs} as ${ours}`).join(", ")}
          </button>
        </p>
      )}
      <p role="status">
        {wrong > 0 ? (
          <Outcome
            state="error"
            text={`${whole(wrong)} of the first ${count(rows.length, "row")} cannot be stored`}
          />
        ) : (
          <Outcome state="pass" text={`the first ${count(rows.length, "row")} can be stored`} />
        )}
      </p>
      <div className="data-scroll" tabIndex={0} role="region" aria-label="First rows">
        <table>
          <thead>
            <tr>
              <th scope="col" className="narrow">
                Line
              </th>
              <th scope="col">Question</th>
              <th scope="col">Answer</th>
              <th scope="col">Expected</th>
              <th scope="col">Metadata</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <Read key={row.number} row={row} />
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Read({ row }: { row: Schemas["RowGlimpse"] }) {
  if (row.fault) {
    return (
      <tr className="wrong">
        <td className="number">{row.number}</td>
        <td colSpan={4} className="anywhere">
          <Outcome state="error" text="" />
          {row.fault}
          {row.hint && <span className="soft"> – {row.hint}</span>}
        </td>
      </tr>
    );
  }
  return (
    <tr>
      <td className="number">{row.number}</td>
      <td className="clip">{row.question}</td>
      <td className="clip">{row.answer}</td>
      <td className="clip">{row.expected}</td>
      <td className="clip soft">
        {[
          row.turns ? count(row.turns, "message") : "",
          row.steps ? count(row.steps, "step") : "",
          ...row.others,
        ]
          .filter(Boolean)
          .join(", ")}
      </td>
    </tr>
  );
}

function changed(renames: Record<string, string>, ours: string, theirs: string) {
  const { [ours]: _, ...rest } = renames;
  return theirs ? { ...rest, [ours]: theirs } : rest;
}

interface PreviewProps {
  file: File;
  renames: Record<string, string>;
  rename: (renames: Record<string, string>) => void;
}
