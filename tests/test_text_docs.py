"""The page on comparisons tells the truth: its code runs, block by block."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "comparisons.md"
BLOCKS = re.findall(
    r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
)


@pytest.mark.parametrize("code", BLOCKS)
def test_the_page_runs(code: str) -> None:
    exec(compile(code, str(PAGE), "exec"), {})


def test_the_page_has_code() -> None:
    assert len(BLOCKS) >= 10
