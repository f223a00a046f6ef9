"""Expected files and patterns, in workspaces that an adversary filled."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from assay.errors import GraderError
from assay.graders import files, tree
from assay.graders.files import FilesGrader
from assay.graders.tree import read_regular
from assay.scoring import Json, SubScore
from assay.types import Workspace
from tests.each import each
from tests.written_files import write_files

WANTED = {"a.txt": b"alpha\n", "sub/b.bin": bytes(range(256))}


@pytest.fixture
def wanted(tmp_path: Path) -> Path:
    """What the author expects."""
    return write_files(tmp_path / "wanted", WANTED)


async def grade(workspace: Path, **options: object) -> SubScore:
    place = Workspace(path=str(workspace))
    return await FilesGrader.grade(1.0, None, gate=False, workspace=place, **options)


def checks(node: SubScore) -> list[tuple[object, object]]:
    rows = cast("list[dict[str, Json]]", dict(node.metadata or {})["checks"])
    return [(row["file"], row["why"] if "why" in row else row["ok"]) for row in rows]


async def pattern(workspace: Path, *patterns: str, only: list[str] | None = None) -> float | None:
    return (await grade(workspace, patterns=list(patterns), files=only)).value


async def test_the_score_is_the_fraction_of_files_that_are_equal_and_patterns_that_are_found(
    workspace: Path, wanted: Path
) -> None:
    write_files(workspace, {**WANTED, "more": "is allowed"})
    node = await grade(workspace, expect_dir=str(wanted), patterns=["alp.a", "omega"])
    assert (node.value, checks(node)[:2]) == (0.75, [("a.txt", ""), ("sub/b.bin", "")])


def _socket(place: Path, wanted: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))


def _sparse(place: Path, wanted: Path) -> None:
    with place.open("wb") as file:
        file.write(b"alpha\n")
        file.truncate(1 << 40)


WRONG: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "empty": (lambda place, _: place.touch(), "differs"),
    "other": (lambda place, _: place.write_bytes(b"Alpha\n"), "differs"),
    "longer": (lambda place, _: place.write_bytes(b"alpha\r\n"), "is too large"),
    "sparse": (_sparse, "is too large"),
    "other_case": (lambda place, _: place.with_name("A.txt").write_text("alpha\n"), "is missing"),
    "link_to_it": (lambda place, wanted: place.symlink_to(wanted / "a.txt"), "regular file"),
    "fifo": (lambda place, _: os.mkfifo(place), "regular file"),
    "directory": (lambda place, _: place.mkdir(), "regular file"),
    "socket": (_socket, "regular file"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_attack_what_stands_in_place_of_the_expected_file(
    name: str, workspace: Path, wanted: Path
) -> None:
    """A link to the expected files themselves, what blocks whoever opens it, or a flood."""
    make, why = WRONG[name]
    make(workspace / "a.txt", wanted)
    node = await grade(workspace, expect_dir=str(wanted))
    assert (checks(node)[1], why in str(checks(node)[0][1])) == (("sub/b.bin", "is missing"), True)


async def test_attack_file_that_grows_while_it_is_read(
    workspace: Path, wanted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size said little: what is read is bounded all the same."""
    real = os.fstat

    def small(handle: int) -> os.stat_result:
        fields = list(real(handle))
        fields[6] = 0
        return os.stat_result(fields)

    (workspace / "a.txt").write_bytes(b"alpha\n" * 10_000)
    monkeypatch.setattr(tree.os, "fstat", small)
    assert read_regular(workspace, "a.txt", limit=6) == "is too large"


async def test_attack_expected_file_that_only_the_grading_tree_has(
    tmp_path: Path, workspace: Path, wanted: Path
) -> None:
    """What is put beside the submission for grading is no work of the agent's."""
    (submitted := tmp_path / "submitted").mkdir()
    (workspace / "a.txt").write_bytes(b"alpha\n")
    place = Workspace(path=str(workspace), submitted=str(submitted))
    node = await FilesGrader.grade(
        1.0, None, workspace=place, expect_dir=str(wanted), patterns=["alpha"]
    )
    assert node.value == 0.0


async def test_attack_files_and_patterns_found_only_behind_a_link(
    workspace: Path, wanted: Path
) -> None:
    (workspace / "sub").symlink_to(wanted / "sub")
    (workspace / "link").symlink_to(wanted / "a.txt")
    os.mkfifo(workspace / "fifo")
    node = await grade(workspace, expect_dir=str(wanted), patterns=["alpha"])
    assert node.value == 0.0
    assert "regular file" in str(checks(node)[1][1])


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("a.py", b"needle", 1.0),
        ("deep/er/a.py", b"x\nneedle\ny", 1.0),
        ("a.py", b"\xff\xfe needle \x00", 1.0),
        ("a.py", b"NEEDLE", 0.0),
        (".hidden", b"needle", 1.0),
        (".git/a", b"needle", 0.0),
        ("x/__pycache__/a", b"needle", 0.0),
        ("big", b"needle" + b"x" * (1 << 20), 0.0),
        ("just", b"needle" + b"x" * ((1 << 20) - 6), 1.0),
    ],
)
async def test_where_patterns_are_looked_for(
    name: str, content: bytes, found: float, workspace: Path
) -> None:
    write_files(workspace, {name: content})
    assert await pattern(workspace, "needle") == found


async def test_patterns_may_be_limited_to_files_and_have_flags(workspace: Path) -> None:
    write_files(workspace, {"src/a.py": "Needle", "notes.txt": "haystack"})
    assert await pattern(workspace, "(?i)needle", only=["src/*.py"]) == 1.0
    assert await pattern(workspace, "haystack", only=["src/*.py"]) == 0.0
    assert await pattern(workspace, "haystack", only=["src/*.py", "*.txt"]) == 1.0
    (workspace / "notes.txt").write_text("haystack", "utf-8-sig")
    assert await pattern(workspace, "^haystack", only=["*.txt"]) == 1.0


async def test_attack_flood_of_files(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MAX_FILES", 3)
    for number in range(9):
        (workspace / f"{number}").write_text(f"needle {number}")
    assert await pattern(workspace, "needle 2") == 1.0
    node = await grade(workspace, patterns=["needle 8"])
    assert node.value == 0.0
    assert dict(node.metadata or {})["not_searched"] == ["everything after 3 files"]


async def test_attack_flood_of_bytes(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MAX_TOTAL", 100)
    write_files(workspace, {"a": "x" * 90, "b": "y" * 20, "c": "needle"})
    node = await grade(workspace, patterns=["needle", "y"])
    assert node.value == 0.5
    assert dict(node.metadata or {})["not_searched"] == ["b is too large"]


def bury(workspace: Path, name: str, depth: int) -> None:
    """Put a file under many directories of one name."""
    with contextlib.chdir(workspace):
        for _ in range(depth):
            Path(name).mkdir()
            os.chdir(name)
        Path("f" * 250).write_text("needle")


@pytest.fixture
def bottomless(workspace: Path) -> Iterator[Path]:
    """Directories inside each other: more than Python calls itself, and paths that are too long."""
    bury(workspace, "dd", 1_400)
    bury(workspace, "d" * 250, 16)
    (workspace / "z").write_text("haystack")
    yield workspace
    subprocess.run(["rm", "-rf", str(workspace / "dd")], check=True)


async def test_attack_tree_too_deep_for_a_recursive_walk(bottomless: Path) -> None:
    """It must cost the score it costs, and not turn it into an error that is left out."""
    assert await pattern(bottomless, "haystack", "no such") == 0.5


async def test_attack_name_that_is_no_utf8(workspace: Path) -> None:
    Path(os.fsdecode(os.fsencode(workspace) + b"/\xff\xfe")).write_text("needle")
    node = await grade(workspace, patterns=["needle"])
    assert node.value == 1.0
    assert checks(node) == [("??", True)]


@each(
    ("options", "why"),
    [
        ({}, "needs expect_dir or patterns"),
        ({"patterns": []}, "needs expect_dir or patterns"),
        ({"patterns": ["("]}, r"\("),
        ({"patterns": ["(?=x)"]}, "look-ahead"),
    ],
)
async def test_what_an_author_got_wrong_is_an_error(
    options: dict[str, object], why: str, workspace: Path
) -> None:
    (workspace / "a").write_text("a")
    with pytest.raises(GraderError, match=why):
        await grade(workspace, **options)


async def test_an_expected_directory_without_files_expects_nothing(workspace: Path) -> None:
    with pytest.raises(GraderError, match="has no files"):
        await grade(workspace, expect_dir=str(workspace))
