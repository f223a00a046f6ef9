"""What hooks of other tools tell of an outcome; the tools themselves are in `tests/real`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from assay.errors import InputError
from assay.plugins.outcomes import explanation_of
from assay.training import Reward
from tests.each import each

GRADERS = """\
- {type: contains, substring: {from: expected}, weight: 2}
- {type: regex_match, name: short, pattern: "^.{1,9}$"}
"""


def test_an_explanation_says_what_was_given_and_expected(tmp_path: Path) -> None:
    (tmp_path / "graders.yaml").write_text(GRADERS)
    reward = Reward(tmp_path / "graders.yaml")
    graded = reward.grade_now([{"answer": "It is Lima", "expected": "Lima"}, {"answer": "no"}])
    scored, failed = (explanation_of("capital", one).splitlines() for one in graded.graded)
    assert scored[:2] == ["✗ 0.67 capital (separate)", "  ✓ 1.00 contains (separate, weight 2.00)"]
    assert "    parameters: substring: Lima" in scored
    assert "  ✗ 0.00 short (separate)" in scored
    assert failed[0] == "! error capital"
    assert "there is no expected here" in failed[1]


HOOKS: Sequence[tuple[str, str, str]] = [
    ("inspect", "scorer", "inspect-ai"),
]


@each("hook, name, package", HOOKS)
def test_a_tool_that_is_not_installed_is_named(hook: str, name: str, package: str) -> None:
    made: Callable[..., object] = getattr(importlib.import_module(f"assay.plugins.{hook}"), name)
    with pytest.raises(InputError, match=f"{package} is not installed"):
        made(len)
