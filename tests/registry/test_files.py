"""Graders as files: the same bytes each time, and nothing a hostile directory can do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from assay.documents import DocumentError
from assay.errors import InputError
from assay.registry.files import read_grader_files
from assay.registry.imports import read_folder, stale_files, write_folder
from assay.store.catalog import Catalog
from assay.store.database import Database
from tests.each import each
from tests.grader_definitions import StoredGraders, definition

_SOURCE = "# naïve\r\nasync def grade(thread):\n    return 1.0  # no newline at the end"
_DECLARED = "kind: declared\ndefinition:\n  graders:\n    - type: exact_match\n"


def _fill(database: Database) -> None:
    """One grader of each sort of file, past the sandbox that would try the function."""
    example = {"input": "2+2?\n", "output": "4", "pass": True}
    judge = definition("binary_judge", criteria="a\n b\n", judge_model="m", examples=(example,))
    totals = definition("declared", graders=({"type": "exact_match"},), threshold=0.5)
    for key, made, said in (
        ("a.b-c_1", definition("function", source=_SOURCE, range=(-1.0, 1.0)), ""),
        ("judge", judge, "No: 'quotes', #hash"),
        ("human", definition("custom"), ""),
        ("totals", totals, ""),
    ):
        named = {"name": key, "description": said, "feedback_key": key, "digest": made.digest()}
        stored: Any = {"kind": made.kind, "definition": made.to_dict(), **named}
        Catalog(database).create("default", key, **stored)


async def test_export_and_import_round_trip_to_the_byte(database: Database, tmp_path: Path) -> None:
    _fill(database)
    registry = StoredGraders(database)
    written = write_folder(registry.files(None), tmp_path / "graders")
    assert [path.name for path in written] == [
        *("a.b-c_1.py", "a.b-c_1.yaml", "human.yaml", "judge.yaml", "totals.yaml")
    ]
    assert (tmp_path / "graders" / "a.b-c_1.py").read_bytes() == _SOURCE.encode()
    assert all(p.read_bytes().endswith(b"\n") for p in written if p.suffix == ".yaml")
    first = {path.name: path.read_bytes() for path in written}
    files, _ = read_folder(tmp_path / "graders")
    done = await registry.import_files(files)
    assert {one.change for one in done} == {"unchanged"}
    assert {one.record.latest.number for one in done} == {1}
    again = write_folder(registry.files(None), tmp_path / "graders")
    assert {path.name: path.read_bytes() for path in again} == first


async def test_a_file_says_what_people_read(database: Database) -> None:
    registry = StoredGraders(database)
    files = {"t.yaml": f"name: Totals\ndescription: sums\nfeedback_key: sum\n{_DECLARED}"}
    (done,) = await registry.import_files(files)
    record = done.record
    assert (record.name, record.description, record.feedback_key) == ("Totals", "sums", "sum")
    (done,) = await registry.import_files({"t.yaml": _DECLARED})
    assert (done.change, done.record.latest.number) == ("described", 1)
    record = done.record
    assert (record.name, record.description, record.feedback_key) == ("t", "", "t")


BAD_FILES: list[tuple[dict[str, str], list[str]]] = [
    ({"../x.yaml": _DECLARED}, ["../x.yaml"]),
    ({"a/b.yaml": _DECLARED}, ["'a/b' cannot be a key"]),
    ({"A.yaml": _DECLARED}, ["'A' cannot be a key"]),
    ({".yaml": _DECLARED}, ["KEY.yaml"]),
    ({"x.yml": _DECLARED}, ["KEY.yaml"]),
    ({"x\x00.yaml": _DECLARED}, ["cannot be a key"]),
    ({"x.py": "x"}, ["has no x.yaml beside it"]),
    ({"x.yaml": "[1]"}, ["x.yaml:1:1: expected a mapping"]),
    ({"x.yaml": "kind: declared\nkind: custom\n"}, ["x.yaml:2:1"]),
    ({"x.yaml": "definition: {}\n"}, ["'kind' is required"]),
    ({"x.yaml": "kind: customs\n"}, ["x.yaml:1:7: kind: unknown kind", "did you mean 'custom'"]),
    ({"x.yaml": "kind: custom\nlocked: true\n"}, ["x.yaml:2:1: locked: unknown field 'locked'"]),
    ({"x.yaml": "kind: custom\ndescripton: y\n"}, ["did you mean 'description'"]),
    ({"x.yaml": "kind: custom\nname: 3\n"}, ["x.yaml:2:7: name: expected text, got 3 (quote it)"]),
    ({"x.yaml": "kind: custom\ndefinition: {pth: x}\n"}, ["definition.pth", "mean 'path'"]),
    ({"x.yaml": "kind: function\n"}, ["put it into x.py, beside this file"]),
    (
        {"x.yaml": "kind: function\ndefinition: {source: a}\n", "x.py": "b"},
        ["x.yaml:2:22: definition.source", "also stands in x.py"],
    ),
    ({"a.yaml": "kind: custm\n", "b.yaml": "kind: custom\nx: 1\n"}, ["a.yaml:1:7", "b.yaml:2:1"]),
    ({"x.yaml": "kind: !!python/object:os.system custom\n"}, ["is not allowed"]),
    ({"x.yaml": "a: &a [x]\nb: &b [*a, *a]\n" + "c: [" + "*b, " * 40 + "]\n"}, ["unknown field"]),
]


@each(("files", "said"), BAD_FILES)
def test_attack_a_wrong_file_is_refused_with_its_place(
    files: dict[str, str], said: list[str]
) -> None:
    with pytest.raises(DocumentError) as caught:
        read_grader_files(files)
    for words in said:
        assert words in str(caught.value)


def test_attack_too_many_files_are_refused() -> None:
    with pytest.raises(InputError, match="at once"):
        read_grader_files({f"x{n}.yaml": _DECLARED for n in range(2_001)})


def test_a_directory_is_read_without_what_is_not_a_grader(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(_DECLARED, "utf-8-sig")
    for other in ("README.md", "conftest.py", ".hidden"):
        (tmp_path / other).write_text("?", "utf-8")
    files, shown = read_folder(tmp_path)
    assert files == {"t.yaml": _DECLARED}
    assert shown == f"{tmp_path}/"


_LARGE = b"#" * ((1 << 20) + 1)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"secret": _DECLARED.encode(), "x.yaml": Path("secret")}, r"x\.yaml: is a symbolic link"),
        ({"x.yaml": b"kind: function\n", "x.py": Path("/etc/hostname")}, r"x\.py: is a symbolic"),
        ({"x.yaml": None}, "is not a regular file"),
        ({"x.yaml": _LARGE}, "is larger than"),
        ({"x.yaml": b"kind: custom\nname: \xff\n"}, r"x\.yaml:2: is not UTF-8"),
        ({"x.yml": _DECLARED.encode()}, "is named KEY.yaml"),
        ({"README.md": b"?"}, "no KEY.yaml"),
    ],
)
def test_attack_only_regular_files_of_the_directory_are_read(
    files: dict[str, bytes | Path | None], said: str, tmp_path: Path
) -> None:
    for name, content in files.items():
        if content is None:
            os.mkfifo(tmp_path / name)
        elif isinstance(content, Path):
            (tmp_path / name).symlink_to(content)
        else:
            (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_folder(tmp_path)


def test_one_file_brings_the_source_beside_it(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("kind: function\n", "utf-8")
    (tmp_path / "x.py").write_text(_SOURCE, "utf-8", newline="")
    (tmp_path / "y.yaml").write_text("not read", "utf-8")
    (grader,) = read_grader_files(read_folder(tmp_path / "x.yaml")[0])
    assert grader.definition == definition("function", source=_SOURCE)
    with pytest.raises(InputError, match="graders create KEY"):
        read_folder(tmp_path / "x.py")
    with pytest.raises(InputError, match="there is no"):
        read_folder(tmp_path / "absent.yaml")


def test_attack_export_writes_through_no_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine", "utf-8")
    folder = tmp_path / "graders"
    folder.mkdir()
    (folder / "x.yaml").symlink_to(precious)
    write_folder({"x.yaml": "new"}, folder)
    assert precious.read_text("utf-8") == "mine"
    assert (folder / "x.yaml").read_text("utf-8") == "new"
    assert not (folder / "x.yaml").is_symlink()
    assert [path.name for path in folder.iterdir()] == ["x.yaml"]


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "graders").mkdir()
    (tmp_path / "graders" / "x.yaml").mkdir()
    with pytest.raises(InputError, match=r"x\.yaml: cannot be written"):
        write_folder({"x.yaml": "new"}, tmp_path / "graders")
    assert [path.name for path in (tmp_path / "graders").iterdir()] == ["x.yaml"]
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(InputError, match="cannot be written to"):
        write_folder({"x.yaml": "new"}, tmp_path / "file")


def test_attack_stale_files_are_graders_files_and_nothing_that_a_link_leads_to(
    tmp_path: Path,
) -> None:
    source = "async def grade(thread):\n    return 1.0\n"
    texts = {
        "gone.yaml": "kind: function\n",
        "gone.py": source,
        "kept.yaml": "kind: custom\n",
        "kept.py": source,
        "lone.py": source,
        "own.yaml": "kind: custom\n",
        "own.py": "class Own: ...\n",
        "deployment.yaml": "kind: Deployment\n",
        "case.yaml": "kind: custom\nid: x\n",
        "list.yaml": "- kind: custom\n",
        "broken.yaml": "kind: [\n",
        "Upper.yaml": "kind: custom\n",
        ".hidden.yaml": "kind: custom\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "old.yaml").symlink_to("kept.yaml")
    os.mkfifo(tmp_path / "pipe.yaml")
    there = {*texts, "old.yaml", "pipe.yaml"}
    stale = [tmp_path / name for name in ("gone.py", "gone.yaml", "kept.py", "own.yaml")]
    assert stale_files({"kept.yaml"}, tmp_path) == stale
    assert all(path.exists() for path in stale)
    assert stale_files({"kept.yaml"}, tmp_path, remove=True) == stale
    assert {path.name for path in tmp_path.iterdir()} == there - {p.name for p in stale}
    with pytest.raises(InputError, match="cannot be read"):
        stale_files((), tmp_path / "absent")


def test_a_lone_function_is_read_so_that_it_is_missed(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(_DECLARED, "utf-8")
    (tmp_path / "em.py").write_text(_SOURCE, "utf-8", newline="")
    (tmp_path / "linked.py").symlink_to(tmp_path / "em.py")
    files, shown = read_folder(tmp_path)
    assert sorted(files) == ["em.py", "t.yaml"]
    with pytest.raises(DocumentError, match=r"em\.py: has no em\.yaml beside it"):
        read_grader_files(files, folder=shown)
