-- How far the newest regrade of a run is, or how it ended.

CREATE TABLE regrade (
  run_id   TEXT    NOT NULL PRIMARY KEY REFERENCES run (id),
  status   TEXT    NOT NULL CHECK (status IN ('running', 'finished', 'failed')),
  total    INTEGER NOT NULL,  -- 0 until that is known
  done     INTEGER NOT NULL,
  left_out INTEGER NOT NULL,
  message  TEXT    NOT NULL,
  wanted_by TEXT  NOT NULL
);
