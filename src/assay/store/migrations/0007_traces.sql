-- Traces that tracers send, span by span, until somebody makes a dataset of them or deletes them.

CREATE TABLE trace (
  seq        INTEGER PRIMARY KEY,
  project    TEXT    NOT NULL REFERENCES project (key),
  id         TEXT    NOT NULL,             -- 32 hexadecimal digits
  name       TEXT    NOT NULL DEFAULT '',  -- of its outermost span
  whole      INTEGER NOT NULL DEFAULT 0 CHECK (whole IN (0, 1)),
  gen_ai     INTEGER NOT NULL DEFAULT 0 CHECK (gen_ai IN (0, 1)),
  spans      INTEGER NOT NULL DEFAULT 0,
  size       INTEGER NOT NULL DEFAULT 0,   -- bytes of the spans as they are stored
  rewritten  INTEGER NOT NULL DEFAULT 0,   -- spans that came again, and said something else
  refused    INTEGER NOT NULL DEFAULT 0,   -- spans that were not kept
  created_at TEXT    NOT NULL,             -- ISO 8601, UTC, milliseconds
  updated_at TEXT    NOT NULL,
  UNIQUE (project, id)
);

CREATE INDEX trace_of_project ON trace (project, seq);

CREATE TABLE span (
  seq    INTEGER PRIMARY KEY,
  trace  INTEGER NOT NULL REFERENCES trace (seq),
  id     TEXT    NOT NULL,                 -- 16 hexadecimal digits
  digest TEXT    NOT NULL,
  data   TEXT    NOT NULL,                 -- JSON object
  UNIQUE (trace, id)
);

CREATE TRIGGER spans_are_fixed BEFORE UPDATE ON span
BEGIN
  SELECT RAISE (ABORT, 'a span stays as it came first');
END;
