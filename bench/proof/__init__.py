"""What others' material says about assay: each proof reads a clone of another repository.

Nothing of others is kept here. ``docs/proof.md`` has the figures; ``python -m bench.proof`` lists
the proofs with the command that repeats each.
"""
