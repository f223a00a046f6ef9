-- What was done to a submission before it was graded: changes that were left out, and why.

ALTER TABLE result ADD COLUMN notes TEXT NOT NULL DEFAULT '{}';  -- JSON object

DROP VIEW newest;

CREATE VIEW newest AS
  SELECT * FROM result WHERE NOT EXISTS (
    SELECT 1 FROM result AS later
    WHERE later.run_id = result.run_id AND later.case_id = result.case_id
      AND later.harness = result.harness AND later.model = result.model
      AND later.trial = result.trial AND later.seq > result.seq
  );
