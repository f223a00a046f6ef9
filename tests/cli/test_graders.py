"""`assay graders`: every action as a user types it, over a grader's life: output, exit status."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from assay.scoring.json_safe import Json
from assay.testing import Asked, FakeJudge
from tests.command_line import Command, numbers_of, sets
from tests.each import each
from tests.written_files import write_rows

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
_OTHER = _GOOD.replace("1.0 if", "0.5 if")
_BROKEN = "async def grade(thread: StringThread) -> float:\n    return numpy.mean([1])\n"


@pytest.fixture
def graders(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Command:
    """In a directory with a dataset and graders."""
    monkeypatch.delenv("ASSAY_DB", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    write_rows("rows.jsonl", _ROWS)
    files = {"graders.yaml": _TOTALS, "good.py": _GOOD, "other.py": _OTHER, "broken.py": _BROKEN}
    for name, text in files.items():
        Path(name).write_text(text, "utf-8")
    return Command(capsys, "graders", "validate", "grade")


@pytest.fixture
def totals(graders: Command) -> Command:
    """With one grader stored."""
    graders.ok("create", "totals", "graders.yaml")
    return graders


def definition(made: dict[str, Any]) -> Any:
    return made["grader"]["latest"]["definition"]


_ENDPOINT: dict[str, Json] = {
    "url": "http://localhost:8000",
    "allow_internal": True,
    "range": [-1.0, 1.0],
    "secret_env": "ASSAY_SECRET_X",
    "auth": "hmac",
    "protocol": "adaptive",
    "timeout_seconds": 5.0,
    "batch": 8,
}
CREATED: list[tuple[list[str], str, dict[str, Json]]] = [
    (["graders.yaml", *sets("threshold=0.5")], "declared", {"threshold": 0.5}),
    (
        sets("kind=binary_judge", "criteria=is kind", "judge_model=m"),
        "binary_judge",
        {"criteria": "is kind", "judge_model": "m"},
    ),
    (
        sets("kind=prebuilt_judge", "type=FAITHFULNESS", "judge_model=m"),
        "prebuilt_judge",
        {"type": "FAITHFULNESS", "judge_model": "m"},
    ),
    (
        sets("kind=external_endpoint", *(f"{k}={json.dumps(v)}" for k, v in _ENDPOINT.items())),
        "external_endpoint",
        _ENDPOINT,
    ),
    (sets("kind=custom"), "custom", {}),
    (
        sets("kind=custom", "path=python:assay.graders:BashGrader"),
        "custom",
        {"path": "python:assay.graders:BashGrader"},
    ),
]


def test_every_kind_is_created_from_options(graders: Command) -> None:
    said = [*sets("name=Mine", "feedback_key=f"), "--description", "why", "--note", "n"]
    for number, (options, kind, given) in enumerate(CREATED):
        made = graders.json("create", f"mine-{number}", *options, *said)
        new = made["grader"]["latest"]
        assert (new["kind"], new["number"], new["note"]) == (kind, 1, "n")
        assert given.items() <= definition(made).items()
        told = [made["grader"][name] for name in ("name", "description", "feedback_key")]
        assert told == ["Mine", "why", "f"]


def test_list_and_show_print_what_is_worth_reading(totals: Command) -> None:
    totals("create", "a", *sets("kind=custom"), "--description", "about [bold]a")
    totals("update", "totals", "graders.yaml", *sets("threshold=0.5"), "--note", "half")
    totals("lock", "totals")
    out = totals("list")[1]
    assert [line.split()[0] for line in out.splitlines()] == ["key", "a", "totals"]
    assert "about [bold]a" in out
    assert len(totals.json("list", "--search", "BOLD]A")["items"]) == 1
    assert "no graders like that" in totals("list", "--search", "zzz")[1]
    out = totals("show", "totals")[1]
    for said in ("locked", "threshold: 0.5", "half", "none: assay calibrate", "version       2"):
        assert said in out
    assert "threshold" not in totals("show", "totals@1")[1]
    assert "half" in totals("list", "totals")[1]


def test_a_diff_is_against_another_version_also_over_a_deletion(totals: Command) -> None:
    assert "no version before it" in totals.ok("diff", "totals")
    assert totals.json("diff", "totals") == {"diff": ""}
    totals.ok("update", "totals", *sets("threshold=0.5"))
    assert "+  threshold: 0.5\n" in totals("diff", "totals")[1]
    diff = totals.json("diff", "totals@1", "--from", "2")["diff"]
    assert diff.startswith("--- totals.yaml@2\n+++ totals.yaml@1\n")
    assert "-  threshold: 0.5\n" in diff
    totals.ok("delete", "totals", "--force")
    code, _, err = totals("show", "totals")
    assert (code, "there is no grader 'totals'" in err) == (2, True)
    assert totals.json("show", "totals@1")["latest"]["number"] == 1
    totals.ok("create", "totals", "graders.yaml")
    assert "--- totals.yaml@2\n+++ totals.yaml@3\n" in totals.ok("diff", "totals")
    assert totals.ok("diff", "totals", "--from", "1") == "no difference\n"


def test_export_and_import_bring_a_project_elsewhere(totals: Command) -> None:
    judge = sets("kind=binary_judge", "criteria=is kind", "judge_model=m")
    totals("create", "kind", *judge, "--description", "nice")
    code, out, _ = totals("export")
    assert (code, out) == (0, "  graders/kind.yaml\n  graders/totals.yaml\n")
    elsewhere = ("--db", "elsewhere", "--project", "team")
    code, out, err = totals("import", "graders", *elsewhere)
    assert (code, out.count("created")) == (0, 2)
    assert "made project 'team'" in err
    assert totals.json("import", "graders", *elsewhere)["imported"] == [
        {"key": key, "change": "unchanged", "version": 1} for key in ("kind", "totals")
    ]
    before = Path("graders/kind.yaml").read_bytes()
    assert totals.json("export", "kind", *elsewhere)["files"] == ["graders/kind.yaml"]
    assert Path("graders/kind.yaml").read_bytes() == before
    Path("graders/kind.yaml").write_text("kind: custom\n", "utf-8")
    code, _, err = totals("import", "graders", "--no-update", *elsewhere)
    assert (code, "different: kind" in err) == (2, True)
    assert totals.json("show", "kind", *elsewhere)["description"] == "nice"


def test_create_and_update_from_a_graders_file(totals: Command) -> None:
    file = Path("mine.yaml")
    file.write_text("kind: custom\nname: Mine\ndescription: from the file\n", "utf-8")
    made = totals.json("create", "other", "mine.yaml", *sets("name=Given"))["grader"]
    told = (made["key"], made["name"], made["description"])
    assert told == ("other", "Given", "from the file")
    made = totals.json("update", "totals", "mine.yaml")["grader"]
    assert (made["key"], made["name"]) == ("totals", "Mine")
    assert totals("validate", "mine.yaml")[0] == 0


def test_attack_escape_sequences_do_not_reach_the_terminal(totals: Command) -> None:
    text = "\x1b[2J\x1b]0;owned\x07[red]x\u202e"
    judge = sets("kind=binary_judge", f"criteria={text}", "judge_model=m")
    totals.ok("create", "x", *judge, "--note", text, "--description", text)
    totals.ok("update", "x", *sets("criteria=changed"))
    write_rows("rows.jsonl", [{"id": text, "answer": "4", "expected": "4"}])
    for words in (["list"], ["show", "x@1"], ["diff", "x"], ["grade", "rows.jsonl", "totals"]):
        out = totals(*words)[1]
        assert "[red]x" in out, "it is told, in plain characters"
        assert not {"\x1b", "\x07", "\u202e"} & set(out)


@pytest.mark.sandbox
def test_a_function_is_validated_created_and_tested(graders: Command) -> None:
    found = graders.json("validate", "good.py", "--sample", "rows.jsonl")
    assert (found["valid"], found["checked"]) == (True, ["good.py"])
    report = found["reports"]["good.py"]
    assert [check["name"] for check in report["checks"]] == [
        "syntax",
        "structure",
        "signature",
        "execution",
        "test_run",
    ]
    assert [sample["score"] for sample in report["samples"]] == [1.0, 0.0, 0.0]
    out = graders.ok("create", "good", "good.py", "--sample", "rows.jsonl")
    assert "good@1 stored  function" in out
    assert "3 scored" in graders("grade", "rows.jsonl", "good")[1]
    assert "return 1.0 if thread.completion()" in graders("show", "good")[1]


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
        assert (code, "graders/em3.py:2:" in out, "line 2" in out) == (1, True, False), arguments
        assert graders.json("list")["items"] == []
    code, out, _ = graders("validate", "graders/em3.yaml")
    assert (code, "graders/em3.py:2:" in out) == (2, True)
    found = graders.json("validate", "broken.py", status=2)
    assert (found["valid"], found["problems"]) == (False, ["broken.py is not valid"])
    failed = found["reports"]["broken.py"]["checks"][-1]
    assert (failed["passed"], failed["line"]) == (False, 2)
    assert "numpy" in str(failed)
    stored = json.loads(graders("import", "graders", "--json")[1])
    assert stored["file"] == "graders/em3.py"
    # The line of a source inside a YAML file is none of that file's.
    Path("em.yaml").write_text("kind: function\ndefinition:\n  source: 'x = ('\n", "utf-8")
    assert "em.yaml: line 1, column 5: " in graders("validate", "em.yaml")[1]


# Judges


def _says_4(asked: Asked) -> Json:
    """A judge of whether an answer says 4."""
    answer = asked.fenced("answer")
    return {"evidence": [answer], "reasoning": "so", "score": "PASS" if "4" in answer else "FAIL"}


@pytest.fixture
def fake() -> Generator[FakeJudge]:
    with FakeJudge(_says_4) as made:
        yield made


def test_a_judge_is_stored_with_its_files_tested_and_shown(
    graders: Command, fake: FakeJudge
) -> None:
    Path("examples.jsonl").write_text('{"input": "q", "output": "five", "pass": false}\n\n')
    Path("user.hbs").write_text("{{tone}}\n{{#each examples}}{{label}}{{/each}}\n{{completion}}")
    Path("variables.json").write_text('{"tone": "strict"}')
    judge = sets("kind=binary_judge", "criteria=The answer says 4.", f"judge_model={fake.model}")
    files = ("examples=@examples.jsonl", "user_template=@user.hbs")
    made = graders.json(
        "create", "four", *judge, *sets(*files, "template_variables=@variables.json")
    )
    assert made["warnings"] == []
    stored = definition(made)
    assert stored["template_variables"] == {"tone": "strict"}
    assert len(stored["examples"]) == 1
    tested = graders.json("grade", "rows.jsonl", "four", status=1)
    assert numbers_of(tested)["reward"]["mean"] == pytest.approx(2 / 3)
    assert "FAIL" in fake.requests[0].outside
    graders.json("export")
    out = graders.ok("validate", "graders/four.yaml")
    assert "--- user ---\nFORM: binary\n\nstrict\nFAIL\n<untrusted " in out
    assert "CRITERION:\nThe answer says" in out
    (report,) = graders.json("validate", "graders/four.yaml")["reports"].values()
    assert "strict" in report["preview"][1]


def test_what_looks_wrong_in_a_judge_is_told(graders: Command, fake: FakeJudge) -> None:
    judge = sets("kind=binary_judge", "criteria=c", f"judge_model={fake.model}")
    typo = ["typo", *judge, *sets("user_template=@user.hbs")]
    Path("user.hbs").write_text("{{completon}}")
    assert "did you mean 'completion'" in graders.ok("create", *typo)
    assert "did you mean 'completion'" in " ".join(graders.ok("show", "typo").split())
    assert len(graders.json("show", "typo")["warnings"]) == 2
    Path("user.hbs").write_text("\n{{#if x}}")
    code, _, err = graders("update", *typo)
    assert (code, "user_template: line 2: {{#if}} is not closed" in err) == (2, True)
    unknown = graders.ok("create", "unknown", *judge[:4], *sets("judge_model=nobodys"))
    assert "cannot ask its model" in unknown
    Path("examples.jsonl").write_text('{"input": "q", "output": "o", "pass": 1}')
    Path("v.json").write_text("{{")
    for field, said in (
        ("examples=@examples.jsonl", "examples[0].pass: "),
        ("template_variables=@v.json", "v.json: not JSON"),
    ):
        code, _, err = graders("create", "bad", *judge, *sets(field))
        assert (code, said in err) == (2, True)


# What an update keeps


@pytest.mark.sandbox
def test_an_update_of_a_function_keeps_its_range_and_isolation(graders: Command) -> None:
    graders.ok("create", "f", "good.py", *sets("isolation=batch", "range=[-1,1]"))
    out = graders.ok("update", "f", "other.py")
    assert "f@2 stored" in out
    assert "kept of version 1: isolation batch, range [-1.0, 1.0]" in out
    batch: dict[str, Json] = {"isolation": "batch"}
    both: dict[str, Json] = {**batch, "range": [-1.0, 1.0]}
    for changed, has, kept in (
        ([], both, both),
        (sets("range=null"), batch, batch),
        (sets("isolation=call"), {}, {}),
        (sets("range=[0,2]"), {"range": [0.0, 2.0]}, {}),
    ):
        made = graders.json("update", "f", "good.py", *changed)
        assert (definition(made), made["kept"]) == ({"source": _GOOD, **has}, kept)


def test_an_update_keeps_what_it_does_not_say_of_the_same_kind_only(totals: Command) -> None:
    totals.ok("update", "totals", *sets("threshold=0.5"))
    Path("graders.yaml").write_text("- {type: exact_match}\n", "utf-8")
    made = totals.json("update", "totals", "graders.yaml")
    assert definition(made) == {"graders": [{"type": "exact_match"}], "threshold": 0.5}
    assert made["kept"] == {"threshold": 0.5}
    made = totals.json("update", "totals", *sets("kind=custom"))
    assert (definition(made), made["kept"]) == ({}, {})
    made = totals.json("update", "totals", "graders.yaml")
    assert definition(made) == {"graders": [{"type": "exact_match"}]}


def test_attack_another_address_does_not_get_the_secret_of_the_one_before(graders: Command) -> None:
    address = ("kind=external_endpoint", "url=https://a.example/x")
    secret = ("secret_env=ASSAY_SECRET_X", "allow_internal=true")
    graders.ok("create", "e", *sets(*address, *secret, "batch=8", "range=[0,2]"))
    kept: dict[str, Json] = {
        "url": "https://a.example/x",
        "secret_env": "ASSAY_SECRET_X",
        "allow_internal": True,
        "batch": 8,
    }
    made = graders.json("update", "e", *sets("range=null"))
    assert (definition(made), made["kept"]) == (kept, kept), "one field is removed alone"
    made = graders.json("update", "e", *sets(*address, "timeout_seconds=5"))
    assert definition(made) == {**kept, "timeout_seconds": 5.0}
    made = graders.json("update", "e", *sets(address[0], "url=https://b.example/x"))
    assert definition(made) == {"url": "https://b.example/x"}


def test_update_says_what_it_changed(totals: Command) -> None:
    assert totals.ok("update", "totals", "--description", "hi").startswith("totals@1 described")
    assert totals.ok("update", "totals", "--description", "hi").startswith("totals@1 unchanged")
    again = ("update", "totals", "graders.yaml")
    for changed, said in (
        ((), "totals@1 unchanged"),
        (("name=T",), "totals@1 described"),
        (("threshold=0.2", "name=U"), "totals@2 stored and described"),
    ):
        assert totals.ok(*again, *sets(*changed)).startswith(said)
    changes = [
        totals.json("update", "totals", *sets("name=V"))["change"],
        totals.json("update", "totals", *sets("name=V"))["change"],
        totals.json(*again, *sets("threshold=0.3"))["change"],
        totals.json("create", "x", *sets("kind=custom"))["change"],
    ]
    assert changes == ["described", "unchanged", "updated", "created"]


# Files


@pytest.mark.sandbox
def test_export_names_the_files_of_what_is_gone_and_prune_removes_them(totals: Command) -> None:
    """Which files are graders' own: tests/registry/test_files.py."""
    for key in ("f", "g"):
        totals.ok("create", key, "good.py")
    totals.ok("export")
    totals.ok("update", "f", *sets("kind=custom"))
    totals.ok("delete", "g")
    stale = ["graders/f.py", "graders/g.py", "graders/g.yaml"]
    code, out, err = totals("export")
    assert (code, out) == (0, "  graders/f.yaml\n  graders/totals.yaml\n")
    assert all(said in err for said in (*stale, "--prune"))
    for which in ((), ("totals",)):
        assert totals.json("export", *which)["stale"] == stale
    found = totals.json("export", "f", "--prune")
    assert (found["files"], found["stale"], found["removed"]) == (["graders/f.yaml"], [], stale)
    assert {path.name for path in Path("graders").iterdir()} == {"f.yaml", "totals.yaml"}
    assert totals.json("import", "graders")["imported"] == [
        {"key": "f", "change": "unchanged", "version": 2},
        {"key": "totals", "change": "unchanged", "version": 1},
    ]


# Stores


def test_what_is_locked_is_told_with_the_command_that_unlocks_it(totals: Command) -> None:
    totals.ok("lock", "totals")
    for words in (("delete", "totals"), ("update", "totals", *sets("kind=custom"))):
        assert "assay graders lock totals --unlock" in totals(*words)[2]
    there = ("--project", "team", "--db", "elsewhere")
    totals.ok("create", "x", *sets("kind=custom"), *there)
    totals.ok("lock", "x", *there)
    said = totals("update", "x", *sets("name=n"), *there)[2]
    assert "assay graders lock x --unlock --project team --db elsewhere" in said
    Path("new").mkdir()
    Path("new/totals.yaml").write_text("kind: custom\n", "utf-8")
    assert "assay graders lock KEY --unlock" in totals("import", "new")[2]


@each("path", ["python:os:path", "python:absent_module:Grader"])
def test_a_class_that_is_no_grader_is_not_stored(graders: Command, path: str) -> None:
    code, out, err = graders("create", "c", *sets("kind=custom", f"path={path}"))
    assert (code, err) == (1, "nothing was stored\n")
    assert path.split(":")[1] in out
    assert graders.json("list")["items"] == []
    Path("c.yaml").write_text(f"kind: custom\ndefinition: {{path: '{path}'}}\n", "utf-8")
    assert graders("validate", "c.yaml")[0] == 2
