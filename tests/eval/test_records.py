"""What of a run, and of a graded row, is kept in the narrow row of its cell."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from syrupy.assertion import SnapshotAssertion

from assay.eval.records import (
    digest_with_files,
    graded_by,
    graders_digest,
    reaches_threshold,
    record_of,
    row_record,
    uncovered,
)
from assay.eval.rows.grades import RowGrade
from assay.graders.spec import GraderSpec
from assay.scoring import EvaluationResult, Grade, SubScore
from assay.scoring.json_safe import Json
from assay.store import CellRecord
from assay.tasks.blocks import Expect, OfTrials
from assay.tasks.rows import Row
from assay.types import Run, Step, Submission, Trace
from assay.version import __version__
from tests.each import each

_TESTS = SubScore("tests", 0.5, flags=("canary passed",), assurance="separate")
_JUDGE = SubScore("judge", status="skipped", reason="no key", weight=3.0)


def _cell(run: Run, expect: Expect | None = None, **more: Any) -> CellRecord:
    return record_of(run, run_id="r", case="c", expect=expect or Expect(), **more)


def _graded(reward: float | None, *subscores: SubScore, **more: Any) -> Run:
    frame = EvaluationResult(reward=reward, subscores=subscores, **more).to_dict()
    return Run(grade=Grade.from_dict(frame))


def test_all_that_is_known_of_a_run_is_in_its_row(snapshot: SnapshotAssertion) -> None:
    run = _graded(0.5, _TESTS, content="half of it")
    run.trace = Trace(steps=[Step(error="it was cut off")], content="x" * 2_001)
    run.harness, run.model, run.trial = "echo", "a/b", 3
    run.seconds, run.cost_usd, run.tokens = 1.5, 0.25, 70
    run.metadata = {
        "image": "sha256:1",
        "submission": {"dropped": ["a"], "restored": [], "files": 3},
    }
    metadata: dict[str, Json] = {"level": "hard", "solution": "42"}
    expect = Expect(pass_threshold=0.5, min_assurance="read")
    cell = _cell(run, expect, version="v", file="case.yaml", metadata=metadata)
    assert (cell.digest, cell.answer) == (graded_by("v"), "x" * 2_000 + "...")
    assert replace(cell, digest="", answer="") == snapshot
    assert _cell(Run(grade=Grade.from_dict({"score": 1.0}))) == CellRecord(
        run_id="r", case="c", status="graded", reward=1.0, passed=True
    )


def test_what_has_no_reward_is_an_error_or_skipped_and_has_not_passed() -> None:
    skipped = _cell(_graded(None, SubScore("judge", status="skipped"), content="no key"))
    assert (skipped.status, skipped.reward, skipped.passed) == ("skipped", None, None)
    assert (skipped.error, skipped.assurance, skipped.content) == ("", None, "no key")
    for content, error, told in (
        ("the judge is down", "cut off", "the judge is down"),
        (None, "cut off", "cut off"),
        (None, None, "not graded"),
    ):
        run = Run(grade=Grade.from_dict({"score": None, "isError": True, "content": content}))
        run.trace = Trace(steps=[Step(error=error)])
        failed = _cell(run)
        assert (failed.status, failed.reward, failed.passed) == ("error", None, None)
        assert failed.error == told
        assert failed.content == "; ".join(filter(None, (content, error)))


@each("given, kept, passed", [(-2.0, 0.0, False), (1.5, 1.0, True), (0.3, 0.3, False)])
def test_a_reward_of_a_template_is_kept_within_0_and_1(
    given: float, kept: float, passed: object
) -> None:
    cell = _cell(_graded(given))
    assert (cell.reward, cell.passed) == (kept, passed)
    assert cell.notes == ({} if given == kept else {"unclamped": given})


@each(
    "reward, subscores, expect, passed",
    [
        (1.0, (), Expect(), True),
        (1.0, (), Expect(min_assurance="separate"), False),
        (1.0, (_TESTS,), Expect(min_assurance="separate"), True),
        (0.4, (_TESTS,), Expect(min_assurance="separate"), False),
        (1.0, (_TESTS, _JUDGE), Expect(), True),
        (1.0, (_TESTS, _JUDGE), Expect(min_coverage=0.25), True),
        (1.0, (_TESTS, _JUDGE), Expect(min_coverage=0.26), False),
        (0.4, (_TESTS, _JUDGE), Expect(min_coverage=0.25), False),
    ],
)
def test_a_cell_passes_by_its_reward_its_assurance_and_what_was_graded(
    reward: float, subscores: tuple[SubScore, ...], expect: Expect, passed: object
) -> None:
    cell = _cell(_graded(reward, *subscores), expect)
    assert cell.passed is passed
    assert cell.notes.get("min_coverage") == expect.min_coverage


def test_what_is_asked_of_all_trials_and_what_is_held_are_noted() -> None:
    expect = Expect(pass_rate=0.5, pass_at_k=OfTrials(k=3, rate=0.75))
    run = Run(grade=Grade.from_dict({"score": 1.0, "info": {"held": 1.0, "more": 2}}))
    assert _cell(run, expect).notes == {"held": 1.0, "rates": {"pass rate": 0.5, "pass@3": 0.75}}


def test_what_was_skipped_is_noted_where_there_is_a_reward_all_the_same() -> None:
    result = EvaluationResult(reward=0.5, subscores=[_TESTS, _JUDGE])
    assert uncovered(result) == {"not_graded": {"share": 0.75, "graders": {"judge": "no key"}}}
    assert _cell(_graded(0.5, _TESTS, _JUDGE)).notes == uncovered(result)
    assert uncovered(EvaluationResult(reward=None, subscores=[_JUDGE])) == {}
    assert uncovered(EvaluationResult(reward=0.5, subscores=[_TESTS])) == {}


def test_only_what_is_short_in_a_cases_metadata_tells_its_cells_apart() -> None:
    short: dict[str, Json] = {
        "text": "x" * 100, "number": 1, "share": 0.5, "is_new": True, "tags": ["a", 1], "none": [],
    }  # fmt: skip
    long: dict[str, Json] = {
        "text": "x" * 101, "nothing": None, "nested": {"a": 1}, "deep": [["a"]],
        "tags": ["x" * 101], "many": list[Json](["a"] * 21), "solution": "42",
    }  # fmt: skip
    run = Run(grade=Grade.from_dict({"score": 1.0}))
    assert _cell(run, metadata=short).notes == {"about": short}
    assert _cell(run, metadata=long).notes == {}
    many: dict[str, Json] = {f"f{number}": number for number in range(25)}
    assert _cell(run, metadata=many).notes == {"about": {f"f{n}": n for n in range(20)}}


def test_all_that_is_known_of_a_row_is_in_its_row(snapshot: SnapshotAssertion) -> None:
    submission = Submission(answer="y" * 2_001)
    row = Row(id="7", submission=submission, group="g", label="PASS", file="rows.jsonl:7")
    results = {
        "graded": EvaluationResult(reward=0.5, subscores=[_TESTS, _JUDGE], content="half of it"),
        "skipped": EvaluationResult(reward=None, content="no key"),
        "broken": EvaluationResult.from_error("it broke"),
        "broken without a reason": EvaluationResult(isError=True),
    }
    noted: dict[str, Any] = {"run_id": "r", "threshold": 0.5, "digest": "d", "seconds": 2.5}
    for name, result in results.items():
        cell = row_record(row, result, **noted)
        assert cell.answer == "y" * 2_000 + "..."
        assert replace(cell, answer="") == snapshot(name=name)
    bare = row_record(Row(id="1", submission=Submission()), EvaluationResult(reward=0.4), **noted)
    assert (bare.passed, bare.answer, bare.notes) == (False, "", {})
    whole = Row(id="2", submission=Submission(answer="y" * 2_000))
    assert row_record(whole, EvaluationResult(reward=0.4), **noted).answer == "y" * 2_000


def test_a_threshold_is_reached_give_or_take_rounding_also_of_a_row_and_in_a_part() -> None:
    assert reaches_threshold(0.1 + 0.2, 0.3)
    assert reaches_threshold(0.5 - 0.9e-9, 0.5)
    assert not reaches_threshold(0.5 - 1.1e-9, 0.5)
    row, result = Row(id="1", submission=Submission()), EvaluationResult(reward=0.4)
    noted: dict[str, Any] = {"run_id": "r", "digest": "d", "seconds": 2.5}
    for over, passed in ((1e-10, True), (1e-6, False)):
        assert row_record(row, result, threshold=0.4 + over, **noted).passed is passed
        assert RowGrade.of(result, threshold=0.4 + over, graders=0).passed is passed


def test_a_digest_is_of_what_was_declared_and_of_this_assay() -> None:
    assert graded_by("x") == hashlib.sha256(f"{__version__}\nx".encode()).hexdigest()[:16]
    exact, other = GraderSpec(type="exact_match"), GraderSpec(type="exact_match", name="other")
    digests = [graders_digest(graders) for graders in ([exact], [other], [exact, other], [])]
    assert len({*digests}) == 4
    assert digests[0] == graders_digest([GraderSpec(type="exact_match")])
    whole, made_of = digest_with_files([exact]).split()
    assert (whole, len(made_of)) == (digests[0], 16)
