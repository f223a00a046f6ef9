"""OpenEnv's own package at the other end: its clients are served here, and its server asked.

`make agents` installs it, into an environment of its own.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from assay.environment import openenv
from assay.types import Run
from tests.children import Children, printed
from tests.served_environment import serve_process, write_env

pytestmark = pytest.mark.real


def _variables(folder: Path) -> dict[str, str]:
    return {"HOME": str(folder), "LANG": "C.UTF-8", "HF_HUB_OFFLINE": "1"}


# The library of its web page, which no test opens: loading it is most of what a process costs, and
# it tells its makers that it was.
_NO_PAGE = """
import sys
from unittest.mock import MagicMock

sys.modules["gradio"] = MagicMock()
"""

# Its clients.

_CLIENT = """
import asyncio, json, sys

from openenv.core import GenericEnvClient, MCPToolClient

url, said = sys.argv[1], {}


async def refused(call):
    try:
        return await call
    except RuntimeError as error:
        return str(error)


def shown(result):
    return [result.observation.get("content"), result.reward, result.done]


async def generic():
    async with GenericEnvClient(base_url=url) as env:
        said["reset"] = shown(await env.reset(task="add", args={"a": 3}, episode_id="e", seed=1))
        said["answer"] = shown(await env.step({"answer": "5"}))
        said["again"] = await refused(env.step({"answer": "5"}))
        said["state"] = await env.state()
        said["unknown"] = await refused(env.reset(task="ad"))
        await env.reset(task="fails")
        failed = await env.step({"answer": "x"})
        said["fails"] = [failed.observation["error"]["message"], failed.reward, failed.done]
        await env.reset(task="guess")
        said["steps"] = [shown(await env.step({"action": text})) for text in "17"]
        other = await env.new_session()
        await other.reset(task="add")
        said["other"] = [(await env.state())["task"], (await other.state())["task"]]


async def tools():
    async with MCPToolClient(base_url=url) as env:
        tool, _ = await env.list_tools()
        said["tool"] = [tool.name, tool.description, tool.input_schema["required"]]
        await env.reset(task="add")
        said["call"] = await env.call_tool("double", number=21)
        said["wrong"] = await refused(env.call_tool("double", number="x"))
        said["count"] = (await env.state()).step_count


asyncio.run(generic())
asyncio.run(tools())
with GenericEnvClient(base_url=url).sync() as env:
    said["sync"] = [shown(env.reset(task="add")), shown(env.step({"action": "3"}))]
print(json.dumps(said))
"""


def test_its_clients_run_what_is_served_here(openenv_python: Path, tmp_path: Path) -> None:
    write_env(tmp_path)
    (tmp_path / "client.py").write_text(_NO_PAGE + _CLIENT)
    with Children() as children:
        served = serve_process(children, tmp_path, "--workers", "1", "--openenv")
        words = [openenv_python, "client.py", f"http://127.0.0.1:{served.port}"]
        said = json.loads(printed(words, cwd=tmp_path, env=_variables(tmp_path)))
        audited = served.audited()
    assert said.pop("wrong").startswith("Tool 'double' failed: error: number:")
    assert said.pop("unknown").startswith("Server error: unknown task: 'ad' (did you mean")
    assert said == {
        "reset": ["What is 3 + 2?", None, False],
        "answer": ["", 1.0, True],
        "again": "Server error: the episode is done (reset) (code: EXECUTION_ERROR)",
        "state": {"episode_id": "e", "step_count": 1, "task": "add", "max_steps": 1, "done": True},
        "fails": ["the judge is down", None, True],
        "steps": [["higher", -0.5, False], ["right", 1.0, True]],
        "other": ["guess", "add"],
        "tool": ["double", "Twice a number.", ["number"]],
        "call": 42,
        "count": 2,
        "sync": [["What is 1 + 2?", None, False], ["", 1.0, True]],
    }
    graded = [line["reward"] for line in audited if line["ended"] == "graded"]
    assert graded == [1.0, None, 1.0, 1.0]


# Its server.

_SERVER = """
import asyncio, socket, sys

import uvicorn
from openenv.core.env_server import Action, Environment, Observation, State, create_app


class Guess(Action):
    number: int


class Told(Observation):
    text: str


class Game(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self._state = State()

    def reset(self, seed=None, episode_id=None, secret=7, **kwargs):
        self.secret = secret
        self._state = State(episode_id=episode_id, step_count=0)
        return Told(text="Guess a number.")

    def step(self, action, **kwargs):
        self._state.step_count += 1
        if action.number == 13:
            raise RuntimeError("no such number")
        if action.number == self.secret:
            return Told(text="right", done=True, reward=1.0)
        if action.number == 0:
            return Told(text="what?", done=True, reward=float("nan"))
        return Told(text="higher" if action.number < self.secret else "lower", reward=-0.25)

    @property
    def state(self):
        return self._state


app = create_app(Game, Guess, Told, env_name="game", max_concurrent_envs=8)
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
asyncio.run(uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve([listener]))
"""


@pytest.fixture(scope="module")
def game(openenv_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    folder = tmp_path_factory.mktemp("game")
    (folder / "server.py").write_text(_NO_PAGE + _SERVER)
    with Children() as children, (folder / "server.log").open("w") as log:
        words = [openenv_python, "server.py"]
        process = children.start(words, cwd=folder, env=_variables(folder), stderr=log)
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        assert port, (folder / "server.log").read_text()
        yield f"http://127.0.0.1:{port}"


def _guesses(*numbers: int | str) -> Any:
    async def agent(run: Run) -> None:
        for number in numbers:
            text = json.dumps({"number": number}) if isinstance(number, int) else number
            if (await run.step(text)).done:
                return

    return agent


@pytest.mark.parametrize(
    ("guesses", "how", "reward"),
    [
        ((3, 9, 7), "sum", 0.5),
        ((3, "what?", '{"x": 1}', 7), "sum", 0.75),
        ((3, 13), "sum", None),
        ((0,), "last", None),  # NaN
    ],
)
async def test_its_server_is_an_environment(
    game: str, guesses: tuple[int | str, ...], how: Any, reward: float | None
) -> None:
    env = openenv.environment(game, reward=how)
    (run,) = (await env.task("episode", reset={"secret": 7}).run(_guesses(*guesses))).runs
    assert (run.reward, run.grade.is_error) == (reward, reward is None)
    assert run.prompt_text.startswith("Guess a number.\n\nEach action is a JSON object: {")
    if 13 in guesses:
        assert "step: no such number" in str(run.trace.error)


async def test_its_episodes_at_once_are_of_their_own(game: str) -> None:
    states: list[tuple[object, object]] = []
    env = openenv.environment(
        game, grade=lambda episode: states.append((episode.state["step_count"], episode.first)) or 1
    )
    job = await env.task("episode", reset={"secret": 5}).run(_guesses(1, 5), group=6)
    assert [run.reward for run in job.runs] == [1.0] * 6
    assert [count for count, _ in states] == [2] * 6
