"""assay's graders inside tools that people have already; a file per tool, which imports it."""
