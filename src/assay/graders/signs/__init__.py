"""Signs in a submission's changes that it tries to manipulate its grading."""
