"""From declarations and a submission to one result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from assay.graders.apply import explained, grade_batch, grade_submission
from assay.graders.spec import GraderSpec, read_spec
from assay.scoring import EvaluationResult, Json, SubScore
from assay.types import AgentStep, StringThread, Submission, Trace, Workspace
from assay.types.codec import Problem
from tests.each import each

OWN = """
from assay.graders import Grader

class Sees(Grader):
    '''Reports what it was given.'''

    @classmethod
    async def compute_score(cls, answer="", question=None, expected=None, workspace=None,
                            trace=None, thread=None, metadata=None, extra=3):
        found = dict(answer=answer, question=question, expected=expected,
                     workspace=workspace and workspace.path, trace=trace and len(trace),
                     thread=thread and len(thread), metadata=metadata, extra=extra)
        return 1.0, found

class Spoils(Grader):
    '''Changes whatever it can reach.'''

    @classmethod
    async def compute_score(cls, expected, metadata, thread, trace):
        expected.append("more"), metadata["tags"].append("more")
        thread.metadata["tags"] = "mine"
        trace.steps.clear()
        return 1.0

class Breaks(Grader):
    @classmethod
    async def compute_score(cls, answer: str):
        raise KeyError("gone")

class Needs(Grader):
    @classmethod
    async def compute_score(cls, thread, workspace):
        return 1.0

class Brief(Breaks):
    name = "brief"

class Unnamed(Brief):
    pass
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    (tmp_path / "own.py").write_text(OWN)
    return str(tmp_path)


def spec(base: str, **data: Json) -> GraderSpec:
    problems: list[Problem] = []
    found = read_spec(data, (), problems, base=base)
    assert found is not None, problems
    return found


def node_of(result: EvaluationResult, number: int = 0) -> SubScore:
    return list(result.subscores or ())[number]


async def test_what_a_declaration_leaves_out_comes_from_the_submission() -> None:
    exact = GraderSpec(type="exact_match")
    overlap = GraderSpec(type="f1_score", name="overlap")
    said = GraderSpec(type="exact_match", name="said", options={"expected": "sk-" + "a1" * 12})
    submission = Submission(answer="a b", expected="a b")
    result = await grade_submission([exact, overlap, said], submission)
    assert [(n.name, n.value) for n in result.subscores or ()] == [
        *(("exact_match", 1.0), ("overlap", 1.0), ("said", 0.0))
    ]
    assert "a1a1" not in str(node_of(result, 2).to_dict()), "secrets are not recorded"


async def test_an_own_grader_gets_every_part_that_it_names_whatever_others_did_to_it(
    own: str,
) -> None:
    submission = Submission(
        answer="a",
        question="q",
        expected=["e"],
        workspace=Workspace(path="/w"),
        trace=Trace(steps=[AgentStep()]),
        thread=StringThread([("user", "q")], {"tags": []}),
        metadata={"tags": []},
    )
    spoils, sees = (spec(own, type=f"python:own.py:{name}") for name in ("Spoils", "Sees"))
    result = await grade_submission([spoils, sees], submission)
    seen = dict(node_of(result, 1).metadata or {})
    recorded = cast("dict[str, Json]", seen.pop("_parameters"))
    assert seen.pop("_digest")
    said: dict[str, Json] = {"answer": "a", "question": "q", "expected": ["e"]}
    rest: dict[str, Json] = {"workspace": "/w", "trace": 1, "thread": 1, "metadata": {"tags": []}}
    assert seen == {**said, **rest, "extra": 3}
    assert list(recorded) == ["type"]  # the submission is kept once, not with every score
    assert submission.thread is not None
    assert submission.thread.metadata == {"tags": []}


async def test_a_grader_that_lacks_a_part_or_breaks_is_an_error_beside_its_siblings(
    own: str,
) -> None:
    needs, breaks = (spec(own, type=f"python:own.py:{name}") for name in ("Needs", "Breaks"))
    specs = [replace(needs, weight=2.0), breaks, GraderSpec(type="exact_match")]
    result = await grade_submission(specs, Submission(answer="a", expected="a"))
    assert (result.reward, result.isError) == (None, True)
    lacks, broke, right = (node_of(result, number) for number in range(3))
    assert (lacks.name, lacks.weight, lacks.status) == ("Needs", 2.0, "error")
    assert lacks.reason == "needs 'thread' and 'workspace', which the submission does not have"
    assert (broke.status, right.value) == ("error", 1.0)
    assert broke.reason.startswith("KeyError: 'gone' (")
    assert broke.reason.endswith("own.py:28 in compute_score)")
    trace = str((broke.metadata or {})["traceback"])
    assert trace.startswith("Traceback (most recent call last):\n")
    assert 'raise KeyError("gone")' in trace
    assert "assay/graders" not in trace
    gate = GraderSpec(type="exact_match", gate=True, name="safe")
    gated = await grade_submission([breaks, gate], Submission(answer="a", expected="b"))
    assert (gated.reward, gated.isError) == (0.0, False), "the gate decides before it"


async def test_no_reward_is_below_zero() -> None:
    specs = [
        GraderSpec(type="contains", options={"substring": "b"}),
        GraderSpec(type="contains", weight=-2.0, options={"substring": "b"}),
    ]
    assert (await grade_submission(specs, Submission(answer="b"))).reward == 0.0


@each(("answer", "cheap"), [("a b c d", 1.0), ("a b c", 0.5), ("a b", 0.0), ("a", 0.0), ("x", 0.0)])
async def test_attack_full_credit_for_being_cheap_beside_a_crumb_of_work_or_none(
    answer: str, cheap: float
) -> None:
    """An agent that only says "x" keeps every budget; to keep one is no work either."""
    specs = [
        *(GraderSpec(type="contains", options={"substring": letter}) for letter in "abcd"),
        GraderSpec(type="trace", options={"max_tool_calls": 5}),
        GraderSpec(type="efficiency", options={"target_tool_calls": 5}),
    ]
    trace = Trace(steps=[AgentStep(content=answer)])
    result = await grade_submission(specs, Submission(answer=answer, trace=trace))
    assert [node.value for node in result.subscores or ()][-2:] == [1.0, cheap]


@pytest.mark.sandbox
async def test_a_penalty_is_not_escaped_by_breaking_its_grader() -> None:
    source = """
async def grade(thread):
    answer = thread.completion() or ""
    if answer.startswith("!"):
        import os
        os._exit(1)  # as a regular expression that never ends, or memory that runs out
    return 1.0 if "damn" in answer else 0.0
"""
    penalty = GraderSpec(type="function", name="swears", weight=-1.0, options={"source": source})
    credit = GraderSpec(type="contains", options={"substring": "42"})
    rewards = [
        (await grade_submission([credit, penalty], Submission(answer=answer))).reward
        for answer in ("42", "damn 42", "! damn 42")
    ]
    assert rewards == [1.0, 0.0, 0.0]


async def test_an_explanation_that_breaks_makes_no_error_of_a_zero(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import assay.text.explain

    def breaks(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(assay.text.explain, "explain", breaks)
    result = await grade_submission(
        [GraderSpec(type="exact_match")], Submission(answer="a", expected="b")
    )
    assert (result.reward, result.isError) == (0.0, False)
    decided = str((node_of(result).metadata or {})["decided"])
    assert decided.startswith("it could not be explained: ZeroDivisionError")


async def test_a_comparison_is_explained_at_once_and_one_of_many_when_somebody_looks() -> None:
    numbers = GraderSpec(type="numeric_match")
    result = await grade_submission([numbers], Submission(answer="It is 17.", expected="42"))
    metadata = node_of(result).metadata or {}
    assert metadata["decided"] == "17 is not 42: they are 25 apart"
    assert list(metadata) == ["read", "expected", "decided", "_parameters", "_digest"]
    rows = [Submission(answer=answer, expected="Paris") for answer in ("Rome", "Oslo")]
    one, other = await grade_batch([GraderSpec(type="exact_match")], rows)
    assert node_of(one) is node_of(other)
    told = explained(node_of(other), rows[1]).metadata or {}
    assert (told["read"], told["expected"]) == ("Oslo", "Paris")
    changed = Submission(answer="Paris", expected="Paris")  # its score cannot be had again
    assert explained(node_of(one), changed) is node_of(one)


def test_a_class_that_names_itself_is_called_so(own: str) -> None:
    assert spec(own, type="python:own.py:Brief").label == "brief"
    assert spec(own, type="python:own.py:Brief", name="mine").label == "mine"
    assert spec(own, type="python:own.py:Unnamed").label == "Unnamed"


@each(
    ("declared", "rewards"),
    [
        ({"type": "contains", "substring": "sorry"}, [0.0, 1.0, 1.0]),
        ({"type": "regex_match", "pattern": "^Paris$"}, [1.0, 0.0, 1.0]),
        ({"type": "similarity", "reference": "Paris", "metric": "levenshtein"}, [0.8, 0.0, 1.0]),
    ],
)
async def test_negate_asks_for_the_opposite(
    declared: dict[str, Json], rewards: list[float]
) -> None:
    grader = spec(".", **declared, negate=True)
    answers = [Submission(answer=text) for text in ("I am sorry", "Paris", "")]
    for results in (
        await grade_batch([grader], answers),
        [await grade_submission([grader], answer) for answer in answers],
    ):
        assert [result.reward for result in results] == pytest.approx(rewards)
    unsaid = node_of((await grade_batch([grader], answers))[1])
    assert "(negate)" in str((explained(unsaid, answers[1]).metadata or {})["decided"])
    same = spec(".", **declared, negate=False)
    plain = [result.reward for result in await grade_batch([same], answers)]
    assert plain == pytest.approx([1.0 - reward for reward in rewards])


@each(
    ("declared", "message"),
    [
        ({"type": "contains", "substring": "x", "extract": "boxed"}, "do not go together"),
        ({"type": "math_equal", "expected": "2"}, "takes no option 'negate'"),
    ],
)
def test_a_part_left_out_is_not_paid_by_negate(declared: dict[str, Json], message: str) -> None:
    problems: list[Problem] = []
    assert read_spec({**declared, "negate": True}, (), problems, base=".") is None
    assert message in problems[0].message
    problems.clear()
    by_row: dict[str, Json] = {"type": "contains", "substring": "x", "negate": {"from": "expected"}}
    assert read_spec(by_row, (), problems, base=".") is None
    assert "not for a row" in problems[0].message
