"""One file and one set of rows: the same scores in the sandbox and over every wire form."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.endpoint import Served, app_for
from assay.endpoint.scorers import scorer_of
from assay.graders.endpoints.forms import FORMS
from assay.graders.endpoints.forms.form import NotGradedError, WireForm
from assay.graders.functions import FunctionSource, grade_functions
from assay.graders.kinds import load_file
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.types import StringThread, Submission

SOURCE = """
from assay import StringThread


async def grade(thread: StringThread) -> float:
    answer, expected = thread.completion() or "", str(thread.metadata.get("expected", ""))
    return 1.0 if expected and answer.strip() == expected.strip() else 0.0
"""
ROWS = [("2+2?", "4", "4"), ("2+2?", "5", "4"), ("Where?", " Paris ", "Paris")]
SCORES = [1.0, 0.0, 1.0]
NOTHING = [
    Submission(question="2+2?", expected="4"),
    Submission(thread=StringThread([("user", "2+2?")]), question="2+2?", expected="4"),
    Submission(thread=StringThread(), expected="4"),
]


@pytest.fixture
def grade(tmp_path: Path) -> Callable[..., object]:
    """The function as `assay serve grader exact.py` loads it."""
    (tmp_path / "exact.py").write_text(SOURCE)
    return cast("Callable[..., object]", vars(load_file(str(tmp_path / "exact.py")))["grade"])


async def post(function: Callable[..., object], path: str, body: object) -> dict[str, Json]:
    transport = httpx.ASGITransport(app_for(function))
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as http:
        return cast("dict[str, Json]", (await http.post(path, json=body)).raise_for_status().json())


def turns(question: str, answer: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]


async def native(function: Callable[..., object]) -> list[Json]:
    items = [
        {"id": str(number), "question": question, "answer": answer, "expected": expected}
        for number, (question, answer, expected) in enumerate(ROWS)
    ]
    found = await post(function, "/v1/grade", {"items": items})
    return [result["score"] for result in cast("list[dict[str, Json]]", found["results"])]


async def native_messages(function: Callable[..., object]) -> list[Json]:
    items = [
        {"id": str(n), "messages": turns(q, a), "expected": e} for n, (q, a, e) in enumerate(ROWS)
    ]
    found = await post(function, "/v1/grade", {"items": items})
    return [result["score"] for result in cast("list[dict[str, Json]]", found["results"])]


async def adaptive(function: Callable[..., object]) -> list[Json]:
    requests = [{"turns": turns(q, a), "metadata": {"expected": e}} for q, a, e in ROWS]
    return [(await post(function, "/score", request))["reward"] for request in requests]


async def openrlhf(function: Callable[..., object]) -> list[Json]:
    body = {
        "query": [q + a for q, a, _ in ROWS],
        "prompts": [q for q, _, _ in ROWS],
        "labels": [e for _, _, e in ROWS],
    }
    return cast("list[Json]", (await post(function, "/get_reward", body))["rewards"])


async def nemo_gym(function: Callable[..., object], field: str) -> list[Json]:
    def body(question: str, answer: str, expected: str) -> Json:
        said: Json = {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": answer}],
        }
        return {
            "responses_create_params": {"input": [{"role": "user", "content": question}]},
            "response": {"output": [said]},
            field: expected,
        }

    return [(await post(function, "/verify", body(*row)))["reward"] for row in ROWS]


async def test_a_right_answer_is_right_in_every_wire_form(grade: Callable[..., object]) -> None:
    """A served function that takes the thread was not told what is expected, and gave 0.0."""
    assert await native(grade) == SCORES
    assert await native_messages(grade) == SCORES
    assert await adaptive(grade) == SCORES
    assert await openrlhf(grade) == SCORES
    assert await nemo_gym(grade, "expected") == SCORES
    assert await nemo_gym(grade, "expected_answer") == SCORES


@pytest.mark.sandbox
async def test_a_served_function_grades_as_the_sandbox_does(grade: Callable[..., object]) -> None:
    rows = [Submission(question=q, answer=a, expected=e) for q, a, e in ROWS]
    rows += [
        Submission(answer="4", thread=StringThread([("user", "Q")], {"expected": "4"})),
        Submission(answer="4", metadata={"expected": "4"}),
        Submission(answer="4"),
        *NOTHING,
    ]
    items = [(str(number), row) for number, row in enumerate(rows)]
    there, here = await asyncio.gather(
        grade_functions(FunctionSource(text=SOURCE), items), scorer_of(grade)(items)
    )
    for mine, theirs in zip(here, there, strict=True):
        assert (mine.status, mine.score) == (theirs.status, theirs.score)
        assert (mine.outcome, mine.error) == (theirs.outcome, theirs.error)
    assert [one.score for one in here] == [*SCORES, 1.0, 1.0, 0.0, None, None, None]


@pytest.mark.parametrize("submission", NOTHING)
async def test_a_conversation_without_an_answer_is_an_error_and_no_zero(
    grade: Callable[..., object], submission: Submission
) -> None:
    (found,) = await scorer_of(grade)([("a", submission)])
    assert (found.status, found.score) == ("error", None)


async def test_the_thread_is_passed_over_where_it_may_be_and_there_is_none() -> None:
    def optional(thread: StringThread | None = None, question: str = "") -> float:
        return float(thread is None and question == "2+2?")

    (found,) = await scorer_of(optional)([("a", NOTHING[0])])
    assert found.score == 1.0


EACH = [(name, each) for name, form in sorted(FORMS.items()) for each in form.each()]
PLAIN_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<["), max_size=9)
SCORE = st.one_of(st.none(), st.floats(0.0, 1.0))


@pytest.mark.parametrize(("name", "form"), EACH, ids=[f"{n}{f.route}" for n, f in EACH])
@given(st.lists(st.tuples(PLAIN_TEXT, PLAIN_TEXT, PLAIN_TEXT, SCORE), min_size=1, max_size=4))
def test_what_a_caller_writes_is_what_a_server_reads_and_the_other_way_round(
    name: str, form: WireForm, rows: list[tuple[str, str, str, float | None]]
) -> None:
    rows = rows[: form.most]
    items = [
        (str(n), Submission(question=q, answer=a, expected=e))
        for n, (q, a, e, _) in enumerate(rows)
    ]
    server = Served(scorer=scorer_of(float))
    body = cast("Json", json.loads(json.dumps(form.encode_request(items))))
    asked = form.decode_request(body, server)
    assert [number for number, _ in asked] == [number for number, _ in items]
    for (_, got), (_, sent) in zip(asked, items, strict=True):
        assert isinstance(got, Submission)
        assert (got.answer, got.expected) == (sent.answer, sent.expected)
    outcomes = [
        Graded.failed(str(n), "it broke")
        if score is None
        else Graded(id=str(n), status="scored", score=score)
        for n, (*_, score) in enumerate(rows)
    ]
    if name == "adaptive" and any(one.score is None for one in outcomes):
        with pytest.raises(NotGradedError, match="it broke"):
            form.encode_answer(body, outcomes, server)
        return
    answer = cast("Json", json.loads(json.dumps(form.encode_answer(body, outcomes, server))))
    found = form.decode_answer(items, answer, (0.0, 1.0))
    assert [(one.id, one.status, one.score) for one in found] == [
        (one.id, one.status, one.score) for one in outcomes
    ]
