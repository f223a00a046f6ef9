"""A run as one HTML file: its policy, its plain text, and the data that its script shows."""

from __future__ import annotations

import base64
import gzip
import hashlib
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from assay.errors import InputError
from assay.reports import one_file
from assay.reports.html import write_html
from assay.reports.review import review
from assay.reports.summary import verdict
from assay.scoring.results import SubScore
from assay.shown import Html, element, joined
from assay.store.records import CellRecord, RunRecord
from tests.report_files import ReportFile
from tests.reports.made import RUN, cell, errored, failing, hostile_cells, hostile_run


def report(
    tmp_path: Path,
    *cells: CellRecord,
    run: RunRecord = RUN,
    limit: int | None = 200,
    **options: Any,
) -> ReportFile:
    path = tmp_path / "report.html"
    write_html(path, review(run, iter(cells), limit=limit), **options)
    return ReportFile(path)


def run_of(found: ReportFile) -> dict[str, Any]:
    return found.data["run"]


def test_the_policy_admits_its_script_and_its_style_sheet_and_no_request(tmp_path: Path) -> None:
    found = report(tmp_path, failing(), cell("b"), errored())
    allowed = {"html", "head", "meta", "title", "style", "body", "div", "pre", "p"}
    assert {tag for tag, _ in found.tags} <= {*allowed, "script"}
    for tag, attributes in found.tags:
        assert not {"src", "href", "style", "onclick", "onload"} & set(attributes), tag
    _, script = found.inside["script"]
    (style,) = found.inside["style"]
    digests = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (script, style)
    ]
    metas = {m.get("http-equiv"): m.get("content") for m in found.all("meta")}
    assert metas["Content-Security-Policy"] == (
        f"default-src 'none'; script-src 'sha256-{digests[0]}'; "
        f"style-src 'sha256-{digests[1]}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert "url(" not in style
    assert "@import" not in style
    assert len(gzip.compress(f"{script}{style}".encode())) < 195_000, "every file carries it"


def test_whoever_runs_no_script_reads_the_verdict_and_every_cell(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    cells = [failing(flags=("odd",)), cell("b", notes={"label": True}), errored()]
    cells.append(cell("s", status="skipped", reward=None, passed=None, content="no trace"))
    found = report(tmp_path, *cells)
    assert found.text.splitlines() == snapshot
    assert found.inside["title"] == ["nightly · assay"]


def test_a_file_whose_script_was_not_built_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(_: str) -> Path:
        return tmp_path

    monkeypatch.setattr(one_file, "files", nothing)
    one_file.built.cache_clear()
    found = report(tmp_path, cell())
    one_file.built.cache_clear()
    assert "was not built" in found.text
    assert "✓ PASS: " in found.text


def test_every_score_is_there_down_to_its_evidence(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    found = report(tmp_path, failing(answer="Paris?", digest="sha256:12", flags=("odd",)))
    assert run_of(found)["opened"] == snapshot


def test_numbers_stand_beside_what_they_rest_on(tmp_path: Path) -> None:
    overview = run_of(report(tmp_path, cell("a"), failing("b"), errored()))["overview"]
    totals = overview["totals"]
    assert (totals["total"], totals["graded"], totals["pass_rate"]["mean"]) == (3, 2, 0.5)
    assert totals["pass_rate"]["low"] < 0.5 < totals["pass_rate"]["high"]
    assert (totals["cost_usd"], totals["cost_unknown"]) == (None, 3)
    assert overview["run"]["ends"] == {
        "passed": 1, "failed": 1, "errors": 1, "skipped": 0, "scored": 0,
    }  # fmt: skip
    assert overview["causes"] == [{"count": 1, "text": "judge: 503", "key": "judge: #"}]
    # What could not fail is scored and not passed; numbers that JSON has not are null.
    free = [cell(case, reward=0.5, threshold=0.0, cost_usd=nan, seconds=inf) for case in ("a", "b")]
    found = report(tmp_path, *free)
    told = {(row["ended"], row["cost_usd"], row["seconds"]) for row in run_of(found)["rows"]}
    assert told == {("scored", None, None)}
    assert run_of(found)["overview"]["totals"]["has_verdicts"] is False
    assert "✓" not in found.text
    mixed = run_of(report(tmp_path, *free, cell("c")))["overview"]["run"]["ends"]
    assert (mixed["passed"], mixed["scored"]) == (1, 2)


def test_failing_cells_come_before_errors_before_passes_and_lead_to_each_other(
    tmp_path: Path,
) -> None:
    run = run_of(report(tmp_path, cell("a"), errored(), failing("b"), cell("f", flags=("odd",))))
    assert [row["ended"] for row in run["rows"]] == ["fail", "error", "pass", "pass"]
    assert run["causes"] == ["", "judge: #", "", ""]
    views = [one["view"] for one in run["opened"]]
    assert [view["place"]["case"] for view in views] == ["b", "e", "a", "f"]
    beside = [(view["before"], view["after"], view["number"], view["of"]) for view in views]
    b, e, f = (views[at]["place"] for at in (0, 1, 3))
    assert beside == [(None, e, 1, 3), (b, f, 2, 3), (e, f, 2, 3), (e, None, 3, 3)]


def test_what_was_left_out_is_said(tmp_path: Path) -> None:
    cells = [failing(f"c{n}") for n in range(5)]
    few = report(tmp_path, *cells, limit=2)
    (said,) = run_of(few)["left_out"]
    assert said.startswith("2 of 5 cells can be looked at in this file, failures first")
    assert said in few.text
    cut = run_of(report(tmp_path, *cells, max_characters=5_000))
    assert 0 < len(cut["opened"]) < 5
    assert "cannot be opened: the file would be too large" in cut["left_out"][0]
    assert len(cut["rows"]) == 5
    assert run_of(report(tmp_path, *cells))["left_out"] == []


def test_a_file_of_huge_cells_stays_within_bounds(tmp_path: Path) -> None:
    wide = SubScore("w", 0.0, children=[SubScore(f"n{n}", 0.0) for n in range(5_000)])
    long = "line\n" * 100_000 + "x" * 1_000_000
    cells = [
        failing(f"c{n}", answer=long, content=long, subscores=(wide.to_dict(),)) for n in range(3)
    ]
    found = report(tmp_path, *cells)
    data = found.inside["script"][0]
    assert len(data) < 100_000
    answer = run_of(found)["opened"][0]["view"]["answer"]
    assert answer["more"] == len(long) - len(answer["text"]) > 0


def test_the_matrix_is_bounded_and_can_be_sorted_by_what_failed(tmp_path: Path) -> None:
    cells = [cell(f"r{n}") for n in range(1_100)]
    run = run_of(report(tmp_path, *cells, failing("r1", trial=2), limit=1))
    assert len(run["matrix"]["items"]) == run["matrix"]["total"] == 1_000
    assert run["matrix"]["items"][run["worst"][0]]["case"] == "r1"
    assert run["left_out"][1] == "100 cases are not in the matrix"


def test_agents_trials_and_mixed_graders_are_there(tmp_path: Path) -> None:
    cells = [
        cell("a", trial=1, digest="d1"),
        failing("a", trial=2, digest="d2"),
        cell("a", model="large"),
        errored(),
    ]
    run = run_of(report(tmp_path, *cells))
    (flaky,) = [
        one
        for case in run["matrix"]["items"]
        for one in case["cells"]
        if one is not None and one["flaky"]
    ]
    assert (flaky["mixed"], flaky["ended"]) == (True, ["pass", "fail"])
    assert run["overview"]["mixed"] == ["a"]
    assert len(run["overview"]["leaderboard"]) == 2
    assert run["record"]["config"] == {"trials": 2}


def test_the_verdict_is_the_one_that_is_returned_also_of_no_cells(tmp_path: Path) -> None:
    kept = review(RUN, [cell(), failing("b")])
    decided = write_html(tmp_path / "r.html", kept, fail_under=0.9)
    assert decided == verdict(kept.summary, fail_under=0.9)
    found = ReportFile(tmp_path / "r.html")
    assert decided.line in found.text
    assert run_of(found)["overview"]["verdict"] == decided.line
    with pytest.raises(InputError):
        write_html(tmp_path / "r.html", kept, fail_under=9)
    none = report(tmp_path)
    assert (run_of(none)["rows"], "nothing was graded" in none.text) == ([], True)


ATTACK = (
    "</pre></style></title><script>alert(1)</script><img src=x onerror=alert(2)>"
    '" onmouseover=\'x\' <a href="https://evil.test">\x1b[2J\u202e&lt;b&gt;\x00\ud800'
)


def test_markup_in_what_is_graded_stays_text(tmp_path: Path) -> None:
    found = report(tmp_path, *hostile_cells(ATTACK), run=hostile_run(ATTACK))
    assert len(found.all("script")) == 2
    assert not {"img", "a"} & {tag for tag, _ in found.tags}
    for _, attributes in found.tags:
        assert not [name for name in attributes if name.startswith("on")]
    assert "<script>alert(1)</script>" in found.text
    assert "<script>alert(1)</script>" in found.said
    assert "&lt;b&gt;" in found.text
    for text in (found.source, found.said):
        assert not set("\x1b\u202e\x00\ud800") & set(text)
    small = report(tmp_path, failing(ATTACK)).inside["script"][0]
    assert small.startswith("{"), "not compressed"
    assert not set("<>&") & set(small)


def test_elements_escape_text_and_attributes_but_not_html() -> None:
    inner = element("b", "<i>", class_='"')
    assert inner == '<b class="&quot;">&lt;i&gt;</b>'
    assert element("p", inner, None, "&") == f"<p>{inner}&amp;</p>"
    assert element("details", open=True, hidden=False, id=None) == "<details open></details>"
    assert element("p", "\x1b[2Ja\u202e", title="\x1b[2Jb") == '<p title="b">a\\u202e</p>'
    assert element("meta", http_equiv="x") == '<meta http-equiv="x">'
    assert isinstance(joined("a", inner), Html)
