"""A case's digest: changed by all that can change a score, and by nothing else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.tasks.case import load_case
from tests.written_files import write_files

CASE = """\
id: c1
task: {prompt: x, instruction_files: [AGENTS.md]}
source: {path: ./source}
matrix: {harnesses: [a], models: [m]}
graders:
  - {type: model_judge, rubric: ../shared/rubric.md}
"""


def build(root: Path) -> Path:
    folder = root / "evals" / "c1"
    files = {
        "case.yaml": CASE,
        "AGENTS.md": "be good",
        "source/a.py": "print()",
        "source/sub/b.py": "",
        "hidden/test_a.py": "def test(): ...",
        "../shared/rubric.md": "is it good?",
    }
    write_files(folder, files)
    (folder / "source" / "link").symlink_to("a.py")
    return folder


def digest(folder: Path) -> str:
    return load_case(str(folder)).digest


def change_case_text(folder: Path, old: str, new: str) -> None:
    file = folder / "case.yaml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def relink(folder: Path) -> None:
    (folder / "source" / "link").unlink()
    (folder / "source" / "link").symlink_to("sub")


def swap_files(folder: Path) -> None:
    (folder / "source" / "sub" / "b.py").write_text("print()")
    (folder / "source" / "a.py").write_text("")


def file_to_directory(folder: Path) -> None:
    (folder / "source" / "sub" / "b.py").unlink()
    (folder / "source" / "sub" / "b.py").mkdir()


COUNTS: dict[str, Callable[[Path], object]] = {
    "prompt": lambda f: change_case_text(f, "prompt: x", "prompt: y"),
    "instructions": lambda f: (f / "AGENTS.md").write_text("be bad"),
    "source file": lambda f: (f / "source" / "a.py").write_text("print(1)"),
    "new source file": lambda f: (f / "source" / "new").write_text(""),
    "renamed source file": lambda f: (f / "source" / "a.py").rename(f / "source" / "c.py"),
    "contents swapped": swap_files,
    "executable": lambda f: (f / "source" / "a.py").chmod(0o755),
    "link": relink,
    "file becomes directory": file_to_directory,
    "hidden test": lambda f: (f / "hidden" / "test_a.py").write_text(""),
    "rubric outside": lambda f: (f / ".." / "shared" / "rubric.md").write_text("say yes"),
}


def junk(folder: Path) -> None:
    names = ("source/__pycache__/a.pyc", ".git/HEAD", ".assay/assay.db", "source/.DS_Store")
    write_files(folder, dict.fromkeys(names, "x"))


def reorder(folder: Path) -> None:
    first, rest = CASE.splitlines(keepends=True)[:4], CASE.splitlines(keepends=True)[4:]
    change_case_text(folder, CASE, "".join([*sorted(first, reverse=True), *rest]))


COUNTS_NOT: dict[str, Callable[[Path], object]] = {
    "comment": lambda f: change_case_text(f, "id: c1", "# hello\nid:   'c1'"),
    "order of keys": reorder,
    "time": lambda f: os.utime(f / "source" / "a.py", (1, 1)),
    "permissions of others": lambda f: (f / "source" / "a.py").chmod(0o600),
    "caches": junk,
    "other cases": lambda f: (f.parent / "README.md").write_text("x"),
}


@pytest.mark.parametrize("name", [*COUNTS, *COUNTS_NOT])
def test_what_can_change_a_score_changes_the_digest_and_nothing_else_does(
    name: str, tmp_path: Path
) -> None:
    folder = build(tmp_path)
    before = digest(folder)
    {**COUNTS, **COUNTS_NOT}[name](folder)
    assert (digest(folder) != before) is (name in COUNTS)


def test_names_and_contents_do_not_run_into_each_other(tmp_path: Path) -> None:
    digests: set[str] = set()
    for name, target in (("z", "linkb"), ("zlink", "b")):
        folder = build(tmp_path / name)
        (folder / "source" / name).symlink_to(target)
        digests.add(digest(folder))
    assert len(digests) == 2


def test_the_digest_is_the_same_anywhere(tmp_path: Path) -> None:
    first = build(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "elsewhere" / "b", symlinks=True)
    assert digest(first) == digest(tmp_path / "elsewhere" / "b" / "evals" / "c1")
    assert len(digest(first)) == 64


def test_links_are_not_followed_and_pipes_do_not_block(tmp_path: Path) -> None:
    folder = build(tmp_path)
    (tmp_path / "secret").write_text("1")
    (folder / "source" / "out").symlink_to(tmp_path / "secret")
    (folder / "source" / "loop").symlink_to("loop")
    os.mkfifo(folder / "source" / "pipe")
    before = digest(folder)
    (tmp_path / "secret").write_text("2")
    assert digest(folder) == before
