"""pytest alone: hidden tests are copied over the submission, and the exit status decides."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import subprocess

from asked import ASKED, COMMAND, Case, answer, cases, each, lay, left


def _passes(case: Case) -> bool:
    with left(case) as place:
        lay(place, {"test_cart.py": ASKED["hidden"]})
        done = subprocess.run(
            COMMAND.split(), cwd=place, check=False, timeout=60, stdout=subprocess.DEVNULL
        )
    return done.returncode == 0


answer(each(cases("code"), _passes))
