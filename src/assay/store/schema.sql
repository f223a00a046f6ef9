-- Every table, in SQLite's words; `postgres.py` has the few that PostgreSQL says otherwise.
--
-- Times are ISO 8601 in UTC to the millisecond, and an empty text where there is none yet: texts
-- compare like times. Truth values are 0 and 1.

CREATE TABLE run (
  seq        INTEGER PRIMARY KEY,          -- order of creation in this store
  id         TEXT    NOT NULL UNIQUE,
  created_at TEXT    NOT NULL,
  label      TEXT    NOT NULL,
  config     TEXT    NOT NULL,             -- JSON object
  digests    TEXT    NOT NULL,             -- JSON object: case id to digest
  planned    INTEGER NOT NULL,
  finished   INTEGER NOT NULL CHECK (finished IN (0, 1)),
  assay      TEXT    NOT NULL DEFAULT ''   -- the version that began it
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
  notes     TEXT    NOT NULL DEFAULT '{}', -- JSON object
  -- SQLite stores a NaN as NULL: without this, one would pass for "not graded".
  CONSTRAINT only_what_was_graded_has_a_reward
    CHECK ((status = 'graded') = (reward IS NOT NULL) AND (status = 'graded') = (passed IS NOT NULL))
);

-- Covers progress and resume, so that neither reads the wide rows.
CREATE INDEX result_of_cell
  ON result (run_id, case_id, harness, model, trial, seq, status, passed);
CREATE TRIGGER results_are_appended BEFORE UPDATE ON result
BEGIN SELECT RAISE (ABORT, 'results are appended, never overwritten'); END;

CREATE VIEW newest AS
  SELECT * FROM result WHERE NOT EXISTS (
    SELECT 1 FROM result AS later
    WHERE later.run_id = result.run_id AND later.case_id = result.case_id
      AND later.harness = result.harness AND later.model = result.model
      AND later.trial = result.trial AND later.seq > result.seq
  );

-- Everything about one result, fetched only when somebody opens it: zstd-compressed JSON.
CREATE TABLE detail (
  seq  INTEGER PRIMARY KEY REFERENCES result (seq),
  body BLOB    NOT NULL
);
CREATE TRIGGER details_are_appended BEFORE UPDATE ON detail
BEGIN SELECT RAISE (ABORT, 'results are appended, never overwritten'); END;

-- How far the newest regrade of a run is, or how it ended.
CREATE TABLE regrade (
  run_id    TEXT    NOT NULL PRIMARY KEY REFERENCES run (id),
  status    TEXT    NOT NULL CHECK (status IN ('running', 'finished', 'failed')),
  total     INTEGER NOT NULL,              -- 0 until that is known
  done      INTEGER NOT NULL,
  left_out  INTEGER NOT NULL,
  message   TEXT    NOT NULL,
  wanted_by TEXT    NOT NULL
);

-- What graders, datasets, traces, jobs, scores and labels belong to. How much one may ask of a
-- server: NULL is as much as there is.
CREATE TABLE project (
  seq                 INTEGER PRIMARY KEY,
  key                 TEXT    NOT NULL UNIQUE,
  name                TEXT    NOT NULL,
  created_at          TEXT    NOT NULL,
  requests_per_minute INTEGER,
  gradings_at_once    INTEGER
);

INSERT INTO project (key, name, created_at)
  VALUES ('default', 'Default', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'));

-- A deleted grader stays, for its versions' sake; its key is free for another.
CREATE TABLE grader (
  seq          INTEGER PRIMARY KEY,
  project      TEXT    NOT NULL REFERENCES project (key),
  key          TEXT    NOT NULL,
  name         TEXT    NOT NULL,
  description  TEXT    NOT NULL,
  feedback_key TEXT    NOT NULL,
  locked       INTEGER NOT NULL CHECK (locked IN (0, 1)),
  words        TEXT    NOT NULL,           -- key, name and description in small letters
  earliest     INTEGER NOT NULL,           -- number of its first version
  latest       INTEGER NOT NULL,           -- number of its newest version
  created_at   TEXT    NOT NULL,
  updated_at   TEXT    NOT NULL,
  deleted_at   TEXT    NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX grader_of_key ON grader (project, key) WHERE deleted_at = '';

CREATE TABLE grader_version (
  seq        INTEGER PRIMARY KEY,
  grader     INTEGER NOT NULL REFERENCES grader (seq),
  project    TEXT    NOT NULL,
  key        TEXT    NOT NULL,
  number     INTEGER NOT NULL CHECK (number >= 1),
  kind       TEXT    NOT NULL,
  definition TEXT    NOT NULL,             -- JSON object
  digest     TEXT    NOT NULL,
  note       TEXT    NOT NULL,
  created_at TEXT    NOT NULL,
  created_by TEXT    NOT NULL,
  UNIQUE (project, key, number)            -- for ever: also when a deleted grader's key is used again
);
CREATE TRIGGER versions_are_appended BEFORE UPDATE ON grader_version
BEGIN SELECT RAISE (ABORT, 'versions are appended, never overwritten'); END;
CREATE TRIGGER versions_are_kept BEFORE DELETE ON grader_version
BEGIN SELECT RAISE (ABORT, 'versions are never deleted'); END;

-- A deleted dataset loses its rows, and stays for the sake of its jobs.
CREATE TABLE dataset (
  seq        INTEGER PRIMARY KEY,
  project    TEXT    NOT NULL REFERENCES project (key),
  key        TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  "rows"     INTEGER NOT NULL,
  size       INTEGER NOT NULL,
  digest     TEXT    NOT NULL,
  created_at TEXT    NOT NULL,
  deleted_at TEXT    NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX dataset_of_key ON dataset (project, key) WHERE deleted_at = '';

CREATE TABLE dataset_row (
  dataset INTEGER NOT NULL REFERENCES dataset (seq),
  number  INTEGER NOT NULL CHECK (number >= 1),
  id      TEXT    NOT NULL,
  data    TEXT    NOT NULL,                -- JSON object
  PRIMARY KEY (dataset, number)
) WITHOUT ROWID;
CREATE TRIGGER rows_are_fixed BEFORE UPDATE ON dataset_row
BEGIN SELECT RAISE (ABORT, 'rows of a dataset are never overwritten'); END;

CREATE TABLE job (
  seq         INTEGER PRIMARY KEY,
  id          TEXT    NOT NULL UNIQUE,
  project     TEXT    NOT NULL REFERENCES project (key),
  grader      INTEGER NOT NULL REFERENCES grader (seq),
  grader_key  TEXT    NOT NULL,
  version     INTEGER NOT NULL,
  dataset     INTEGER NOT NULL REFERENCES dataset (seq),
  dataset_key TEXT    NOT NULL,
  status      TEXT    NOT NULL
    CHECK (status IN ('queued', 'running', 'finished', 'failed', 'cancelled')),
  total       INTEGER NOT NULL,
  done        INTEGER NOT NULL DEFAULT 0 CHECK (done BETWEEN 0 AND total),
  errors      INTEGER NOT NULL DEFAULT 0 CHECK (errors BETWEEN 0 AND done),
  message     TEXT    NOT NULL DEFAULT '',
  owner       TEXT    NOT NULL DEFAULT '', -- who works on it
  lease_until TEXT    NOT NULL DEFAULT '', -- and for how long others leave it alone
  claims      INTEGER NOT NULL DEFAULT 0,  -- since its last score
  created_at  TEXT    NOT NULL,
  updated_at  TEXT    NOT NULL,
  created_by  TEXT    NOT NULL
);
CREATE INDEX job_of_project ON job (project, seq);
CREATE INDEX job_of_grader ON job (grader);
CREATE INDEX job_of_dataset ON job (dataset);
CREATE INDEX job_to_do ON job (seq) WHERE status IN ('queued', 'running');

CREATE TABLE score (
  seq        INTEGER PRIMARY KEY,
  project    TEXT    NOT NULL REFERENCES project (key),
  item       TEXT    NOT NULL,
  job        TEXT    REFERENCES job (id),
  number     INTEGER,                      -- row of the job's dataset
  source     TEXT    NOT NULL CHECK (source IN ('grader', 'user', 'sdk')),
  grader_key TEXT    NOT NULL,
  version    INTEGER,                      -- NULL where the score names none
  digest     TEXT    NOT NULL,
  status     TEXT    NOT NULL CHECK (status IN ('scored', 'skipped', 'error')),
  score      REAL,
  evidence   TEXT    NOT NULL,             -- JSON object: outcome, reason, error, flags, details
  created_at TEXT    NOT NULL,
  CONSTRAINT only_what_was_scored_has_a_score CHECK ((status = 'scored') = (score IS NOT NULL)),
  CONSTRAINT a_score_is_finite
    CHECK (score BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308),
  CONSTRAINT a_job_has_rows CHECK ((job IS NULL) = (number IS NULL)),
  UNIQUE (job, number)                     -- a row is graded once in a job
);
CREATE INDEX score_of_project ON score (project, seq);
CREATE INDEX score_of_grader ON score (project, grader_key, seq);
CREATE INDEX score_of_item ON score (project, item, seq);
CREATE INDEX score_of_job ON score (job, seq);
CREATE TRIGGER scores_are_appended BEFORE UPDATE ON score
BEGIN SELECT RAISE (ABORT, 'scores are appended, never overwritten'); END;

CREATE TABLE api_key (
  seq          INTEGER PRIMARY KEY,
  id           TEXT    NOT NULL UNIQUE,
  name         TEXT    NOT NULL,
  role         TEXT    NOT NULL CHECK (role IN ('viewer', 'editor', 'admin')),
  project      TEXT    NOT NULL,           -- a project's key, or * for all
  prefix       TEXT    NOT NULL,
  hashed       TEXT    NOT NULL UNIQUE,
  created_at   TEXT    NOT NULL,
  last_used_at TEXT    NOT NULL DEFAULT '',
  revoked_at   TEXT    NOT NULL DEFAULT '',
  expires_at   TEXT    NOT NULL DEFAULT ''
);

-- Replies to requests that may come twice.
CREATE TABLE reply (
  seq        INTEGER PRIMARY KEY,
  project    TEXT    NOT NULL,
  key        TEXT    NOT NULL,             -- the request's Idempotency-Key
  request    TEXT    NOT NULL,             -- digest of the request
  status     INTEGER NOT NULL,
  body       BLOB    NOT NULL,
  created_at TEXT    NOT NULL,
  UNIQUE (project, key)
);
CREATE INDEX reply_of_time ON reply (created_at);

-- A row as it was when somebody labelled it; named by a digest of what raters are shown.
CREATE TABLE label_item (
  seq        INTEGER PRIMARY KEY,
  project    TEXT    NOT NULL REFERENCES project (key),
  digest     TEXT    NOT NULL,
  data       TEXT    NOT NULL,             -- JSON object
  created_at TEXT    NOT NULL,
  UNIQUE (project, digest)
);

-- Of one rater's labels of an item in a field, the last one counts; an empty one takes it back.
CREATE TABLE label (
  seq        INTEGER PRIMARY KEY,
  project    TEXT    NOT NULL,
  field      TEXT    NOT NULL,
  item       TEXT    NOT NULL,
  rater      TEXT    NOT NULL,
  label      TEXT    NOT NULL,
  note       TEXT    NOT NULL,
  criterion  TEXT    NOT NULL,             -- what was asked
  created_at TEXT    NOT NULL,
  FOREIGN KEY (project, item) REFERENCES label_item (project, digest)
);
CREATE INDEX label_of_field ON label (project, field, seq);
CREATE TRIGGER labels_are_appended BEFORE UPDATE ON label
BEGIN SELECT RAISE (ABORT, 'labels are appended, never overwritten'); END;

-- What a calibration found of a grader of exactly that digest.
CREATE TABLE card (
  seq        INTEGER PRIMARY KEY,
  id         TEXT    NOT NULL UNIQUE,
  project    TEXT    NOT NULL REFERENCES project (key),
  grader     TEXT    NOT NULL,             -- its name or key
  digest     TEXT    NOT NULL,             -- of what gives its scores
  alias      TEXT    NOT NULL,             -- the digest of the same grader outside of the registry
  labels     TEXT    NOT NULL,             -- digest of the labels
  body       TEXT    NOT NULL,             -- JSON object
  created_at TEXT    NOT NULL
);
CREATE INDEX card_of_project ON card (project, seq);
CREATE TRIGGER cards_are_appended BEFORE UPDATE ON card
BEGIN SELECT RAISE (ABORT, 'cards are appended, never overwritten'); END;

-- What a grader said during a calibration: gone on with while there is no card, its evidence then.
CREATE TABLE judgement (
  seq        INTEGER PRIMARY KEY,
  project    TEXT    NOT NULL REFERENCES project (key),
  work       TEXT    NOT NULL,             -- digest of the grader and of the labels
  unit       TEXT    NOT NULL,             -- which asking: the item, its variant, the repeat
  outcome    TEXT    NOT NULL,             -- JSON object
  card       TEXT    NOT NULL DEFAULT '',  -- id of the card that rests on it
  created_at TEXT    NOT NULL
);
CREATE INDEX judgement_of_work ON judgement (project, work, card, seq);

-- Who changed what.
CREATE TABLE change (
  seq       INTEGER PRIMARY KEY,
  time      TEXT    NOT NULL,
  operation TEXT    NOT NULL,              -- such as delete_grader
  project   TEXT    NOT NULL,              -- * for what is in none
  what      TEXT    NOT NULL,              -- JSON object
  who       TEXT    NOT NULL,              -- name of the key, or of the user of the machine
  key       TEXT    NOT NULL,              -- id of the key; local without one
  role      TEXT    NOT NULL,
  address   TEXT    NOT NULL               -- empty where no server was asked
);
CREATE TRIGGER changes_are_appended BEFORE UPDATE ON change
BEGIN SELECT RAISE (ABORT, 'what was done is never rewritten'); END;

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
  created_at TEXT    NOT NULL,
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
BEGIN SELECT RAISE (ABORT, 'a span stays as it came first'); END;
