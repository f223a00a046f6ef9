"""Every Python block of the README and the docs runs, page by page, as a reader would run it."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from assay.tasks.grader_files import load_graders

_ROOT = Path(__file__).parent.parent
_PAGES = [_ROOT / "README.md", *sorted((_ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _blocks(page: Path, language: str) -> list[str]:
    return [m[2] for m in _BLOCK.finditer(page.read_text("utf-8")) if m[1] == language]


def _named(pages: list[Path]) -> list[str]:
    return [str(page.relative_to(_ROOT)) for page in pages]


_PYTHON = [page for page in _PAGES if _blocks(page, "python")]


@pytest.mark.parametrize("page", _PYTHON, ids=_named(_PYTHON))
@pytest.mark.sandbox
def test_every_python_block_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType("page")  # where dataclasses look up the names of their annotations
    monkeypatch.setitem(sys.modules, "page", module)
    with contextlib.redirect_stdout(io.StringIO()):
        for number, block in enumerate(_blocks(page, "python"), 1):
            file = tmp_path / f"block_{number}.py"  # a reader's own file: its source can be read
            file.write_text(block, "utf-8")
            exec(compile(block, str(file), "exec"), vars(module))


def test_the_readme_example_prints_what_it_says() -> None:
    block = _blocks(_ROOT / "README.md", "python")[0]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "README.md", "exec"), {"__name__": "page"})
    said = re.search(r"print\(.*\)  # (.*)$", block, re.MULTILINE)
    assert said is not None
    assert printed.getvalue().strip() == said[1]


def test_the_readme_case_is_well_formed(tmp_path: Path) -> None:
    from assay.tasks.case import load_case

    case = tmp_path / "case.yaml"
    case.write_text(_blocks(_ROOT / "README.md", "yaml")[0], "utf-8")
    assert load_case(str(case)).id == "add-readme"


def test_the_readme_names_every_kind_that_runs() -> None:
    from assay.graders.kinds import KINDS

    text = (_ROOT / "README.md").read_text("utf-8")
    assert [kind for kind in KINDS if f"`{kind}`" not in text] == []


def test_every_page_is_in_the_navigation() -> None:
    listed = (_ROOT / "mkdocs.yml").read_text("utf-8")
    pages = [str(p.relative_to(_ROOT / "docs")) for p in (_ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if page not in listed] == []


def test_grader_lists_of_the_pages_load() -> None:
    loaded = [
        load_graders(block)
        for page in _PAGES
        for block in _blocks(page, "yaml")
        if block.startswith("- {type")
    ]
    assert loaded
