"""Commands on stored things: each is an operation's other face, and prints its reply."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from assay.agents.transcripts.otlp import sent_spans
from assay.cli.stored import DEEDS, NOUNS, OF_SERVER
from assay.cli.stored_commands import operation_of
from assay.scoring.graded import Graded
from assay.scoring.records import as_json
from assay.service.local import ask, local_desk
from assay.service.traces import new_spans, receive
from assay.store import Catalog, Database, Datasets, Jobs, ScoreRecord, Scores, TraceLimits
from assay.store.records import RunRecord
from assay.store.runs import Store
from tests.command_line import assay, result
from tests.each import each
from tests.otlp_spans import TRACE, agent_spans, otlp_request

ROWS = [{"id": str(number), "answer": "é\u2028"} for number in range(3)]
VERBS = [(noun, verb) for noun, found in NOUNS.items() for verb in found.verbs]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with two of most things, and old scores; the job was cancelled after a row."""
    with Database.open(tmp_path / ".assay") as database:
        graders = Catalog(database)
        graders.create("default", "g", kind="custom", definition={}, digest="d1")
        graders.add_version("default", "g", kind="custom", definition={"path": "x"}, digest="d2")
        for key in ("one", "two"):
            Datasets(database).create("default", key, "", ROWS)
        jobs = Jobs(database)
        job = jobs.create("default", grader="g", dataset="one")
        graded = Graded(id="0", status="scored", score=1.0, grader="g@1", digest="d1")
        jobs.add_scores(job.id, [(1, ScoreRecord(item="0", graded=graded))])
        (tmp_path / "job").write_text(job.id, "utf-8")
        for trace in (TRACE, "a" * 32, "b" * 32):
            spans = agent_spans(trace=trace)[: 3 if trace[0] == "b" else 4]
            kept, _ = new_spans(sent_spans(otlp_request(spans)), TraceLimits())
            receive(local_desk(database, "default"), kept, TraceLimits())
        database.clock = lambda: datetime(2026, 1, 1, tzinfo=UTC)
        for grader in ("g@1", "h@1"):
            old = ScoreRecord(item="old", graded=replace(graded, grader=grader))
            Scores(database).add("default", [old])
    with Store.open(str(tmp_path / ".assay")) as store:
        when = "2026-11-20T09:00:00+00:00"
        run = RunRecord(id="20261120-a", created_at=when, label="night", config={}, planned=1)
        store.create_run(run)
    return tmp_path


def _below(*words: str) -> tuple[str, ...]:
    """The words of a command on a noun, where that stands."""
    noun, *more = words
    if noun in ("graders", "runs"):
        return words
    deed = more.pop(0) if more and more[0] in DEEDS else "list"
    return ("server", deed, noun, *more)


def found(root: Path, *words: str) -> dict[str, Any]:
    done = assay(*_below(*words), "--json", cwd=root)
    assert done.returncode == 0, done.stderr
    return result(done)


def items(root: Path, *words: str) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", found(root, *words)["items"])


def keys(root: Path, *words: str) -> list[str]:
    return [each["key"] for each in items(root, "datasets", *words)]


# What holds of every command


@each(("noun", "verb"), VERBS)
def test_every_parameter_of_an_operation_can_be_given(tmp_path: Path, noun: str, verb: str) -> None:
    said = " ".join(assay(*_below(noun, verb)[:2], "--help", cwd=tmp_path).stdout.split())
    asked = operation_of(noun, NOUNS[noun].verbs[verb].asks)
    about = NOUNS[noun].verbs[verb].about or cast("str", asked.function.__doc__)
    if noun in OF_SERVER:
        about = DEEDS[verb]
        assert noun in said.partition("THING is one of: ")[2].partition(".")[0].split(", ")
    assert " ".join(about.partition("\n")[0].split())[1:] in said
    for one in asked.places:
        found = NOUNS[noun].verbs[verb]
        if found.lines or one.name in ("whole", "offset", *found.without):
            continue
        called = NOUNS[noun].verbs[verb].names.get(one.name, one.sent_as).replace("_", "-")
        assert f"--{called}" in said or called.upper() in said or noun in OF_SERVER, one.name


READS: list[tuple[tuple[str, ...], dict[str, object]]] = [
    (("datasets", "list"), {}),
    (("datasets", "show", "two"), {"key": "two"}),
    (("traces", "list"), {}),
    (("traces", "show", TRACE), {"trace": TRACE}),
    (("jobs", "list", "--dataset", "one"), {"dataset": "one"}),
    (("jobs", "show", "JOB"), {"job": "JOB"}),
    (("scores", "list", "--grader", "g@1"), {"grader": "g@1"}),
    (("projects", "list"), {}),
    (("audit", "list", "--by", "local"), {"by": "local"}),
    (("keys", "list"), {}),
    (("graders", "list", "--kind", "custom"), {"kind": "custom"}),
    (("graders", "show", "g@1"), {"grader_key": "g", "version": 1}),
    (("graders", "list", "g"), {"grader_key": "g"}),
    (("graders", "diff", "g"), {"grader_key": "g"}),
    (("runs", "list", "--search", "night"), {"search": "night"}),
]
CHANGES: list[tuple[tuple[str, ...], object]] = [
    (("datasets", "delete", "two", "two", "--yes"), {"deleted": ["two"]}),
    (("traces", "collect", "new", "--clear"), {"key": "new", "rows": 2}),
    (("traces", "delete", "b" * 32, "--yes"), {"deleted": ["b" * 32]}),
    (("traces", "delete", "--before", "2020-01-01", "--yes"), {"deleted": 0}),
    (("jobs", "cancel", "JOB"), {"status": "cancelled"}),
    (("jobs", "delete", "JOB", "--yes"), {"deleted": ["JOB"]}),
    (("scores", "delete", "--before", "2026-01-01", "--yes"), {"deleted": 0}),
    (("scores", "delete", "--before", "1h", "--grader", "g", "--yes"), {"deleted": 1}),
    (("projects", "create", "qa", "--name", "Q"), {"key": "qa", "name": "Q"}),
    (("projects", "limit", "default", "--at-once", "3"), {"gradings_at_once": 3}),
    (("keys", "create", "ci", "--expires", "1w"), {"name": "ci", "role": "editor"}),
    (("keys", "delete", "KEY"), {"deleted": ["KEY"]}),
    (("graders", "lock", "g"), {"locked": True}),
    (("graders", "lock", "g", "--unlock"), {"locked": False}),
    (("graders", "delete", "g", "--force"), {"deleted": ["g"]}),
    (("runs", "delete", "night", "--yes"), {"deleted": ["20261120-a"], "files": 0, "bytes": 0}),
]


def test_every_command_is_tried_here() -> None:
    tried = {words[:2] for words, _ in (*READS, *CHANGES)}
    missing = {(noun, verb) for noun, verb in VERBS if (noun, verb) not in tried}
    assert missing == {("datasets", "export"), ("jobs", "export")}


def _with_names(root: Path, value: Any) -> Any:
    job = (root / "job").read_text("utf-8")
    text = json.dumps(value).replace("JOB", job)
    if "KEY" in text:
        text = text.replace("KEY", found(root, "keys", "create", "x")["id"])
    return json.loads(text)


@each(("words", "given"), READS)
def test_json_is_the_operations_reply(
    root: Path, words: tuple[str, ...], given: dict[str, object]
) -> None:
    words, given = _with_names(root, [words, given])
    printed = found(root, *words)
    noun, verb = words[0], words[1]
    found_verb = NOUNS[noun].verbs[verb]
    if found_verb.one and "grader_key" in given:
        found_verb = found_verb.one
    operation = operation_of(noun, found_verb.asks)
    with Database.open(root / ".assay") as database:
        desk = local_desk(database, "default" if operation.in_project else "")
        assert printed == as_json(asyncio.run(ask(operation, desk, **given)))
    assert printed.get("items") != [] or noun in ("audit", "keys")
    shown = assay(*_below(*words), cwd=root)
    assert (shown.returncode, shown.stdout[-1:]) == (0, "\n"), shown.stderr


@pytest.mark.parametrize(("words", "reply"), CHANGES)
def test_a_change_prints_what_came_of_it(root: Path, words: tuple[str, ...], reply: object) -> None:
    if words[:2] == ("jobs", "delete"):
        assay("server", "cancel", "job", (root / "job").read_text("utf-8"), cwd=root)
    words, reply = _with_names(root, [words, reply])
    printed = found(root, *words)
    assert printed | cast("dict[str, Any]", reply) == printed
    assert "deleted" not in printed or printed == reply


# What single ones are for


def test_lists_go_on_where_they_stopped(root: Path) -> None:
    first = found(root, "datasets", "--limit", "1")
    assert [each["key"] for each in first["items"]] == ["one"]
    assert keys(root, "list", "--after", first["next"]) == ["two"]
    said = assay("server", "list", "datasets", "--limit", "1", cwd=root).stdout
    assert said.splitlines()[-1] == f"more: --after {first['next']}"
    with Database.open(root / ".assay") as database:
        for number in range(250):
            Datasets(database).create("default", f"d{number:03}", "", ROWS[:1])
    assert len(keys(root, "--limit", "1000")) == 252, "more than a page of a server has"


@pytest.mark.parametrize("out", [(), ("--out", "rows.jsonl")])
def test_a_dataset_comes_back_as_it_was(root: Path, out: tuple[str, ...]) -> None:
    done = assay("server", "export", "dataset", "one", *out, cwd=root)
    text = (root / "rows.jsonl").read_text("utf-8") if out else done.stdout
    assert [json.loads(line) for line in text.splitlines()] == ROWS
    done = assay("server", "export", "job", (root / "job").read_text(), cwd=root)
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["graded"]["score"] == 1.0


def test_an_id_that_is_broken_cannot_be_copied(root: Path) -> None:
    narrow = assay("server", "list", "traces", cwd=root, env={"COLUMNS": "60"}).stdout
    assert all(trace in narrow for trace in (TRACE, "a" * 32, "b" * 32))
    assert "not whole" in assay("server", "list", "traces", cwd=root, env={"COLUMNS": "120"}).stdout
    assert json.loads(assay("server", "show", "trace", TRACE, cwd=root).stdout)["answer"] == "4"


def test_a_key_is_shown_once_and_listed_with_its_end(root: Path) -> None:
    def listed() -> str:
        return assay("server", "list", "keys", cwd=root, env={"COLUMNS": "120"}).stdout

    made = found(root, "keys", "create", "ci", "--role", "viewer", "--expires", "90d")
    assert re.fullmatch(r"assay_[0-9a-f]{8}_[\w-]{43}", made["token"])
    assert "used never, expires 2" in listed()
    found(root, "keys", "delete", made["id"])
    assert "revoked 2" in listed()
    assert made["token"] not in listed()
    assert made["token"].encode() not in (root / ".assay" / "assay.db").read_bytes()


def test_limits_that_no_option_names_stay(root: Path) -> None:
    found(root, "projects", "limit", "default", "--per-minute", "600", "--at-once", "3")
    left = found(root, "projects", "limit", "default", "--at-once", "none")
    assert (left["requests_per_minute"], left["gradings_at_once"]) == (600, None)
    assert "600" in assay("server", "list", "projects", cwd=root).stdout


def test_changes_on_the_command_line_stand_in_the_log_with_their_user(root: Path) -> None:
    job = (root / "job").read_text("utf-8")
    done = [
        ("graders", "lock", "g"),
        ("graders", "delete", "g"),  # it is locked, so nothing was done
        ("jobs", "cancel", job),
        ("projects", "create", "qa"),
        ("projects", "limit", "qa", "--per-minute", "600", "--at-once", "none"),
        ("keys", "create", "ci", "--project", "qa"),
        ("audit",),
    ]
    ended = [assay(*_below(*words), cwd=root, env={"LOGNAME": "ada"}) for words in done]
    assert [one.returncode for one in ended] == [0, 2, 0, 0, 0, 0, 0]
    assert "ada" in ended[-1].stdout
    noted = [one for one in items(root, "audit")[::-1] if one["operation"] != "receive_traces"]
    assert [(each["operation"], each["project"], each["what"]) for each in noted[:-1]] == [
        ("lock_grader", "default", {"key": "g", "locked": True}),
        ("cancel_job", "default", {"id": job}),
        ("create_project", "*", {"key": "qa", "name": ""}),
        ("limit_project", "qa", {"requests_per_minute": 600, "gradings_at_once": None}),
    ]
    assert (noted[-1]["operation"], noted[-1]["project"]) == ("create_key", "qa")
    assert {(each["by"], each["key"], each["address"]) for each in noted} == {("ada", "local", "")}
    assert len(items(root, "audit", "--project", "qa", "--limit", "1")) == 1
    assert items(root, "audit", "--since", "2100-01-01") == []
    (only,) = items(root, "audit", "--what", "lock_grader")
    assert only["operation"] == "lock_grader"
