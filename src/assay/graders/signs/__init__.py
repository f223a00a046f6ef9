"""Signs in a submission's changes that it speaks to its judge instead of its task."""
