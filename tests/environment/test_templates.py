"""Templates: two yields, checked arguments, and no silent zero in between."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import pydantic
import pytest

from assay.environment import Answer, Environment, Template
from assay.errors import InputError, TemplateError
from assay.scoring import EvaluationResult, Grade, SubScore
from assay.types import Run, Submission
from tests.each import each

Steps = AsyncGenerator[Any, Any]


def env() -> Environment:
    return Environment("demo", version="1.2.3")


def yielding(*values: object) -> Template[[]]:
    """A template that yields these, one after the other."""
    demo = env()

    @demo.template()
    async def shows() -> Steps:
        for value in values:
            yield value

    return shows


async def graded(*values: object, answer: str | None = "a") -> EvaluationResult:
    async with cast("Any", yielding(*values)().work).open() as session:
        return await session.grade(Submission(answer=answer))


LONG = {"content": "x" * 50_000 + " sk-" + "a1" * 12, "password": "p"}
"""Neither cut nor redacted."""

PROMPTS: list[tuple[object, object]] = [
    ("hello", "hello"),
    ("", ""),
    ({"prompt": "hello", "more": 1}, "hello"),
    ([{"role": "user", "content": "a"}], [{"role": "user", "content": "a"}]),
    (["a", {"role": "user"}], ["a", {"role": "user"}]),
    ({"prompt": ["a"]}, ["a"]),
    ([LONG], [LONG]),
]


@each("value, prompt", PROMPTS)
async def test_prompts(value: object, prompt: object) -> None:
    async with cast("Any", yielding(value, 1.0)().work).open() as session:
        assert session.prompt == prompt


@each("value", [None, 3, b"x", ("a",), {"text": "a"}, [1], [["a"]], object()])
async def test_what_is_no_prompt(value: object) -> None:
    with pytest.raises(TemplateError, match=r"'shows' yielded .* as its prompt"):
        await graded(value, 1.0)


REWARDS: list[tuple[object, float | None, bool]] = [
    (0.5, 0.5, False),
    (-2.0, -2.0, False),
    (EvaluationResult(reward=0.25, content="c"), 0.25, False),
    (EvaluationResult.from_error("gone"), None, True),
    (Grade.from_dict({"score": 0.75}), 0.75, False),
    ({"reward": 0.5}, 0.5, False),
    ({"score": 1, "info": {"path": Path("/a")}}, 1.0, False),
    ({"score": None, "isError": True}, None, True),
    ({"score": 1.0, "subscores": [SubScore(name="x", value=1.0)]}, 1.0, False),
]


@each("value, reward, is_error", REWARDS)
async def test_rewards(value: object, reward: float | None, is_error: bool) -> None:  # noqa: FBT001 - a parameter of the table
    result = await graded("p", value)
    assert (result.reward, result.isError) == (reward, is_error)
    json.dumps(result.to_dict())


NO_REWARDS: list[tuple[object, str]] = [
    (True, "is a bool"),
    (math.nan, "is nan"),
    ("1.0", "must be a number, got str"),
    (None, "must be a number, got NoneType"),
    ([1.0], "must be a number, got list"),
    ((1.0, {}), "must be a number, got tuple"),
    (SubScore(name="x", value=1.0), r"SubScore \(yield its .value, or await combine"),
    ({}, "needs a 'reward'"),
    ({"score": True}, "bool"),
    ({"score": math.nan}, "nan"),
    ({"rewrad": 1.0}, r"unknown key 'rewrad' in an evaluation result \(did you mean 'reward'"),
    ({"score": 1.0, "subscores": [{"name": "x", "value": math.nan}]}, "must be a number"),
]


@each("value, why", NO_REWARDS)
async def test_what_is_no_reward(value: object, why: str) -> None:
    with pytest.raises(TemplateError, match=why) as caught:
        await graded("p", value)
    assert "'shows'" in str(caught.value)


@each(
    "values, why",
    [
        ([], "ended without yielding a prompt"),
        (["p"], r"ended without a second yield \(yield the reward\)"),
        (["p", 1.0, 1.0], r"yielded a third time \(yield exactly twice\)"),
    ],
)
async def test_a_template_yields_exactly_twice(values: list[object], why: str) -> None:
    with pytest.raises(TemplateError, match=why):
        await graded(*values)


async def test_what_follows_the_reward_still_runs_and_the_end_is_always_reached() -> None:
    demo, seen = env(), list[str]()

    @demo.template()
    async def cleans() -> Steps:
        try:
            answer = yield "p"
            yield float(answer == "")  # which it gets where there is none
            seen.append("after")
        finally:
            seen.append("end")

    async with cast("Any", cleans().work).open() as session:
        assert (await session.grade(Submission())).reward == 1.0
    assert seen == ["after", "end"]
    async with cast("Any", cleans().work).open():
        pass  # not graded at all
    assert seen == ["after", "end", "end"]


class Spec(pydantic.BaseModel):
    word: str
    times: int = 1


@dataclasses.dataclass
class Place:
    x: int


def typed() -> tuple[Environment, Template[...]]:
    demo = env()

    @demo.template(description="Count letters.", input=Spec, returns=int)
    async def count(
        word: str, times: int = 2, spec: Spec | None = None, *, tags: list[str] | None = None
    ) -> Steps:
        """Not this line."""
        answer: Answer[int] = yield f"{word} {times}"
        yield 1.0 if answer.content == len(word) * times else 0.0

    return demo, count


@each(
    "args, why",
    [
        ({}, "template 'count': missing a required argument: 'word'"),
        ({"wrod": "x"}, "did you mean 'word'?"),
        ({"word": 3}, "argument 'word' is 3 .*valid string"),
        ({"word": "x", "times": "many"}, "argument 'times' is 'many'"),
        ({"word": "x", "tags": "ab"}, "argument 'tags' is 'ab'"),
        ({"word": "x", "spec": {"word": 1}}, "argument 'spec'"),
    ],
)
def test_arguments_are_checked_where_the_task_is_made(args: dict[str, object], why: str) -> None:
    demo, _ = typed()
    with pytest.raises(InputError, match=why):
        demo.task("count", **args)


def test_arguments_are_bound_by_place_and_by_name_and_made_their_type() -> None:
    _, count = typed()
    task = count("abc", "3", spec={"word": "x"})
    assert task.args == {"word": "abc", "times": 3, "spec": {"word": "x", "times": 1}}
    assert (task.id, task.env) == ("count", "demo")
    assert task.slug == count("abc", 3, Spec(word="x")).slug != count("abc", 4).slug


async def test_a_row_keeps_long_and_secret_looking_arguments_as_they_are() -> None:
    demo = env()

    @demo.template()
    async def login(password: str, page: str, place: Place | None = None) -> Steps:
        yield f"{password} {len(page)} {place}"
        yield 1.0

    @demo.template()
    async def takes(thing: object) -> Steps:
        yield "p"
        yield thing

    task = login(password="hunter2", page="x" * 50_000, place=Place(3))
    assert task.args == {"password": "hunter2", "page": "x" * 50_000, "place": {"x": 3}}
    assert takes(object()).args == {"thing": "<object: not serializable>"}
    again = demo.task("login", **task.args)
    async with cast("Any", again.work).open() as session:
        assert session.prompt == "hunter2 50000 Place(x=3)"


def test_the_manifest_has_schemas() -> None:
    demo, _ = typed()
    manifest = demo.manifest()
    assert (manifest["name"], manifest["version"]) == ("demo", "1.2.3")
    (row,) = cast("list[dict[str, Any]]", manifest["templates"])
    assert (row["id"], row["description"]) == ("count", "Count letters.")
    assert row["args"]["required"] == ["word"]
    assert row["args"]["additionalProperties"] is False
    assert row["args"]["properties"]["word"] == {"type": "string"}
    assert row["args"]["properties"]["times"] == {"type": "integer", "default": 2}
    assert row["returns"] == {"type": "integer"}
    assert row["input"]["properties"]["word"]["type"] == "string"
    json.dumps(manifest)


def test_a_template_is_described_by_its_docstring_and_declared_without_parentheses() -> None:
    demo = env()

    @demo.template(id="other")
    async def documented() -> Steps:
        """Do it.

        And more.
        """
        yield "p"
        yield 1.0

    @demo.template
    async def echo(word: str) -> AsyncGenerator[object, object]:
        answer = yield word
        yield float(answer == word)

    assert demo.templates["other"].description == "Do it."
    assert documented().id == "other"
    assert list(demo.templates) == ["other", "echo"]
    assert echo("a").slug == demo.task("echo", word="a").slug


def test_ids_are_unique_and_functions_are_async_generators() -> None:
    demo = env()

    async def twice() -> Steps:
        yield "p"
        yield 1.0

    demo.template()(twice)
    with pytest.raises(InputError, match="already has a template 'twice'"):
        demo.template()(twice)

    async def coroutine() -> float:
        return 1.0

    with pytest.raises(InputError, match="'coroutine' must be an async generator"):
        demo.template()(cast("Any", coroutine))
    with pytest.raises(InputError, match="must be an async function"):
        demo.initialize(lambda: None)
    with pytest.raises(InputError, match=r"no template 'twcie' \(did you mean 'twice'"):
        demo.task("twcie")


def test_a_parameter_that_a_row_cannot_name_is_refused() -> None:
    async def many(*words: str) -> Steps:
        yield words

    async def options(**options: str) -> Steps:
        yield options

    async def placed(word: str, /) -> Steps:
        yield word

    for function in (many, options, placed):
        with pytest.raises(InputError, match="which a task's args cannot name"):
            env().template()(cast("Any", function))


def test_default_tasks_are_those_without_required_arguments() -> None:
    demo, _ = typed()

    @demo.template()
    async def ready(x: int = 1) -> Steps:
        yield "p"
        yield 1.0

    assert [task.id for task in demo.default_tasks()] == ["ready"]
    assert [task.id for task in demo.taskset] == ["ready"]


async def answer_a(run: Run) -> None:
    run.trace.content = "a"


async def test_hooks_run_once_around_all_tasks_and_everyone_waits_for_them() -> None:
    demo, seen = env(), list[str]()

    async def initialize() -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # long enough for every other task to come by
        seen.append("up")

    async def shutdown(name: str) -> None:
        seen.append(f"down {name}")

    demo.initialize(initialize)
    demo.shutdown(named_hook("first", shutdown))
    demo.shutdown(named_hook("second", shutdown))

    @demo.template()
    async def looks() -> Steps:
        seen.append("task")
        yield "p"
        yield 1.0

    job = await looks().run(answer_a, group=3)
    assert job.reward == 1.0
    assert seen == ["up", "task", "task", "task"]
    await demo.stop()
    await demo.stop()
    assert seen[4:] == ["down second", "down first"]
    await looks().run(answer_a)
    assert seen[6:] == ["up", "task"]


def named_hook(name: str, hook: Any) -> Any:
    async def bound() -> None:
        await hook(name)

    return bound


async def test_a_hook_that_fails_is_the_runs_error_and_is_tried_again() -> None:
    demo, tries = env(), list[int]()

    @demo.initialize
    async def initialize() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("port in use")

    @demo.template()
    async def looks() -> Steps:
        yield "p"
        yield 1.0

    (failed,) = (await looks().run(answer_a)).runs
    assert (failed.reward, failed.prompt) == (None, None)
    assert "port in use" in str(failed.trace.error)
    assert (await looks().run(answer_a)).reward == 1.0
