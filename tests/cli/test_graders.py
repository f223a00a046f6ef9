"""`assay graders`: every action as a user types it, its output, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from assay.scoring.json_safe import Json
from tests.command_line import Command

_TOTALS = "- {type: exact_match}\n- {type: contains, substring: '4', weight: 3}\n"
_ROWS: list[dict[str, Json]] = [
    {"id": "right", "answer": "4", "expected": "4"},
    {"id": "near", "answer": "It is 4.", "expected": "4"},
    {"id": "wrong", "answer": "5", "expected": "4"},
]
_GOOD = """\
async def grade(thread: StringThread) -> float:
    return 1.0 if thread.completion() == thread.metadata.get("expected") else 0.0
"""
_BROKEN = "async def grade(thread: StringThread) -> float:\n    return numpy.mean([1])\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a dataset and graders."""
    monkeypatch.delenv("ASSAY_DB", raising=False)
    monkeypatch.chdir(tmp_path)
    rows("rows.jsonl", _ROWS)
    Path("graders.yaml").write_text(_TOTALS, "utf-8")
    Path("good.py").write_text(_GOOD, "utf-8")
    Path("broken.py").write_text(_BROKEN, "utf-8")
    return tmp_path


def rows(file: str, data: list[dict[str, Json]]) -> None:
    Path(file).write_text("".join(json.dumps(row) + "\n" for row in data), "utf-8")


@pytest.fixture
def graders(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys, "graders", "validate", "grade")


@pytest.fixture
def totals(graders: Command) -> Command:
    """With one grader stored."""
    assert graders("create", "totals", "graders.yaml")[0] == 0
    return graders


CREATED: list[tuple[list[str], str, dict[str, Json]]] = [
    (["graders.yaml", "--set", "threshold=0.5"], "declared", {"threshold": 0.5}),
    (
        ["--set", "kind=binary_judge", "--set", "criteria=is kind", "--set", "judge_model=m"],
        "binary_judge",
        {"criteria": "is kind", "judge_model": "m"},
    ),
    (
        ["--set", "kind=prebuilt_judge", "--set", "type=FAITHFULNESS", "--set", "judge_model=m"],
        "prebuilt_judge",
        {"type": "FAITHFULNESS", "judge_model": "m"},
    ),
    (
        [
            *(
                "--set",
                "kind=external_endpoint",
                "--set",
                "url=http://localhost:8000",
                "--set",
                "allow_internal=true",
                "--set",
                "range=[-1,1]",
            ),
            *(
                "--set",
                "secret_env=ASSAY_SECRET_X",
                "--set",
                "auth=hmac",
                "--set",
                "protocol=adaptive",
            ),
            *("--set", "timeout_seconds=5", "--set", "batch=8"),
        ],
        "external_endpoint",
        {
            "url": "http://localhost:8000",
            "allow_internal": True,
            "range": [-1.0, 1.0],
            "secret_env": "ASSAY_SECRET_X",
            "auth": "hmac",
            "protocol": "adaptive",
            "timeout_seconds": 5.0,
            "batch": 8,
        },
    ),
    (["--set", "kind=custom"], "custom", {}),
    (
        ["--set", "kind=custom", "--set", "path=python:assay.graders:BashGrader"],
        "custom",
        {"path": "python:assay.graders:BashGrader"},
    ),
]


@pytest.mark.parametrize(("options", "kind", "definition"), CREATED)
def test_every_kind_is_created_from_options(
    graders: Command, options: list[str], kind: str, definition: dict[str, Json]
) -> None:
    said = ["--set", "name=Mine", "--description", "why", "--set", "feedback_key=f", "--note", "n"]
    made = cast("dict[str, Json]", graders.json("create", "mine", *options, *said)["grader"])
    latest = cast("dict[str, Json]", made["latest"])
    assert (latest["kind"], latest["number"], latest["note"]) == (kind, 1, "n")
    assert definition.items() <= cast("dict[str, Json]", latest["definition"]).items()
    assert (made["name"], made["description"], made["feedback_key"]) == ("Mine", "why", "f")


def test_list_and_show_print_what_is_worth_reading(totals: Command) -> None:
    totals("create", "a", "--set", "kind=custom", "--description", "about [bold]a")
    totals("update", "totals", "graders.yaml", "--set", "threshold=0.5", "--note", "half")
    totals("lock", "totals")
    out = totals("list")[1]
    assert [line.split()[0] for line in out.splitlines()] == ["key", "a", "totals"]
    assert "about [bold]a" in out
    assert len(cast("list[Json]", totals.json("list", "--search", "BOLD]A")["items"])) == 1
    assert "no graders like that" in totals("list", "--search", "zzz")[1]
    out = totals("show", "totals")[1]
    for said in ("locked", "threshold: 0.5", "half", "none: assay calibrate", "version       2"):
        assert said in out
    assert "threshold" not in totals("show", "totals@1")[1]
    assert "half" in totals("list", "totals")[1]


def test_diff_shows_what_changed(totals: Command) -> None:
    totals("update", "totals", "graders.yaml", "--set", "threshold=0.5")
    assert "+  threshold: 0.5\n" in totals("diff", "totals")[1]
    diff = cast("str", totals.json("diff", "totals@1", "--from", "2")["diff"])
    assert diff.startswith("--- totals.yaml@2\n+++ totals.yaml@1\n")
    assert "-  threshold: 0.5\n" in diff


def test_export_and_import_bring_a_project_elsewhere(totals: Command) -> None:
    totals(
        "create",
        "kind",
        "--set",
        "kind=binary_judge",
        "--set",
        "criteria=is kind",
        "--set",
        "judge_model=m",
        "--description",
        "nice",
    )
    code, out, _ = totals("export")
    assert (code, out) == (0, "  graders/kind.yaml\n  graders/totals.yaml\n")
    elsewhere = ("--db", "elsewhere", "--project", "team")
    code, out, err = totals("import", "graders", *elsewhere)
    assert code == 0
    assert out.count("created") == 2
    assert "made project 'team'" in err
    assert totals.json("import", "graders", *elsewhere)["imported"] == [
        {"key": "kind", "change": "unchanged", "version": 1},
        {"key": "totals", "change": "unchanged", "version": 1},
    ]
    before = Path("graders/kind.yaml").read_bytes()
    assert totals.json("export", "kind", *elsewhere)["files"] == ["graders/kind.yaml"]
    assert Path("graders/kind.yaml").read_bytes() == before
    Path("graders/kind.yaml").write_text("kind: custom\n", "utf-8")
    code, _, err = totals("import", "graders", "--no-update", *elsewhere)
    assert code == 2
    assert "different: kind" in err
    found = totals.json("show", "kind", *elsewhere)
    assert found["description"] == "nice"


def test_create_and_update_from_a_graders_file(totals: Command) -> None:
    file = Path("mine.yaml")
    file.write_text("kind: custom\nname: Mine\ndescription: from the file\n", "utf-8")
    made = totals.json("create", "other", "mine.yaml", "--set", "name=Given")["grader"]
    found = cast("dict[str, Json]", made)
    assert (found["key"], found["name"], found["description"]) == (
        "other",
        "Given",
        "from the file",
    )
    made = totals.json("update", "totals", "mine.yaml")["grader"]
    found = cast("dict[str, Json]", made)
    assert (found["key"], found["name"]) == ("totals", "Mine")
    assert totals("validate", "mine.yaml")[0] == 0


@pytest.mark.parametrize("place", ["description", "criteria", "note", "id"])
def test_attack_escape_sequences_do_not_reach_the_terminal(graders: Command, place: str) -> None:
    text = "\x1b[2J\x1b]0;owned\x07[red]x\u202e"
    options = {"description": "", "criteria": "c", "note": ""} | {place: text}
    definition = [
        "--set",
        "kind=binary_judge",
        "--set",
        f"criteria={options['criteria']}",
        "--set",
        "judge_model=m",
        "--note",
        options["note"],
    ]
    graders("create", "x", *definition, "--description", options["description"])
    graders(
        "update",
        "x",
        "--set",
        "kind=binary_judge",
        "--set",
        "criteria=changed",
        "--set",
        "judge_model=m",
    )
    rows("rows.jsonl", [{"id": text, "answer": "4", "expected": "4"}])
    graders("create", "totals", "graders.yaml")
    for arguments in (["list"], ["show", "x@1"], ["diff", "x"]):
        out = graders(*arguments)[1]
        assert "\x1b" not in out
        assert "\u202e" not in out
    assert "\x1b" not in graders("grade", "rows.jsonl", "totals")[1]


@pytest.mark.sandbox
def test_a_function_is_validated_created_and_tested(graders: Command) -> None:
    found = graders.json("validate", "good.py", "--sample", "rows.jsonl")
    assert (found["valid"], found["checked"]) == (True, ["good.py"])
    report = cast("dict[str, dict[str, Json]]", found["reports"])["good.py"]
    names = [cast("dict[str, Json]", c)["name"] for c in cast("list[Json]", report["checks"])]
    assert names == ["syntax", "structure", "signature", "execution", "test_run"]
    scores = [cast("dict[str, Json]", s)["score"] for s in cast("list[Json]", report["samples"])]
    assert scores == [1.0, 0.0, 0.0]
    code, out, _ = graders("create", "good", "good.py", "--sample", "rows.jsonl")
    assert code == 0
    assert "good@1 stored  function" in out
    assert "3 scored" in graders("grade", "rows.jsonl", "good")[1]
    graders("export")
    assert Path("graders/good.py").read_text("utf-8") == _GOOD
    assert Path("graders/good.yaml").read_text("utf-8") == "kind: function\n"
    assert "return 1.0 if thread.completion()" in graders("show", "good")[1]


@pytest.mark.sandbox
def test_a_function_that_is_not_valid_is_refused_with_line_and_fix(graders: Command) -> None:
    found = graders.json("validate", "broken.py", status=2)
    assert (found["valid"], found["problems"]) == (False, ["broken.py is not valid"])
    report = cast("dict[str, dict[str, Json]]", found["reports"])["broken.py"]
    failed = cast("dict[str, Json]", cast("list[Json]", report["checks"])[-1])
    assert (failed["passed"], failed["line"]) == (False, 2)
    code, out, _ = graders("validate", "broken.py")
    assert code == 2
    assert "broken.py:2: " in out
    assert "numpy" in out
    code, out, err = graders("create", "x", "broken.py")
    assert code == 1
    assert "broken.py:2: " in out
    assert "nothing was stored" in err
    stored = graders.json("create", "x", "broken.py", status=1)
    assert (stored["stored"], stored["valid"]) == (False, False)
    assert graders.json("list")["items"] == []
