"""Speed as ratios: assay beside other packages, measured in turn in one run.

Absolute times say more about the machine than about the code, so nothing here is a test: it prints
what was measured, beside the goal, and leaves the judgement to the reader. See
``bench/README.md``.
"""
