"""A grader as a reward: asked from anywhere, and never a number for what could not be graded."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Sequence
from pathlib import Path

import pytest

from assay import Client
from assay.errors import GraderError, InputError
from assay.graders import FunctionGrader, Grader
from assay.graders.spec import GraderSpec
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.training import Batch, Reward
from assay.training.reward import OnError
from assay.types.submission import Submission
from tests.each import each

EXACT = GraderSpec(type="exact_match")
ROWS: list[dict[str, Json]] = [
    {"answer": "4", "expected": "4"},
    {"answer": "5", "expected": "4"},
    {"answer": "", "expected": "4"},
]
SOURCE = """\
from adaptive_harmony import StringThread

async def grade(thread: StringThread) -> float:
    if thread.metadata.get("broken"):
        raise ValueError("the grader is wrong")
    return 1.0 if thread.completion() == thread.metadata.get("expected") else 0.25
"""


class Half(Grader):
    """Gives half of the credit for any answer."""

    name = "half"

    @classmethod
    async def compute_score(cls, answer: str) -> float:
        return 0.5


def of_answer(answer: str) -> float:
    return float(len(answer))


@pytest.mark.parametrize(
    ("grader", "name", "expected"),
    [
        (EXACT, "exact_match", [1.0, 0.0, 0.0]),
        ([EXACT, GraderSpec(type="exact_match", name="again", weight=3)], "reward", [1, 0, 0]),
        (Half, "half", [0.5, 0.5, 0.5]),
        ([EXACT, Half], "reward", [0.75, 0.25, 0.25]),
        (of_answer, "of_answer", [1.0, 1.0, 0.0]),
        pytest.param(
            FunctionGrader(source=SOURCE), "function", [1, 0.25, 0.25], marks=pytest.mark.sandbox
        ),
    ],
    ids=["declared", "several", "class", "both", "function", "in the sandbox"],
)
def test_any_grader_is_a_reward(grader: object, name: str, expected: Sequence[float]) -> None:
    reward = Reward(grader)  # pyright: ignore[reportArgumentType]
    assert reward.name == name
    assert reward.grade_now(ROWS).rewards == list(expected)


@pytest.mark.sandbox
def test_files_and_stored_graders_are_rewards(tmp_path: Path) -> None:
    file = tmp_path / "graders.yaml"
    file.write_text("- type: exact_match\n")
    for place in (file, str(file)):
        assert Reward(place).grade_now(ROWS).rewards == [1.0, 0.0, 0.0]
    store = str(tmp_path / "store")
    with Client(store=store) as client:
        client.graders.create.function(key="four", fn=SOURCE)
        client.graders.update("four", SOURCE.replace("0.25", "0.5"))
    for key, version, wrong in (("four", "four@2", 0.5), ("four@1", "four@1", 0.25)):
        batch = Reward(key, store=store).grade_now(ROWS)
        assert batch.rewards == [1.0, wrong, wrong]
        assert {one.grader for one in batch.graded} == {version}
    with pytest.raises(InputError, match="has no grader 'unknown'"):  # before the first batch
        Reward("unknown", store=store)


@pytest.mark.sandbox
def test_a_fault_has_no_reward_and_its_siblings_have_theirs() -> None:
    rows: list[dict[str, Json]] = [
        ROWS[0],
        {**ROWS[1], "metadata": {"broken": True}},
        {"question": "nobody answered"},
        {"answer": "5", "unreadable": "\ud800", "messages": 3},
        ROWS[1],
    ]
    batch = Reward(FunctionGrader(source=SOURCE)).grade_now(rows)
    assert batch.rewards == [1.0, None, None, None, 0.25]
    assert batch.errors == 3
    assert "the grader is wrong" in batch.graded[1].error
    assert batch.metrics()["error_rate"] == pytest.approx(0.6)


@each(
    "on_error, expected",
    [("group_mean", [1.0, 0.5, 0.0]), ("zero", [1.0, 0.0, 0.0]), ("raise", None)],
)
def test_what_stands_for_a_reward_that_there_is_not_is_chosen(
    on_error: OnError, expected: list[float] | None
) -> None:
    batch = _batch(1.0, None, 0.0)
    if expected is None:
        with pytest.raises(GraderError, match="1 of 3 answers have no reward: it broke"):
            batch.filled(on_error)
    else:
        assert batch.filled(on_error) == expected
        assert _batch(None, None).filled(on_error) == [0.0, 0.0]  # a group that teaches nothing


def _batch(*scores: float | None) -> Batch:
    graded = [
        Graded.failed(str(n), "it broke")
        if score is None
        else Graded(id=str(n), status="scored", score=score)
        for n, score in enumerate(scores)
    ]
    return Batch(graded=tuple(graded), seconds=(None,) * len(graded))


def test_its_deadline_attempts_and_turns_are_those_of_its_batches() -> None:
    """What these do, and wherever it is asked: tests/graders/test_batch.py."""
    never, asked = asyncio.Event(), list[str]()
    at_work = 0

    async def shaky(answer: str) -> float:
        nonlocal at_work
        asked.append(answer)
        at_work += 1
        assert at_work == 1
        try:
            await (never.wait() if answer == "stuck" else asyncio.sleep(0))
        finally:
            at_work -= 1
        if asked.count(answer) == 1:
            raise ConnectionError("the service is away")
        return 1.0

    reward = Reward(shaky, deadline=0.2, attempts=2, at_once=1)
    batch = reward.grade_now([{"answer": "stuck"}, {"answer": "done"}])
    assert batch.rewards == [None, 1.0]
    assert batch.graded[0].outcome == "late"
    assert asked.count("done") == 2


def test_components_have_a_value_for_each_answer() -> None:
    specs = [EXACT, GraderSpec(type="exact_match", name="other", options={"expected": "5"})]
    batch = Reward(specs).grade_now(ROWS[:2])
    assert batch.components == {"exact_match": [1.0, 0.0], "other": [0.0, 1.0]}
    assert set(batch.metrics()) == set(_batch().metrics())


def test_a_grader_that_grades_nothing_or_fails_is_told_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Reward(EXACT, name="mine").grade_now([{"answer": "4"}])
    assert "mine could grade none of 1 answers: needs 'expected'" in caplog.text

    def broken(answer: str) -> float:
        raise ValueError(answer)

    assert Reward(broken).grade_now(ROWS).rewards == [None] * 3
    assert caplog.text.count("Traceback") == 1  # where it fails is logged once


@each(
    "grader, options, said",
    [
        ("four@x", {}, "has no valid version"),
        ([], {}, "no grader"),
        (EXACT, {"deadline": 0.0}, "deadline is 0.0"),
        (EXACT, {"at_once": 0}, "at_once is 0"),
        (EXACT, {"attempts": 1.5}, "attempts is 1.5"),
        (EXACT, {"deadline": "3"}, "deadline is '3'"),
        (EXACT, {"patience": "3"}, "patience is '3'"),
        (EXACT, {"name": 3}, "name is 3"),
        (EXACT, {"traced": "yes"}, "traced is 'yes'"),
        (EXACT, {"url": "http://127.0.0.1:9"}, "not stored cannot be asked at"),
        (None, {}, "None is not a grader"),
        (["graders.yaml"], {}, "element 0, 'graders.yaml', is not a grader"),
        ([EXACT, len], {}, "element 1, <built-in function len>, is not a grader"),
        (GraderSpec(type="numeric_match", options={"pik": "last"}), {}, "'pik'.*'pick'"),
        (GraderSpec(type="numeric_match", options={"pick": "lst"}), {}, "pick: 'lst'.*'last'"),
        ("no-such-file.py", {}, "cannot read .*no-such-file.py"),
    ],
)
def test_what_cannot_be_a_reward_is_said(
    grader: object, options: dict[str, object], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        Reward(grader, **options)  # pyright: ignore[reportArgumentType]


def test_graders_of_traces_are_rewards_where_there_are_traces() -> None:
    spec = GraderSpec(type="trace", options={"require_tools": [{"name": "add"}]})
    with pytest.raises(InputError, match="needs 'trace'"):
        Reward(spec)
    reward = pickle.loads(pickle.dumps(Reward(spec, traced=True)))
    call: Json = {"type": "tool", "step_id": 1, "call": {"name": "add", "arguments": {}}}
    traces: list[Json] = [{"steps": []}, {"steps": [call]}]
    batch = reward.grade_now([{"answer": "5", "trace": trace} for trace in traces])
    assert batch.rewards == [0.0, 1.0]


@pytest.mark.sandbox
def test_a_function_that_cannot_be_loaded_is_told_with_its_line(tmp_path: Path) -> None:
    (file := tmp_path / "grade.py").write_text("import json\n\ndef grade(:\n", "utf-8")
    (graded,) = Reward(file).grade_now(ROWS[:1]).graded
    assert graded.error == "line 3 of the function: SyntaxError: invalid syntax"


def test_a_grader_that_asks_its_own_reward_is_told_rather_than_hung() -> None:
    inner = Reward(EXACT)

    async def outer(answer: str) -> float:
        return inner.grade_now([{"answer": answer, "expected": "4"}]).rewards[0] or 0.0

    batch = Reward(outer).grade_now([Submission(answer="4")])
    assert "await grade(...)" in batch.graded[0].error
