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
from tests.each import each

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


EACH = [(name, one) for name, form in sorted(FORMS.items()) for one in form.each()]


@each(("name", "form"), EACH)
async def test_a_right_answer_is_right_in_every_wire_form(
    grade: Callable[..., object], name: str, form: WireForm
) -> None:
    """A served function that takes the thread was not told what is expected, and gave 0.0.

    And OpenRLHF's and Gym's forms sent an empty answer of a conversation without `answer`.
    """
    asked = [Submission(question=q, answer=a, expected=e) for q, a, e in ROWS]
    threads = [StringThread([("user", q)]) for q, _, _ in ROWS]
    for thread, (_, a, e) in zip(threads, ROWS, strict=True):
        asked.append(Submission(thread=thread.assistant(a), expected=e))
        asked.append(Submission(thread=thread, answer=a, expected=e))
    items = [(str(number), one) for number, one in enumerate(asked)]
    size, found = min(form.most, len(items)), list[Graded]()
    for batch in (items[at : at + size] for at in range(0, len(items), size)):
        reply = await post(grade, form.route, form.encode_request(batch))
        found += form.decode_answer(batch, reply, (0.0, 1.0))
    assert [one.score for one in found] == [
        *SCORES,
        *(score for score in SCORES for _ in range(2)),
    ], name


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


@each("submission", NOTHING)
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
