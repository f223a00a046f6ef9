"""`Answer[T]`: what an agent wrote, as the type that was asked for, or why it is not one."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator
from typing import Any, Literal, cast

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.environment import Answer, Environment
from assay.environment.answer import parse_answer
from assay.errors import InputError
from assay.types import Run
from assay.types.typed import type_adapter
from tests.each import each


class City(pydantic.BaseModel):
    name: str
    people: int = 0


@dataclasses.dataclass
class Point:
    x: int
    y: float


def parse(annotation: object, raw: object) -> Answer[object]:
    adapter = type_adapter(annotation, what="returns")
    return parse_answer(raw, adapter, plain_text=annotation is str)


PARSED: list[tuple[object, str, object]] = [
    (int, "3", 3),
    (int, " 3\n", 3),
    (int, "3.0", 3),
    (int, '"3"', 3),
    (float, "3", 3.0),
    (bool, "true", True),
    (str, "as it is", "as it is"),
    (str, '"quoted"', '"quoted"'),
    (str, "", ""),
    (list[int], "[1, 2]", [1, 2]),
    (dict[str, int], '{"a": 1}', {"a": 1}),
    (Literal["a", "b"], '"b"', "b"),
    (int | None, "null", None),
    (City, '{"name": "Oslo", "people": 7}', City(name="Oslo", people=7)),
    (City, '```json\n{"name": "Oslo"}\n```', City(name="Oslo")),
    (City, 'Sure!\n```json\n{"name": "Oslo"}\n```\nAnything else?', City(name="Oslo")),
    (City, 'It is {"name": "Oslo"}.', City(name="Oslo")),
    (int, "```json\n3\n```", 3),
    (Point, '{"x": 1, "y": 2}', Point(1, 2.0)),
]


@each("annotation, raw, content", PARSED)
def test_what_is_parsed(annotation: object, raw: str, content: object) -> None:
    answer = parse(annotation, raw)
    assert (answer.content, answer.raw, answer.error) == (content, raw, None)
    assert answer.ok
    assert type(answer.content) is type(content)


FAILED: list[tuple[object, str, str]] = [
    (int, "three", "JSON"),
    (int, "3.5", "fractional part"),
    (int, "[3]", "valid integer"),
    (int, "9" * 5_000, ""),
    (float, "1,5", "JSON"),
    (list[int], '[1, "x"]', "1: "),
    (City, '{"people": 1}', "name: "),
    (City, '{"name": "Oslo"', "JSON"),
    (City, '```json\n{"name": 1}\n```', "name: "),
    (Point, '{"x": "a", "y": 1}', "x: "),
    (int, "[" * 100_000, ""),
    (dict[str, int], '{"a": 1, "a": "x"}', "a: "),
]


@each("annotation, raw, why", FAILED)
def test_what_cannot_be_parsed_is_the_text_and_says_why(
    annotation: object, raw: str, why: str
) -> None:
    answer = parse(annotation, raw)
    assert not answer.ok
    assert (answer.content, answer.raw) == (raw, raw)
    assert answer.error
    assert why in answer.error


def test_an_answer_that_is_none_or_a_value_already_and_a_type_that_is_none() -> None:
    answer = parse(int, None)
    assert (answer.content, answer.raw, answer.error) == (None, "", "there is no answer")
    assert parse(int, 3) == Answer(3, "3")
    assert parse(City, {"name": "Oslo"}).content == City(name="Oslo")
    failed = parse(int, ["x"])
    assert (failed.ok, failed.content, failed.raw) == (False, ["x"], "['x']")
    with pytest.raises(InputError, match=r"returns: .* is not a type that can be parsed"):
        type_adapter(object().__class__.__subclasses__, what="returns")


HOSTILE = st.text() | st.text('[]{}",:0123456789.eE-+`jsontruefalsn \n\ud800') | st.text("[{")


@given(HOSTILE, st.sampled_from([int, float, bool, list[int], City, Point, str, object]))
def test_nothing_that_an_agent_writes_raises(raw: str, annotation: object) -> None:
    answer = parse(annotation, raw)
    assert answer.raw == raw
    assert answer.ok or answer.content == raw


@each("answer, reward", [("10", 1.0), ("```\n10\n```", 1.0), ("ten", 0.0), (None, 0.0)])
async def test_a_typed_task_from_end_to_end(answer: str | None, reward: float) -> None:
    env = Environment("letters")

    @env.template(returns=int)
    async def count(word: str = "strawberry") -> AsyncGenerator[Any, Any]:
        said = cast("Answer[int]", (yield f"How long is {word}?"))
        yield 1.0 if said.ok and said.content == len(word) else 0.0

    async def agent(run: Run) -> None:
        run.trace.content = answer

    assert (await count().run(agent)).reward == reward


class Place(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    at: list[float]


@each(
    "annotation, raw",
    [
        (float, "NaN"),
        (float, '"nan"'),
        (float, "-Infinity"),
        (float, "1e999"),
        (float | None, '"inf"'),
        (Point, '{"x": 1, "y": "NaN"}'),
        (Place, '{"at": [1, "inf"]}'),
        (Place, '{"at": [], "more": {"x": NaN}}'),
        (dict[str, Any], '{"a": [NaN]}'),
        (dict[float, int], '{"nan": 1}'),
    ],
)
def test_attack_an_answer_that_is_no_number_is_not_parsed(annotation: object, raw: str) -> None:
    """``min(1.0, answer.content / goal)`` is 1.0 where the answer is NaN."""
    answer = parse(annotation, raw)
    assert (answer.ok, answer.content, answer.error) == (
        False,
        raw,
        "it holds a number that is not finite",
    )
