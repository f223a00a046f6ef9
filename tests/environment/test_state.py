"""What sessions have of their own, and what they share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pydantic
import pytest

from assay.environment import Environment
from assay.errors import InputError
from assay.tasks import Taskset
from assay.types import Run
from tests.each import each

Steps = AsyncGenerator[Any, Any]


@dataclass
class Cart:
    items: list[str] = field(default_factory=list[str])


async def test_sessions_at_once_have_states_of_their_own() -> None:
    env = Environment()
    cart = env.state(Cart)
    all_here = asyncio.Barrier(3)

    def add(item: str) -> None:
        cart().items.append(item)

    @env.template()
    async def shop(wish: str) -> Steps:
        add("bag")
        answer = yield wish
        await all_here.wait()
        add(str(answer))
        yield float(cart().items == ["bag", wish])

    job = await Taskset("t", [shop(wish) for wish in ("tea", "milk", "rice")]).run(answer)
    assert [run.reward for run in job] == [1.0, 1.0, 1.0]
    with pytest.raises(InputError, match="state 'Cart' is a session's, and none is at work here"):
        cart()


async def test_a_session_within_a_session_has_its_own() -> None:
    env = Environment()
    seen = env.state(list[str])

    async def silent(_: Run) -> None: ...

    @env.template()
    async def inner() -> Steps:
        seen().append("inner")
        yield "p"
        yield float(seen() == ["inner"])

    @env.template()
    async def outer() -> Steps:
        seen().append("outer")
        yield "p"
        job = await inner().run(silent)
        yield job.reward if seen() == ["outer"] else 0.0

    assert (await outer().run(silent)).reward == 1.0


def resourceful(seen: list[str], *, fails: int = 0) -> Any:
    """An environment with two resources, of which the second fails so many times."""
    env = Environment()
    tries = [fails]

    @env.initialize
    async def initialize() -> None:
        seen.append("hook")

    @env.shutdown
    async def shutdown() -> None:
        seen.append("unhook")

    @env.resource
    async def first() -> AsyncGenerator[str, None]:
        seen.append("first")
        task = asyncio.current_task()
        async with asyncio.TaskGroup():
            yield "one"
        assert asyncio.current_task() is task
        seen.append("first closed")

    @env.resource
    async def second() -> AsyncGenerator[str, None]:
        if tries[0]:
            tries[0] -= 1
            raise OSError("no port")
        seen.append(f"second after {first()}")
        await asyncio.sleep(0)
        try:
            yield "two"
        finally:
            seen.append("second closed")

    @env.template()
    async def looks() -> Steps:
        yield first() + second()
        yield 1.0

    return env, looks, second


async def answer(run: Run) -> None:
    run.trace.content = run.prompt_text


async def test_a_resource_is_made_once_for_all_and_closed_when_the_environment_stops() -> None:
    seen: list[str] = []
    env, looks, second = resourceful(seen)
    async with env:
        job = await looks().run(answer, group=3)
        assert second() == "two"
    assert [run.trace.content for run in job] == ["onetwo"] * 3
    made = ["hook", "first", "second after one"]
    closed = ["second closed", "first closed", "unhook"]
    assert seen == [*made, *closed]
    await env.stop()
    with pytest.raises(InputError, match="resource 'second' is not started"):
        second()
    async with env:
        assert second() == "two"
    assert seen == [*made, *closed, *made, *closed]


async def test_a_resource_that_fails_is_an_error_of_the_environment_and_tried_again() -> None:
    seen: list[str] = []
    env, looks, _ = resourceful(seen, fails=1)
    async with env.__class__("no use of it"):
        job = await looks().run(answer, max_concurrent=1, group=2)
    failed, fine = job.runs
    assert (failed.reward, failed.prompt) == (None, None)
    assert "no port" in str(failed.trace.error)
    assert fine.reward == 1.0
    assert seen == ["hook", "first", "second after one"]
    await env.stop()


def test_a_resource_belongs_to_its_event_loop_and_is_closed_with_it() -> None:
    seen: list[str] = []
    _, looks, _ = resourceful(seen)
    for _ in range(2):  # in each of which two begin at once
        assert asyncio.run(looks().run(answer, group=2)).reward == 1.0
    assert seen.count("hook") == 1
    assert seen.count("second after one") == seen.count("second closed") == 2


async def test_who_gives_up_waiting_does_not_end_what_others_wait_for() -> None:
    env, go, made = Environment(), asyncio.Event(), list[int]()
    began = asyncio.Event()

    @env.resource
    async def slow() -> AsyncGenerator[int, None]:
        made.append(1)
        began.set()
        await go.wait()
        yield 7

    hasty = asyncio.create_task(env.start())
    patient = asyncio.create_task(env.start())
    await began.wait()
    hasty.cancel()
    go.set()
    await patient
    assert (slow(), made) == (7, [1])
    await env.stop()


async def test_a_tool_in_a_thread_reaches_state_and_resource() -> None:
    env = Environment()
    cart = env.state(Cart)

    @env.resource
    async def price() -> AsyncGenerator[int, None]:
        yield 3

    def buy() -> int:
        cart().items.append("tea")
        return price()

    @env.template()
    async def shop() -> Steps:
        yield "p"
        paid = await asyncio.to_thread(buy)
        yield float((paid, cart().items) == (3, ["tea"]))

    async with env:
        assert (await shop().run(answer)).reward == 1.0


async def coroutine() -> None: ...


def sized(size: int) -> list[int]:
    return [size]


async def twice() -> AsyncGenerator[int, None]:
    yield 1
    yield 2


async def never() -> AsyncGenerator[int, None]:
    return
    yield


async def test_what_cannot_be_declared_is_refused() -> None:
    env = Environment()
    with pytest.raises(InputError, match="state 'coroutine' must be made by a plain function"):
        env.state(coroutine)
    with pytest.raises(InputError, match="state 'sized' must take no arguments, and needs 'size'"):
        env.state(cast("Any", sized))
    with pytest.raises(InputError, match="resource 'coroutine' must be an async generator"):
        env.resource(cast("Any", coroutine))
    assert env.state(dict)
    for function, why in ((twice, "resource 'twice' yielded twice"), (never, "without yielding")):
        env = Environment()
        env.resource(function)
        with pytest.raises(Exception, match=why):
            async with env:
                pass


class Room(pydantic.BaseModel):
    todo: list[str]


_LOCK = asyncio.Lock()


def _nested(rooms: Any) -> list[str]:
    assert rooms["hall"][1] is _LOCK  # what is no data is what was given
    return rooms["hall"][0]


CHORES: list[tuple[object, list[object], Callable[[Any], list[str]]]] = [
    (list[str], [["sweep"]], lambda held: held),
    (list[str], [], lambda held: held),  # its default, as authors write it
    (dict[str, tuple[list[str], object]], [{"hall": (["sweep"], _LOCK)}], _nested),
    (Room, [Room(todo=["sweep"])], lambda held: held.todo),
    (Cart, [Cart(["sweep"])], lambda held: held.items),
]


@each("kind, given, chores", CHORES)
async def test_attack_what_one_session_did_is_not_done_in_the_next(
    kind: object, given: list[object], chores: Callable[[Any], list[str]]
) -> None:
    """What one took off the list of its arguments was done when its repeat began."""

    async def play(held: Any = ["sweep"]) -> Steps:  # noqa: B006 - what authors write
        yield "p"
        was_done = not chores(held)
        chores(held).clear()
        yield float(was_done)

    play.__annotations__["held"] = kind
    job = await Environment().template(play)(*given).run(answer, group=2)
    assert [run.reward for run in job.runs] == [0.0, 0.0]
