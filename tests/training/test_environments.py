"""Environments as TRL's trainer plays them; `tests/real/test_training.py` has the trainer."""

from __future__ import annotations

import asyncio
import inspect
import pickle
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any, Literal, cast, get_type_hints

import pytest

from assay.environment import Environment
from assay.errors import InputError
from assay.training.trl import EnvironmentFactory, environment_factory
from tests.children import Children, until
from tests.served_environment import serve_process

ENV = '''
import asyncio
from pathlib import Path
from typing import Literal

from assay import Environment
from assay.environment import Observation
from assay.errors import GraderError, SkippedError

env = Environment("bank")
account = env.state(dict[str, int])


@env.tool
def deposit(euros: int, kind: Literal["cash", "cheque"] = "cash", notes: list[str] = []) -> str:
    """Put money into the account.

    Args:
        euros: How many.

    Raises:
        ValueError: For none.
    """
    if euros <= 0:
        raise ValueError("it must be more than 0")
    if euros == 13:
        raise GraderError("the bank is down")
    account()["balance"] = account().get("balance", 0) + euros
    return f"The balance is {account()['balance']}."


@env.template()
async def save(goal: int = 100, breaks: str = "", closed: str = ""):
    if breaks == "begin":
        raise RuntimeError("no account")
    if breaks == "skip":
        raise SkippedError("it does not apply")
    try:
        yield f"Save {goal} euros."
        if breaks == "grade":
            raise RuntimeError("no balance")
        if breaks == "hang":
            await asyncio.Event().wait()
        yield min(1.0, account().get("balance", 0) / goal)
    finally:
        if closed:
            Path(closed).touch()


@env.template()
async def capital(country: str, city: str = "Paris"):
    answer = yield f"What is the capital of {country}?"
    yield 1.0 if answer == city else 0.0


@env.template(max_steps=2)
async def door(word: str = "please"):
    said = yield "A door."
    if said != word:
        said = yield Observation("It stays shut.")
    yield 1.0 if said == word else 0.0
'''


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Generator[dict[str, str]]:
    """One environment: its file, and where it is served."""
    folder = tmp_path_factory.mktemp("bank")
    file = folder / "env.py"
    file.write_text(ENV)
    with Children() as children:
        served = serve_process(children, folder)
        yield {"file": str(file), "url": f"tcp://127.0.0.1:{served.port}"}


@pytest.fixture(params=["file", "url"])
def place(request: pytest.FixtureRequest, places: dict[str, str]) -> str:
    return places[request.param]


def _graded(world: EnvironmentFactory, rollouts: list[Any], said: str = "Done.") -> Any:
    completions = [[{"role": "assistant", "content": said}]] * len(rollouts)
    return asyncio.run(world.reward(completions=completions, environments=rollouts))


def test_a_rollout_has_the_tools_and_the_reward_of_its_own_session(place: str) -> None:
    with environment_factory(place, "save") as world:
        rollouts: list[Any] = [world(), world(), world()]
        assert rollouts[0].reset(goal=10) == "Save 10 euros."
        asked = [{"role": "user", "content": "You are in a bank."}]
        assert rollouts[1].reset(prompt=asked, goal=20, closed=None) == "\n\nSave 20 euros."
        assert rollouts[2].reset(goal=20, prompt=[{"role": "user", "content": ""}])
        assert asyncio.run(rollouts[0].deposit(euros=5)) == "The balance is 5."
        assert asyncio.run(rollouts[1].deposit(euros=5, kind="cheque")) == "The balance is 5."
        with pytest.raises(Exception, match=r"^ValueError: it must be more than 0"):
            asyncio.run(rollouts[2].deposit(euros=0))
        with pytest.raises(Exception, match="euros"):
            asyncio.run(rollouts[2].deposit(cents=1))
        assert _graded(world, rollouts) == [0.5, 0.25, 0.0]
        assert rollouts[0].reset(goal=10) == "Save 10 euros."
        assert _graded(world, rollouts[:1]) == [0.0]  # nothing is left of the last one


def test_a_tool_is_a_method_with_a_signature_and_a_docstring(place: str) -> None:
    with environment_factory(place, "save") as world:
        rollout: Any = world()
        kind = cast("type[object]", type(rollout))
        methods = inspect.getmembers(kind, predicate=inspect.isfunction)
        shown = [name for name, _ in methods if not name.startswith("_")]
        assert shown == ["deposit", "reset"]
        parameters = inspect.signature(rollout.deposit).parameters
        assert [*parameters] == ["euros", "kind", "notes"]
        assert parameters["euros"].default is inspect.Parameter.empty
        assert parameters["kind"].default == "cash"
        types = {"euros": int, "kind": Literal["cash", "cheque"], "notes": list[str]}
        assert get_type_hints(rollout.deposit) == types | {"return": str}
        assert inspect.getdoc(rollout.deposit) == (
            "Put money into the account.\n\nArgs:\n"
            "    euros: How many.\n    kind: kind\n    notes: notes"
        )


@pytest.mark.parametrize("breaks", ["begin", "grade", "skip"])
def test_attack_a_fault_is_no_reward_and_its_siblings_have_theirs(place: str, breaks: str) -> None:
    logged: dict[str, Any] = {}
    with environment_factory(place, "save", name="bank") as world:
        rollouts: list[Any] = [world(), world()]
        rollouts[0].reset(goal=10, breaks=breaks)
        rollouts[1].reset(goal=10)
        for rollout in rollouts[breaks == "grade" :]:
            if rollout.episode.fault is None:
                asyncio.run(rollout.deposit(euros=10))
        said = [[{"role": "assistant", "content": "Done."}]] * 2
        reward = world.reward(
            completions=said,
            environments=rollouts,
            log_extra=logged.__setitem__,
            log_metric=logged.__setitem__,
        )
        assert asyncio.run(reward) == [None, 1.0]
    rate = "skipped_rate" if breaks == "skip" else "error_rate"
    assert logged[f"bank/{rate}"] == 0.5
    if breaks != "skip":
        assert "RuntimeError: no" in logged["bank/error"][0]


def test_attack_a_tool_that_fails_by_our_fault_costs_the_reward_not_the_model(place: str) -> None:
    with environment_factory(place, "save") as world:
        rollout: Any = world()
        rollout.reset(goal=10)
        for euros in (13, 10):
            with pytest.raises(Exception, match=r"the bank is down|cannot be called"):
                asyncio.run(rollout.deposit(euros=euros))
        assert _graded(world, [rollout]) == [None]


@pytest.mark.slow
def test_what_hangs_has_no_reward_and_holds_nobody_up(place: str) -> None:
    with environment_factory(place, "save", deadline=3) as world:
        rollouts: list[Any] = [world(), world()]
        rollouts[0].reset(goal=10, breaks="hang")
        rollouts[1].reset(goal=10)
        assert _graded(world, rollouts) == [None, 0.0]
        assert "longer than its deadline of 3 seconds" in str(rollouts[0].episode.fault)


def test_the_last_message_is_the_answer_and_a_tools_words_are_none(place: str) -> None:
    with environment_factory(place, "capital") as world:
        rollouts: list[Any] = [world() for _ in range(4)]
        for rollout in rollouts:
            rollout.reset(country="France", city=None)
        model = {"role": "assistant", "content": "Paris"}
        calls = {"role": "assistant", "content": "", "tool_calls": [{"name": "deposit"}]}
        completions = [[model], [{"role": "tool", "content": "Paris"}], [calls], []]
        reward = world.reward(completions=completions, environments=rollouts)
        assert asyncio.run(reward) == [1.0, 0.0, 0.0, 0.0]


def test_the_answer_may_be_handed_in_and_the_environment_own_the_reward(place: str) -> None:
    """Also in another process that plays, for which the factory is pickled."""
    with environment_factory(place, "capital", submit=True, name="mine") as world:
        copy = pickle.loads(pickle.dumps(world))
        rollout: Any = world()
        rollout.reset(country="France")
        assert asyncio.run(rollout.get_reward()) == 0.0
    with copy:
        rollout = copy()
        rollout.reset(country="France")
        asyncio.run(rollout.submit(answer="Lyon"))
        asyncio.run(rollout.submit(answer="Paris"))
        assert (asyncio.run(rollout.get_reward()), type(rollout).__name__) == (1.0, "mine")
        rollout.reset(country="France")
        assert asyncio.run(rollout.get_reward()) == 0.0


def test_a_task_of_several_steps_is_acted_in(place: str) -> None:
    with environment_factory(place, "door") as world:
        rollouts: list[Any] = [world() for _ in range(3)]
        for rollout in rollouts:
            assert rollout.reset() == "A door."
        assert asyncio.run(rollouts[0].act(action="open")) == "It stays shut."
        assert "takes no more actions" in asyncio.run(rollouts[0].act(action="please"))
        with pytest.raises(Exception, match="takes no more actions"):
            asyncio.run(rollouts[0].act(action="please"))
        asyncio.run(rollouts[1].act(action="open"))
        # Words after an action are none; whoever took none has acted with them.
        assert _graded(world, rollouts, "please") == [1.0, 0.0, 1.0]


def test_arguments_and_places_that_are_wrong_are_said_at_once(places: dict[str, str]) -> None:
    file, url = places["file"], places["url"]
    for place in (file, url):
        with pytest.raises(InputError, match="did you mean 'save'"):
            environment_factory(place, "saave")
        with pytest.raises(InputError, match=r"name one: .*capital"):
            environment_factory(place)
        with (
            environment_factory(place, "capital") as world,
            pytest.raises(InputError, match="country"),
        ):
            world().reset(city="Paris")
    with pytest.raises(InputError, match="no file"):
        environment_factory("nowhere.py")
    with pytest.raises(InputError, match="deadline is 0"):
        environment_factory(file, "save", deadline=0)


def test_two_environments_are_rewarded_each_by_its_own(places: dict[str, str]) -> None:
    with (
        environment_factory(places["file"], "save") as saving,
        environment_factory(places["url"], "capital") as capitals,
    ):
        rollouts: list[Any] = [saving(), capitals()]
        rollouts[0].reset(goal=10)
        rollouts[1].reset(country="France")
        assert _graded(saving, rollouts, "Paris") == [0.0, None]
        assert _graded(capitals, rollouts, "Paris") == [None, 1.0]


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["raise SystemExit(3)", "1 / 0", "os.kill(os.getpid(), 2)"])
def test_sessions_end_when_training_crashes(place: str, tmp_path: Path, ends: str) -> None:
    closed = tmp_path / "closed"
    script = f"""if True:
        import os
        from assay.training.trl import environment_factory
        rollout = environment_factory({place!r}, 'save')()
        rollout.reset(closed={str(closed)!r})
        {ends}
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode != 0
    until(closed.exists)


def test_a_tool_that_trl_could_not_have_is_refused() -> None:
    env = Environment("games")

    @env.template()
    async def game() -> AsyncGenerator[object, str]:
        yield "Play."
        yield 1.0

    @env.tool
    def reset() -> str:
        """Start again."""
        return ""

    assert reset() == ""
    with pytest.raises(InputError, match="cannot have a tool called 'reset'"):
        environment_factory(env)


@pytest.mark.sandbox
def test_work_in_a_workspace_has_the_tools_over_it() -> None:
    env = Environment("work")
    project = env.workspace()

    @env.template(workspace=project)
    async def write(text: str = "hello") -> AsyncGenerator[object, str]:
        yield "Write a file `found`."
        yield 1.0 if (project.read("found") or "").strip() == text else 0.0

    with environment_factory(env, "write") as world:
        rollout: Any = world()
        rollout.reset()
        asyncio.run(rollout.bash(command="echo hello > found"))
        assert _graded(world, [rollout]) == [1.0]
