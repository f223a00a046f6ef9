"""The JUnit report, read back with the standard library's XML parser."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from assay.errors import InputError, StoreError
from assay.reports.files import replacing
from assay.reports.junit import write_junit
from assay.scoring.results import SubScore
from assay.store.records import CellRecord, RunRecord
from tests.reports.made import RUN, cell, errored, failing, hostile_cells, hostile_run


def written(path: Path, *cells: CellRecord, run: RunRecord = RUN) -> ET.Element:
    write_junit(path, run, iter(cells))
    return ET.parse(path).getroot()


_RATED: dict[str, Any] = {"notes": {"rates": {"pass rate": 0.5}}}
_PARTS = (SubScore("tests", 0.25, metadata={"stdout": "3 failed"}), SubScore.error("j", "down"))
_CELLS = [
    cell("passed", seconds=1.5),
    cell("passed", model="large"),
    failing("failed", threshold=0.7, seconds=0.5, cost_usd=0.5, answer="Paris"),
    cell("parts", reward=0.25, passed=False, subscores=tuple(one.to_dict() for one in _PARTS)),
    errored("broken"),
    cell("skipped", status="skipped", reward=None, passed=None, content="no trace"),
    cell("no number", reward=float("nan")),
    cell("could not fail", reward=0.5, threshold=0.0),
    cell("flaky", trial=1, **_RATED),
    cell("flaky", trial=2, reward=0.0, passed=False, **_RATED),
]


def test_a_report_whole(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    """A suite per agent and a test case per trial: what passes, fails, breaks, is skipped, could
    not fail, is a flake of a rate that was reached, and what was planned and has no result.
    """
    written(tmp_path / "j.xml", *_CELLS, run=replace(RUN, planned=12))
    text = (tmp_path / "j.xml").read_text("utf-8").replace("><", ">\n<")
    assert text.splitlines() == snapshot


def test_suites_are_told_apart_and_a_rate_that_was_missed_is_a_failure(tmp_path: Path) -> None:
    alike = [cell(harness="a / b", model="c"), cell(harness="a", model="b / c")]
    assert len(written(tmp_path / "new" / "directory" / "j.xml", *alike)) == 2
    missed = [cell("flaky", trial=n, reward=0.0, passed=False, **_RATED) for n in (1, 2)]
    assert written(tmp_path / "j.xml", *missed).get("failures") == "2"


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
