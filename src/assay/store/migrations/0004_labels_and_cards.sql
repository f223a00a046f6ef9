-- What people say of answers, and what graders are worth by it.

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
  created_at TEXT    NOT NULL,             -- ISO 8601, UTC, milliseconds
  FOREIGN KEY (project, item) REFERENCES label_item (project, digest)
);

CREATE INDEX label_of_field ON label (project, field, seq);

CREATE TRIGGER labels_are_appended BEFORE UPDATE ON label
BEGIN
  SELECT RAISE (ABORT, 'labels are appended, never overwritten');
END;

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
BEGIN
  SELECT RAISE (ABORT, 'cards are appended, never overwritten');
END;

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
