"""`assay graders` over a grader's life: what an update keeps, what is stale, which store it was."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import cast

import pytest

from assay.scoring.json_safe import Json
from tests.command_line import Command

_TOTALS = "- {type: exact_match}\n- {type: contains, substring: '4', weight: 3}\n"
_GOOD = "async def grade(thread: StringThread) -> float:\n    return 1.0\n"
_OTHER = _GOOD.replace("1.0", "0.5")


@pytest.fixture
def graders(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Command:
    monkeypatch.delenv("ASSAY_DB", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").write_text('{"id": "a", "answer": "It is 4.", "expected": "4"}\n', "utf-8")
    Path("graders.yaml").write_text(_TOTALS, "utf-8")
    Path("good.py").write_text(_GOOD, "utf-8")
    Path("other.py").write_text(_OTHER, "utf-8")
    return Command(capsys, "graders", "validate", "grade")


@pytest.fixture
def totals(graders: Command) -> Command:
    """With one grader stored, of two versions."""
    graders.ok("create", "totals", "graders.yaml")
    graders.ok("update", "totals", "graders.yaml", "--set", "threshold=0.5")
    return graders


def definition(made: dict[str, Json]) -> dict[str, Json]:
    latest = cast("dict[str, Json]", cast("dict[str, Json]", made["grader"])["latest"])
    return cast("dict[str, Json]", latest["definition"])


# What an update keeps


@pytest.mark.sandbox
def test_an_update_of_a_function_keeps_its_range_and_isolation(graders: Command) -> None:
    graders.ok(
        *(
            "create",
            "f",
            "good.py",
            "--set",
            "isolation=batch",
            "--set",
            "range=[-1,1]",
        )
    )
    out = graders.ok("update", "f", "other.py")
    assert "f@2 stored" in out
    assert "kept of version 1: isolation batch, range [-1.0, 1.0]" in out
    made = graders.json("update", "f", "good.py")
    assert definition(made) == {"source": _GOOD, "isolation": "batch", "range": [-1.0, 1.0]}
    assert made["kept"] == {"isolation": "batch", "range": [-1.0, 1.0]}
    made = graders.json("update", "f", "good.py", "--set", "range=null")
    assert definition(made) == {"source": _GOOD, "isolation": "batch"}
    assert made["kept"] == {"isolation": "batch"}
    made = graders.json("update", "f", "good.py", "--set", "isolation=call")
    assert definition(made) == {"source": _GOOD}
    made = graders.json("update", "f", "good.py", "--set", "range=[0,2]")
    assert definition(made) == {"source": _GOOD, "range": [0.0, 2.0]}
    assert made["kept"] == {}


def test_an_update_keeps_what_it_does_not_say_of_the_same_kind_only(totals: Command) -> None:
    Path("graders.yaml").write_text("- {type: exact_match}\n", "utf-8")
    made = totals.json("update", "totals", "graders.yaml")
    assert definition(made) == {"graders": [{"type": "exact_match"}], "threshold": 0.5}
    assert made["kept"] == {"threshold": 0.5}
    made = totals.json("update", "totals", "--set", "kind=custom")
    assert (definition(made), made["kept"]) == ({}, {})
    made = totals.json("update", "totals", "graders.yaml")
    assert definition(made) == {"graders": [{"type": "exact_match"}]}


def test_attack_another_address_does_not_get_the_secret_of_the_one_before(
    graders: Command,
) -> None:
    given = (
        "--set",
        "secret_env=ASSAY_SECRET_X",
        "--set",
        "allow_internal=true",
        "--set",
        "batch=8",
    )
    graders.ok(
        "create", "e", "--set", "kind=external_endpoint", "--set", "url=https://a.example/x", *given
    )
    made = graders.json(
        "update",
        "e",
        "--set",
        "kind=external_endpoint",
        "--set",
        "url=https://a.example/x",
        "--set",
        "timeout_seconds=5",
    )
    assert definition(made) == {
        "url": "https://a.example/x",
        "secret_env": "ASSAY_SECRET_X",
        "allow_internal": True,
        "batch": 8,
        "timeout_seconds": 5.0,
    }
    made = graders.json(
        "update", "e", "--set", "kind=external_endpoint", "--set", "url=https://b.example/x"
    )
    assert definition(made) == {"url": "https://b.example/x"}


def test_one_field_is_changed_or_removed_alone(graders: Command) -> None:
    address = ("--set", "kind=external_endpoint", "--set", "url=https://a.example")
    graders.ok("create", "e", *address, "--set", "range=[0,2]", "--set", "batch=8")
    made = graders.json("update", "e", "--set", "range=null")
    assert definition(made) == {"url": "https://a.example", "batch": 8}
    assert made["kept"] == {"url": "https://a.example", "batch": 8}
    Path("words.json").write_text('["a", "b"]', "utf-8")
    assert "batch: " in graders("update", "e", "--set", "batch=@words.json")[2]


def test_update_says_what_it_changed(totals: Command) -> None:
    assert totals.ok("update", "totals", "--description", "hi").startswith("totals@2 described")
    assert totals.ok("update", "totals", "--description", "hi").startswith("totals@2 unchanged")
    again = ("update", "totals", "graders.yaml")
    assert totals.ok(*again).startswith("totals@2 unchanged")
    assert totals.ok(*again, "--set", "name=T").startswith("totals@2 described")
    assert totals.ok(*again, "--set", "threshold=0.2", "--set", "name=U").startswith(
        "totals@3 stored and described"
    )
    changes = [
        totals.json("update", "totals", "--set", "name=V")["change"],
        totals.json("update", "totals", "--set", "name=V")["change"],
        totals.json(*again, "--set", "threshold=0.3")["change"],
        totals.json("create", "x", "--set", "kind=custom")["change"],
    ]
    assert changes == ["described", "unchanged", "updated", "created"]


# Files


def test_a_version_of_a_deleted_grader_is_shown_by_its_number(totals: Command) -> None:
    totals.ok("delete", "totals", "--force")
    code, _, err = totals("show", "totals")
    assert (code, "there is no grader 'totals'" in err) == (2, True)
    shown = totals.json("show", "totals@1")
    assert cast("dict[str, Json]", shown["latest"])["number"] == 1


def test_export_names_the_files_of_a_deleted_grader_and_prune_removes_them(
    totals: Command,
) -> None:
    totals.ok("create", "old", "--set", "kind=custom")
    totals.ok("export")
    folder = Path("graders")
    (folder / "old.py").write_text("class Strict: ...\n", "utf-8")  # not a function's source
    (folder / "values.yaml").write_text("colour: red\n", "utf-8")
    (folder / "conftest.py").write_text("def grade(): ...\n", "utf-8")
    (folder / "README.md").write_text("?", "utf-8")
    totals.ok("delete", "old")
    code, out, err = totals("export")
    assert (code, out) == (0, "  graders/totals.yaml\n")
    assert "graders/old.yaml" in err
    assert "--prune" in err
    assert totals.json("export")["stale"] == ["graders/old.yaml"]
    assert totals.json("export", "totals")["stale"] == ["graders/old.yaml"]
    assert (folder / "old.yaml").exists()
    found = totals.json("export", "--prune")
    assert (found["stale"], found["removed"]) == ([], ["graders/old.yaml"])
    names = ["README.md", "conftest.py", "old.py", "totals.yaml", "values.yaml"]
    assert sorted(path.name for path in folder.iterdir()) == names


def test_export_of_one_grader_leaves_the_files_of_others_that_are_stored(totals: Command) -> None:
    totals.ok("create", "other", "--set", "kind=custom")
    totals.ok("export")
    found = totals.json("export", "other", "--prune")
    assert (found["files"], found["removed"]) == (["graders/other.yaml"], [])
    assert Path("graders/totals.yaml").exists()


@pytest.mark.sandbox
def test_export_prunes_the_source_of_what_is_no_function_any_more(graders: Command) -> None:
    for key in ("f", "g"):
        graders.ok("create", key, "good.py")
    graders.ok("export")
    graders.ok("update", "f", "--set", "kind=custom")
    graders.ok("delete", "g")
    stale = ["graders/f.py", "graders/g.py", "graders/g.yaml"]
    assert graders.json("export")["stale"] == stale
    assert graders.json("export", "--prune")["removed"] == stale
    assert [path.name for path in Path("graders").iterdir()] == ["f.yaml"]
    assert graders.json("import", "graders")["imported"] == [
        {"key": "f", "change": "unchanged", "version": 2}
    ]


def test_attack_prune_follows_no_link_and_removes_none(totals: Command, tmp_path: Path) -> None:
    precious = tmp_path / "precious.yaml"
    precious.write_text("kind: custom\n", "utf-8")
    Path("graders").mkdir()
    Path("graders/old.yaml").symlink_to(precious)
    os.mkfifo("graders/pipe.yaml")
    assert totals.json("export", "--prune")["removed"] == []
    assert precious.exists()
    assert Path("graders/old.yaml").is_symlink()


@pytest.mark.sandbox
def test_a_wrong_function_is_told_with_its_file_and_line(graders: Command) -> None:
    Path("graders").mkdir()
    Path("graders/em3.yaml").write_text("kind: function\n", "utf-8")
    Path("graders/em3.py").write_text("\nasync def grade(thread:\n", "utf-8")
    for arguments in (
        ("import", "graders"),
        ("import", "graders/em3.yaml"),
        ("create", "em3", "graders/em3.yaml"),
        ("create", "em3", "graders/em3.py"),
    ):
        code, out, _ = graders(*arguments)
        assert code == 1, arguments
        assert "graders/em3.py:2:" in out, arguments
        assert "line 2" not in out, arguments
    code, out, _ = graders("validate", "graders/em3.yaml")
    assert (code, "graders/em3.py:2:" in out) == (2, True)
    stored = json.loads(graders("import", "graders", "--json")[1])
    assert stored["file"] == "graders/em3.py"


@pytest.mark.sandbox
def test_the_line_of_a_source_inside_a_yaml_file_is_not_told_as_the_files(
    graders: Command,
) -> None:
    Path("em.yaml").write_text("kind: function\ndefinition:\n  source: 'x = ('\n", "utf-8")
    out = graders("validate", "em.yaml")[1]
    assert "em.yaml: line 1, column 5: " in out


def test_a_function_without_its_yaml_is_not_passed_over(totals: Command) -> None:
    Path("lone").mkdir()
    Path("lone/t.yaml").write_text("kind: custom\n", "utf-8")
    for other in ("conftest.py", "README.md", "__init__.py"):
        Path("lone", other).write_text("import x\n", "utf-8")
    assert totals.ok("import", "lone", "--project", "a")
    Path("lone/em.py").write_text(_GOOD, "utf-8")
    code, _, err = totals("import", "lone", "--project", "b")
    assert code == 2
    assert "lone/em.py: has no em.yaml beside it" in err


# Versions


def test_a_diff_of_the_only_version_says_so(graders: Command) -> None:
    graders.ok("create", "x", "--set", "kind=custom")
    assert "no version before it" in graders.ok("diff", "x")
    assert graders.json("diff", "x") == {"diff": ""}
    graders.ok("update", "x", "graders.yaml")
    graders.ok("update", "x", "--set", "kind=custom")
    assert graders.ok("diff", "x", "--from", "1") == "no difference\n"


def test_a_diff_after_a_new_creation_is_against_the_last_version_before_it(
    graders: Command,
) -> None:
    graders.ok("create", "x", "--set", "kind=custom")
    graders.ok("delete", "x")
    graders.ok("create", "x", "graders.yaml")
    assert "--- x.yaml@1\n+++ x.yaml@2\n" in graders.ok("diff", "x")


# Stores


def test_what_is_locked_is_told_with_the_command_that_unlocks_it(totals: Command) -> None:
    totals.ok("lock", "totals")
    assert "assay graders lock totals --unlock" in totals("delete", "totals")[2]
    assert (
        "assay graders lock totals --unlock"
        in totals("update", "totals", "--set", "kind=custom")[2]
    )
    totals.ok("create", "x", "--set", "kind=custom", "--db", "elsewhere", "--project", "team")
    there = ("--db", "elsewhere", "--project", "team")
    totals.ok("lock", "x", *there)
    said = totals("update", "x", "--set", "name=n", *there)[2]
    assert "assay graders lock x --unlock --project team --db elsewhere" in said
    Path("new").mkdir()
    Path("new/totals.yaml").write_text("kind: custom\n", "utf-8")
    assert "assay graders lock KEY --unlock" in totals("import", "new")[2]


# Classes of one's own


@pytest.mark.parametrize("path", ["python:os:path", "python:absent_module:Grader"])
def test_a_class_that_is_no_grader_is_not_stored(graders: Command, path: str) -> None:
    code, out, err = graders("create", "c", "--set", "kind=custom", "--set", f"path={path}")
    assert (code, err) == (1, "nothing was stored\n")
    assert path.split(":")[1] in out
    assert graders.json("list")["items"] == []
    Path("c.yaml").write_text(f"kind: custom\ndefinition: {{path: '{path}'}}\n", "utf-8")
    assert graders("validate", "c.yaml")[0] == 2
