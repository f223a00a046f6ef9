-- Projects, and what belongs to them: graders with their versions, datasets, jobs and scores; keys
-- of the server's users, and its replies to requests that may come twice.
--
-- An empty text stands for "not yet" in columns of times, so that they compare like other texts.

CREATE TABLE project (
  seq        INTEGER PRIMARY KEY,
  key        TEXT    NOT NULL UNIQUE,
  name       TEXT    NOT NULL,
  created_at TEXT    NOT NULL              -- ISO 8601, UTC, milliseconds
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
BEGIN
  SELECT RAISE (ABORT, 'versions are appended, never overwritten');
END;

CREATE TRIGGER versions_are_kept BEFORE DELETE ON grader_version
BEGIN
  SELECT RAISE (ABORT, 'versions are never deleted');
END;

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
BEGIN
  SELECT RAISE (ABORT, 'rows of a dataset are never overwritten');
END;

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
BEGIN
  SELECT RAISE (ABORT, 'scores are appended, never overwritten');
END;

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
  revoked_at   TEXT    NOT NULL DEFAULT ''
);

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
