-- How far the newest regrade of a run is, or how it ended; as in 0008_regrades.sql.

CREATE TABLE regrade (
  run_id   TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES run (id),
  status   TEXT COLLATE "C" NOT NULL CHECK (status IN ('running', 'finished', 'failed')),
  total    INTEGER NOT NULL,
  done     INTEGER NOT NULL,
  left_out INTEGER NOT NULL,
  message  TEXT COLLATE "C" NOT NULL,
  wanted_by TEXT COLLATE "C" NOT NULL
);
