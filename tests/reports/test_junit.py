"""The JUnit report, read back with the standard library's XML parser."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.errors import InputError, StoreError
from assay.reports.files import replacing
from assay.reports.junit import write_junit
from assay.scoring.results import SubScore
from assay.store.records import CellRecord, RunRecord
from tests.reports.made import RUN, cell, hostile_cells, hostile_run


def written(path: Path, *cells: CellRecord, run: RunRecord = RUN) -> ET.Element:
    write_junit(path, run, iter(cells))
    return ET.parse(path).getroot()


def test_a_suite_per_agent_and_a_test_case_per_trial(tmp_path: Path) -> None:
    root = written(
        tmp_path / "j.xml",
        cell("a", trial=1, seconds=1.5),
        cell("a", model="large"),
        cell("a", trial=2, reward=0.0, passed=False, seconds=0.5),
        cell("b", status="error", reward=None, passed=None, error="judge: 503"),
        cell("c", status="skipped", reward=None, passed=None, content="no trace"),
    )
    assert root.get("name") == "assay nightly"
    assert (root.get("tests"), root.get("failures")) == ("5", "1")
    small, large = root.findall("testsuite")
    assert small.attrib == {
        "name": "echo / small",
        "tests": "4",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
        "time": "2.000",
        "timestamp": "2026-11-21T09:08:30",
    }
    assert large.get("tests") == "1"
    names = [case.get("name") for case in small]
    assert names == ["a [trial 1]", "a [trial 2]", "b [trial 1]", "c [trial 1]"]
    alike = [cell(harness="a / b", model="c"), cell(harness="a", model="b / c")]
    assert len(written(tmp_path / "new" / "directory" / "j.xml", *alike)) == 2


def test_what_could_not_fail_is_a_plain_test_case_with_the_status_scored(tmp_path: Path) -> None:
    (suite,) = written(tmp_path / "j.xml", cell("free", reward=0.5, threshold=0.0), cell("passed"))
    free, passed = [
        {one.get("name"): one.get("value") for one in case.iter("property")} for case in suite
    ]
    assert (free["status"], free["reward"]) == ("scored", "0.50")
    assert "status" not in passed
    assert [child.tag for child in suite[0]] == ["properties"]


def test_each_outcome_has_its_own_element(tmp_path: Path) -> None:
    (suite,) = written(
        tmp_path / "j.xml",
        cell("pass"),
        cell("fail", reward=0.2, passed=False, threshold=0.7),
        cell("error", status="error", reward=None, error="judge: 503"),
        cell("skip", status="skipped", reward=None, content="no trace"),
        cell("nan", reward=float("nan")),
    )
    found = {
        str(case.get("name")).split()[0]: [child.tag for child in case if child.tag != "properties"]
        for case in suite
    }
    assert found == {
        "pass": [],
        "fail": ["failure"],
        "error": ["error"],
        "skip": ["skipped"],
        "nan": ["error"],
    }
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert str(failure.get("message")).startswith("0.20; needs 0.70")
    error = suite.find("testcase/error")
    assert error is not None
    assert error.get("message") == "judge: 503"


def test_scores_are_properties_and_the_failure_holds_the_evidence(tmp_path: Path) -> None:
    parts = (SubScore("tests", 0.25, metadata={"stdout": "3 failed"}), SubScore.error("j", "down"))
    subscores = tuple(part.to_dict() for part in parts)
    (suite,) = written(
        tmp_path / "j.xml",
        cell(reward=0.25, passed=False, subscores=subscores, answer="Paris", cost_usd=0.5),
    )
    properties = {p.get("name"): p.get("value") for p in suite.iter("property")}
    assert properties == {
        "reward": "0.25",
        "threshold": "1.00",
        "cost_usd": "0.5",
        "score.tests": "0.25",
        "score.j": "error",
    }
    text = suite.findtext("testcase/failure") or ""
    for evidence in ("0.25 tests", "3 failed", "down", "Paris"):
        assert evidence in text


def test_planned_cells_without_a_result_are_an_error_of_the_run(tmp_path: Path) -> None:
    run = RunRecord(id="r1", created_at="", planned=3)
    root = written(tmp_path / "j.xml", cell(), run=run)
    assert root.get("errors") == "1"
    error = root.find("testsuite[@name='run']/testcase/error")
    assert error is not None
    assert error.get("message") == "2 of 3 planned cells have no result"


ATTACK = 'a"]]></failure><testcase name="forged"/>&\x00\x1b[31m\ufffe\ud800<!--\u202e'


def test_hostile_text_cannot_end_an_element_or_break_the_file(tmp_path: Path) -> None:
    cells = [replace(one, seconds=float("nan")) for one in hostile_cells(ATTACK)]
    root = written(tmp_path / "j.xml", *cells, run=hostile_run(ATTACK))
    assert root.get("tests") == "7", "with what was planned and has no result"
    assert len(list(root.iter("testcase"))) == 7
    assert "\x1b" not in (tmp_path / "j.xml").read_text("utf-8")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_categories=())))
def test_any_text_parses_back(tmp_path: Path, text: str) -> None:
    root = written(tmp_path / "j.xml", cell(text, reward=0.0, passed=False, answer=text))
    assert len(list(root.iter("testcase"))) == 1


def test_a_reader_or_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "j.xml"
    path.write_text("old")

    def broken() -> Iterator[CellRecord]:
        yield cell()
        raise StoreError("the database went away")

    def interrupted() -> None:
        with replacing(path) as file:
            file.write("half of the n")
            raise KeyboardInterrupt

    with pytest.raises(StoreError):
        write_junit(path, RUN, broken)
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    with pytest.raises(InputError, match="dir"):
        written(tmp_path / "dir", cell())
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        written(tmp_path / "file" / "j.xml", cell())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["dir", "file"]


def test_whole_cells_are_not_kept_in_memory(tmp_path: Path) -> None:
    def cells() -> Iterator[CellRecord]:
        for n in range(150):
            yield cell(f"c{n}", reward=0.0, passed=False, answer=f"{n} " + "x" * 40_000)

    tracemalloc.start()
    try:
        write_junit(tmp_path / "j.xml", RUN, cells)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3_000_000  # of 6,000,000 characters


def test_a_flake_of_a_rate_that_was_reached_is_no_failure(tmp_path: Path) -> None:
    rated = {"notes": {"rates": {"pass rate": 0.5}}}
    good, bad = cell("a", trial=1, **rated), cell("a", trial=2, reward=0.0, passed=False, **rated)
    root = written(tmp_path / "j.xml", good, bad, cell("b", reward=0.0, passed=False))
    assert (root.get("tests"), root.get("failures")) == ("3", "1")
    flaky = next(one for one in root.iter("testcase") if one.get("name") == "a [trial 2]")
    assert flaky.find("failure") is None
    told = {one.get("name"): one.get("value") for one in flaky.iter("property")}
    assert "failed_trial" in told
    root = written(tmp_path / "j.xml", bad, cell("a", trial=3, reward=0.0, passed=False, **rated))
    assert root.get("failures") == "2"
