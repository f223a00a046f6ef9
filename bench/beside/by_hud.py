"""HUD: its graders of texts, and ``BashGrader`` for code."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import asyncio
from typing import Any

from asked import ASKED, COMMAND, Case, answer, cases, each, lay, left
from hud.graders import BashGrader, contains, exact_match, numeric_match


def _code(case: Case) -> bool:
    with left(case) as place:
        lay(place, {"test_cart.py": ASKED["hidden"]})
        done: Any = asyncio.run(
            BashGrader.grade(weight=1.0, command=COMMAND, cwd=str(place), timeout_seconds=60)
        )
    return done.value == 1.0


_GRADED = {
    "number": lambda case: numeric_match(case["answer"], case["expected"]),
    "text": lambda case: exact_match(case["answer"], case["expected"]),
    "choice": lambda case: contains(case["answer"], f"ANSWER: {case['expected']}"),
    "code": _code,
}
answer(each(cases(*_GRADED), lambda case: _GRADED[case["kind"]](case) == 1.0))
