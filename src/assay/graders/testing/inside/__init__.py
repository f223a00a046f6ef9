"""What runs inside the sandbox, under the case's own interpreter. Nothing here imports assay."""
