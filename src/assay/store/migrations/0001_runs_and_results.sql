-- Runs, and the results of their cells. Applied in one transaction with its number as user_version.

PRAGMA application_id = 1634955641;

CREATE TABLE run (
  seq        INTEGER PRIMARY KEY,          -- order of creation in this store
  id         TEXT    NOT NULL UNIQUE,
  created_at TEXT    NOT NULL,             -- ISO 8601, UTC
  label      TEXT    NOT NULL,
  config     TEXT    NOT NULL,             -- JSON object
  digests    TEXT    NOT NULL,             -- JSON object: case id to digest
  planned    INTEGER NOT NULL,
  finished   INTEGER NOT NULL CHECK (finished IN (0, 1))
);

-- One row for each grading of a cell. The highest seq of a cell is its result; the others are its
-- history.
CREATE TABLE result (
  seq       INTEGER PRIMARY KEY,
  run_id    TEXT    NOT NULL REFERENCES run (id),
  case_id   TEXT    NOT NULL,
  harness   TEXT    NOT NULL,
  model     TEXT    NOT NULL,
  trial     INTEGER NOT NULL CHECK (trial >= 1),
  status    TEXT    NOT NULL CHECK (status IN ('graded', 'error', 'skipped')),
  reward    REAL    CHECK (reward BETWEEN 0 AND 1),
  passed    INTEGER CHECK (passed IN (0, 1)),
  threshold REAL    NOT NULL,
  seconds   REAL    NOT NULL,
  cost_usd  REAL,                          -- NULL is unknown
  tokens    INTEGER,                       -- NULL is unknown
  digest    TEXT    NOT NULL,
  snapshot  TEXT    NOT NULL,              -- digest of the workspace left behind, or empty
  error     TEXT    NOT NULL,
  flags     TEXT    NOT NULL,              -- JSON array
  file      TEXT    NOT NULL,
  content   TEXT    NOT NULL,
  answer    TEXT    NOT NULL,
  subscores TEXT    NOT NULL,              -- JSON array of score trees
  -- SQLite stores a NaN as NULL: without this, one would pass for "not graded".
  CONSTRAINT only_what_was_graded_has_a_reward
    CHECK ((status = 'graded') = (reward IS NOT NULL) AND (status = 'graded') = (passed IS NOT NULL))
);

-- Covers progress and resume, so that neither reads the wide rows.
CREATE INDEX result_of_cell
  ON result (run_id, case_id, harness, model, trial, seq, status, passed);

-- Everything about one result, fetched only when somebody opens it: zstd-compressed JSON.
CREATE TABLE detail (
  seq  INTEGER PRIMARY KEY REFERENCES result (seq),
  body BLOB    NOT NULL
);

CREATE VIEW newest AS
  SELECT * FROM result WHERE NOT EXISTS (
    SELECT 1 FROM result AS later
    WHERE later.run_id = result.run_id AND later.case_id = result.case_id
      AND later.harness = result.harness AND later.model = result.model
      AND later.trial = result.trial AND later.seq > result.seq
  );

CREATE TRIGGER results_are_appended BEFORE UPDATE ON result
BEGIN
  SELECT RAISE (ABORT, 'results are appended, never overwritten');
END;

CREATE TRIGGER details_are_appended BEFORE UPDATE ON detail
BEGIN
  SELECT RAISE (ABORT, 'results are appended, never overwritten');
END;
