"""`assay datasets` and `assay jobs`: what is stored is found, taken out and thrown away."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from assay.agents.transcripts.otlp import sent_spans
from assay.scoring.graded import Graded
from assay.service.here import local_desk
from assay.service.traces import new_spans, receive
from assay.store import Catalog, Database, Datasets, Jobs, ScoreRecord, Scores, TraceLimits
from tests.command_line import assay, result
from tests.otlp import TRACE, agent_spans, otlp_request

ROWS = [{"id": str(number), "answer": "é\u2028"} for number in range(3)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with two datasets, and a job that was cancelled after a row."""
    with Database.open(tmp_path / ".assay") as database:
        Catalog(database).create("default", "g", kind="x", definition={}, digest="d1")
        for key in ("one", "two"):
            Datasets(database).create("default", key, "", ROWS)
        jobs = Jobs(database)
        job = jobs.create("default", grader="g", dataset="one")
        graded = Graded(id="0", status="scored", score=1.0, grader="g@1", digest="d1")
        jobs.add_scores(job.id, [(1, ScoreRecord(item="0", graded=graded))])
        (tmp_path / "job").write_text(job.id, "utf-8")
    return tmp_path


def found(root: Path, *words: str) -> dict[str, Any]:
    done = assay(*words, "--json", cwd=root)
    assert done.returncode == 0, done.stderr
    return cast("dict[str, Any]", result(done))


def keys(root: Path, *words: str) -> list[str]:
    return [each["key"] for each in found(root, "datasets", *words)["datasets"]]


def test_datasets_are_listed_by_key(root: Path) -> None:
    assert keys(root) == ["one", "two"]
    assert keys(root, "--limit", "1") == ["one"]
    assert keys(root, "list", "--after", "one") == ["two"]
    assert assay("datasets", cwd=root).stdout.split()[4:6] == ["one", "3"]
    assert found(root, "datasets", "show", "two")["rows"] == 3


@pytest.mark.parametrize("into", [(), ("--into", "rows.jsonl")])
def test_a_dataset_comes_back_as_it_was(root: Path, into: tuple[str, ...]) -> None:
    done = assay("datasets", "export", "one", *into, cwd=root)
    text = (root / "rows.jsonl").read_text("utf-8") if into else done.stdout
    assert [json.loads(line) for line in text.splitlines()] == ROWS


def test_a_dataset_that_jobs_use_is_deleted_by_force_alone(root: Path) -> None:
    refused = assay("datasets", "delete", "one", "--yes", cwd=root)
    assert (refused.returncode, "used by jobs" in refused.stderr) == (2, True)
    assert assay("datasets", "delete", "one", "two", "--yes", "--force", cwd=root).returncode == 0
    assert keys(root) == []
    assert "no datasets in project 'default'" in assay("datasets", cwd=root).stdout


def test_changes_on_the_command_line_stand_in_the_log_with_their_user(root: Path) -> None:
    job = (root / "job").read_text("utf-8")
    (root / "g.yaml").write_text("[{type: exact_match}]", "utf-8")
    done = [
        ("graders", "create", "exact", "--graders", "g.yaml"),
        ("graders", "lock", "exact"),
        ("graders", "lock", "exact", "--unlock"),
        ("graders", "delete", "exact"),
        ("graders", "delete", "exact"),  # there is none, so nothing was done
        ("jobs", "cancel", job),
        ("jobs", "delete", job, "--yes"),
        ("datasets", "delete", "two", "--yes"),
        ("projects", "create", "qa"),
        ("projects", "limit", "qa", "--at-once", "3"),
        ("projects", "limit", "qa", "--per-minute", "600", "--at-once", "none"),
        ("keys", "create", "ci", "--project", "qa"),
        ("audit",),
    ]
    ended = [assay(*words, cwd=root, env={"LOGNAME": "ada"}) for words in done]
    assert [one.returncode for one in ended] == [0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0]
    noted = found(root, "audit")["changes"][::-1]
    assert [(each["operation"], each["project"], each["what"]) for each in noted[:-1]] == [
        ("create_grader", "default", {"key": "exact"}),
        ("lock_grader", "default", {"key": "exact", "locked": True}),
        ("lock_grader", "default", {"key": "exact", "locked": False}),
        ("delete_grader", "default", {"key": "exact", "force": False}),
        ("cancel_job", "default", {"id": job}),
        ("delete_job", "default", {"id": job}),
        ("delete_dataset", "default", {"key": "two", "force": False}),
        ("create_project", "*", {"key": "qa", "name": ""}),
        ("limit_project", "qa", {"requests_per_minute": None, "gradings_at_once": 3}),
        ("limit_project", "qa", {"requests_per_minute": 600, "gradings_at_once": None}),
    ]
    assert (noted[-1]["operation"], noted[-1]["project"]) == ("create_key", "qa")
    assert {(each["by"], each["key"], each["address"]) for each in noted} == {("ada", "local", "")}
    assert "ada" in ended[-1].stdout
    part = found(root, "audit", "--project", "qa", "--limit", "2")
    assert ([each["seq"] for each in part["changes"]], part["more"]) == ([11, 10], True)
    assert found(root, "audit", "--since", "2100-01-01")["changes"] == []
    listed = found(root, "projects")["projects"]
    assert [each["requests_per_minute"] for each in listed] == [None, 600]
    assert "600" in assay("projects", cwd=root).stdout


def test_a_job_is_shown_cancelled_exported_and_deleted(root: Path) -> None:
    job = (root / "job").read_text("utf-8")
    assert [each["id"] for each in found(root, "jobs")["jobs"]] == [job]
    assert found(root, "jobs", "--status", "failed")["jobs"] == []
    assert "queued  1 of 3" in assay("jobs", cwd=root).stdout
    refused = assay("jobs", "delete", job, "--yes", cwd=root)
    assert (refused.returncode, "cancel it first" in refused.stderr) == (2, True)
    assert found(root, "jobs", "cancel", job)["status"] == "cancelled"
    (line,) = assay("jobs", "export", job, cwd=root).stdout.splitlines()
    assert json.loads(line)["graded"]["score"] == 1.0
    assert found(root, "jobs", "delete", job, "--yes") == {"deleted": [job]}
    assert found(root, "jobs")["jobs"] == []


def test_traces_are_listed_shown_collected_and_deleted(root: Path) -> None:
    sent = [TRACE, "a" * 32, "b" * 32]
    with Database.open(root / ".assay") as database:
        for trace in sent:
            spans = agent_spans(trace=trace)[: 3 if trace == sent[2] else 4]
            kept, _ = new_spans(sent_spans(otlp_request(spans)), TraceLimits())
            receive(local_desk(database, "default"), kept, TraceLimits())
    listed = [one["id"] for one in found(root, "traces")["traces"]]
    assert listed == sent[::-1]
    assert [one["id"] for one in found(root, "traces", "--after", sent[1])["traces"]] == [TRACE]
    assert "not whole" in assay("traces", "--limit", "1", cwd=root).stdout
    narrow = assay("traces", cwd=root, env={"COLUMNS": "60"}).stdout
    assert all(trace in narrow for trace in sent), "an id that is broken cannot be copied"
    assert json.loads(assay("traces", "show", TRACE, cwd=root).stdout)["answer"] == "4"
    assert found(root, "traces", "show", TRACE)["trace"]["whole"] is True
    assert found(root, "traces", "collect", "new", "--clear")["rows"] == 2
    assert found(root, "traces", "delete", "--before", "2020-01-01", "--yes") == {"deleted": 0}
    assert found(root, "traces", "delete", sent[2], "--yes") == {"deleted": [sent[2]]}
    assert "no traces in project 'default'" in assay("traces", cwd=root).stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("traces", "show", TRACE), f"there is no trace '{TRACE}'"),
        (("traces", "collect", "new"), "no trace to collect"),
        (("traces", "collect", "one"), "already a dataset 'one'"),
        (("traces", "delete", "--yes"), "say which traces"),
        (("traces", "delete", TRACE, "--before", "7d", "--yes"), "say which traces"),
        (("datasets", "show", "tow"), "did you mean 'two'"),
        (("datasets", "delete", "one"), "--yes"),
        (("datasets", "delete", "two", "none", "--yes"), "no dataset 'none'"),
        (("datasets", "--project", "absent"), "no project 'absent'"),
        (("jobs", "show", "none"), "there is no job 'none'"),
        (("projects", "limit", "none", "--at-once", "3"), "no project 'none'"),
        (("projects", "limit", "default", "--at-once", "1000001"), "from 1 to 1,000,000"),
        (("audit", "--project", "absent"), "no project 'absent'"),
        (("jobs", "export", "none"), "there is no job 'none'"),
    ],
)
def test_what_makes_no_sense_is_refused(root: Path, words: tuple[str, ...], says: str) -> None:
    done = assay(*words, cwd=root)
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr
    assert keys(root) == ["one", "two"]


def test_old_scores_are_deleted_and_those_of_jobs_stay(root: Path) -> None:
    graded = Graded(id="0", status="scored", score=1.0, grader="g@1", digest="d1")
    with Database.open(root / ".assay") as database:
        database.clock = lambda: datetime(2026, 1, 1, tzinfo=UTC)
        Scores(database).add("default", [ScoreRecord(item="old", graded=graded)] * 2)
        other = replace(graded, grader="h@1")
        Scores(database).add("default", [ScoreRecord(item="other", graded=other)])
        database.clock = lambda: datetime(2026, 3, 1, tzinfo=UTC)
        Scores(database).add("default", [ScoreRecord(item="new", graded=graded)])
    words = ("scores", "delete", "--before", "2026-02-01", "--grader", "g")
    refused = assay(*words, cwd=root)
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert found(root, *words, "--yes") == {"deleted": 2}
    assert found(root, *words) == {"deleted": 0}
    with Database.open(root / ".assay") as database:
        left = {score.item for score in Scores(database).page("default")}
    assert left == {"0", "other", "new"}
