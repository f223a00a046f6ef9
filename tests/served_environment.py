"""A served environment for tests, and a client that says what it likes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from assay.environment.channel.serve import ServedEnvironment, serve
from assay.environment.channel.sessions import ChannelLimits
from assay.scoring.json_safe import Json
from assay.types import Run
from tests.children import Children
from tests.command_line import COMMAND, environment

__all__ = [
    "ENV",
    "GRADE",
    "Raw",
    "Relay",
    "ServedProcess",
    "limited",
    "raw",
    "serve_process",
    "started",
    "three",
    "write_env",
]

ENV = '''
import asyncio
import os
import sys
import time
from pathlib import Path

from assay import Environment, EvaluationResult, combine
from assay.environment import Observation
from assay.errors import SandboxError, SkippedError
from assay.graders import SubScore, exact_match

env = Environment("demo", version="1.2.3")


@env.tool
def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


@env.tool
def lose() -> str:
    raise SandboxError("it is gone")


@env.template()
async def add(a: int = 1, b: int = 2):
    """Add two numbers."""
    answer = yield f"What is {a} + {b}?"
    value = exact_match(answer, str(a + b))
    yield await combine(SubScore("value", value, metadata={"seen": answer}))


@env.template(returns=int)
async def count(word: str):
    answer = yield [{"role": "user", "content": f"How many letters has {word}?"}]
    yield 1.0 if answer.content == len(word) else 0.0


@env.template(returns=dict)
async def typed():
    answer = yield [{"role": "user", "content": "An object?"}]
    yield 1.0 if answer.ok and answer.content == {"a": 1} else 0.0


@env.template(max_steps=4)
async def guess(secret: int = 7, seed: int = 0):
    said = yield f"Guess. ({seed})"
    while said != str(secret):
        said = yield Observation("higher", reward=-0.5, info={"secret": secret})
    yield Observation("right", reward=0.5, done=True)
    yield 1.0


@env.template(max_steps=3)
async def breaks():
    yield "Break."
    raise ValueError("in the midst")


@env.template()
async def once(marks: str):
    """Note each grading in a file."""
    answer = yield "Once?"
    with open(marks, "a") as file:
        file.write(answer + "\\n")
    await asyncio.sleep(0.05)
    yield 1.0


@env.template()
async def held(gate: str, marks: str = "/dev/null"):
    """Note each grading in a file, and wait for another one."""
    answer = yield "Wait."
    with open(marks, "a") as file:
        file.write("graded\\n")
    Path(gate + ".begun").touch()
    while not Path(gate).exists():
        await asyncio.sleep(0.005)
    yield 1.0 if answer == "yes" else 0.25


@env.template()
async def blocks(seconds: float):
    answer = yield "Block."
    time.sleep(seconds)
    yield 1.0


@env.template()
async def dies(unless: str = "/nowhere/at/all"):
    """End the process while grading, unless a file is there; then make it."""
    answer = yield "Die."
    if not Path(unless).exists():
        if Path(unless).parent.exists():
            Path(unless).touch()
        os._exit(9)
    yield 0.5


@env.template()
async def changes():
    answer = yield f"You are in {os.getpid()}."
    yield 1.0


@env.template()
async def raises(what: str = "boom"):
    answer = yield "Raise."
    raise ValueError(what)


@env.template()
async def exits():
    answer = yield "Exit."
    raise SystemExit(0)


@env.template()
async def large(size: int):
    answer = yield "Large?"
    yield EvaluationResult(reward=0.75, info={"evidence": "x" * size}, content="y" * size)


@env.template()
async def odd():
    answer = yield "Odd?"
    yield EvaluationResult(reward=0.5, info={"seen": float("nan")})


@env.template()
async def leaks():
    """Ask a child of this process for what it could get hold of."""
    answer = yield "Leak."
    code = "import os; print(sorted(os.listdir('/proc/self/fd')), 'SERVED_TOKEN' in os.environ)"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, close_fds=False
    )
    out, _ = await process.communicate()
    yield EvaluationResult(reward=1.0, content=out.decode())


@env.template()
async def shouts(size: int):
    yield "x" * size
    yield 1.0


@env.template()
async def fails():
    answer = yield "Fail."
    yield EvaluationResult(isError=True, content="the judge is down")


@env.template()
async def elsewhere():
    raise SkippedError("not on this machine")
    yield
'''


GRADE: dict[str, Json] = {
    "score": 0.0,
    "done": True,
    "content": None,
    "info": {},
    "isError": False,
    "subscores": None,
}
"""A grade as a frame has it: nothing was earned, and nothing is said of it."""


def write_env(folder: Path, source: str = ENV) -> Path:
    file = folder / "env.py"
    file.write_text(source, "utf-8")
    return file


@dataclass(frozen=True, slots=True)
class ServedProcess:
    """``assay serve env`` as a process."""

    port: int
    pid: int
    audit: Path

    @property
    def url(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    @property
    def websocket(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    def audited(self) -> list[dict[str, Json]]:
        lines = self.audit.read_text("utf-8").splitlines()
        return [cast("dict[str, Json]", json.loads(line)) for line in lines]


def serve_process(
    children: Children, folder: Path, *options: str, file: str = "env.py"
) -> ServedProcess:
    audit = folder / "audit.jsonl"
    words = [*COMMAND, "serve", "env", file, "--json", "--set", f"log={audit}", *options]
    with (folder / "served.log").open("w") as log:
        process = children.start(words, cwd=folder, env=environment(folder), stderr=log)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, (folder / "served.log").read_text()
    return ServedProcess(cast("int", json.loads(line)["port"]), process.pid, audit)


@asynccontextmanager
async def limited(folder: Path, **limits: Any) -> AsyncGenerator[ServedEnvironment]:
    """Serve it in this process, by one worker, within limits."""
    file = str(write_env(folder))
    async with serve(file, workers=1, limits=ChannelLimits(**limits)) as served:
        yield served


class Raw:
    """One TCP connection, on which any bytes can be said."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._number = 0

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def read(self) -> dict[str, Json] | None:
        """The next frame; None where the server hung up."""
        try:
            line = await asyncio.wait_for(self.reader.readline(), 30)
        except ConnectionError:
            return None
        return cast("dict[str, Json]", json.loads(line)) if line else None

    async def ask(self, method: str, **params: Json) -> dict[str, Json]:
        """Call, and read the next frame."""
        self._number += 1
        frame = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        await self.send(json.dumps(frame).encode() + b"\n")
        reply = await self.read()
        assert reply is not None, f"{method}: hung up"
        assert reply["id"] == self._number, reply
        return reply

    async def result(self, method: str, **params: Json) -> dict[str, Json]:
        reply = await self.ask(method, **params)
        assert "result" in reply, reply
        return cast("dict[str, Json]", reply["result"])

    async def error(self, method: str, **params: Json) -> tuple[int, str, str]:
        """The code, the type and the message of the error that a call gets."""
        return error_of(await self.ask(method, **params))

    def abort(self) -> None:
        self.writer.transport.abort()


def error_of(reply: dict[str, Json] | None) -> tuple[int, str, str]:
    assert reply is not None, "hung up"
    assert "error" in reply, reply
    wrong = cast("dict[str, Json]", reply["error"])
    data = cast("dict[str, Json]", wrong["data"])
    assert data["message"] == wrong["message"]
    assert isinstance(data["hint"], str)
    return cast("int", wrong["code"]), str(data["type"]), str(wrong["message"])


@asynccontextmanager
async def raw(port: int) -> AsyncGenerator[Raw]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26)
    try:
        yield Raw(reader, writer)
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)  # in which it is closed


@asynccontextmanager
async def started(port: int, task: str = "add", **args: Json) -> AsyncGenerator[Raw]:
    """A connection on which a task was started."""
    async with raw(port) as peer:
        await peer.result("tasks.start", id=task, args=args)
        yield peer


class Relay:
    """A TCP relay that hangs up when it is told to."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.connections = 0
        self.port = 0
        self._open: list[asyncio.StreamWriter] = []
        self._accepted: set[asyncio.Task[None]] = set()
        self.drop_after: bytes | None = None

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[Relay]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self.hang_up()
            await asyncio.wait(self._accepted)

    def hang_up(self) -> None:
        for writer in self._open:
            writer.transport.abort()
        self._open.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._accepted.add(cast("asyncio.Task[None]", asyncio.current_task()))
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._open += [writer, up_writer]
        try:
            await asyncio.gather(
                self._pump(reader, up_writer), self._pump(up_reader, writer, is_down=True)
            )
        except OSError:
            pass
        finally:
            writer.transport.abort()
            up_writer.transport.abort()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_down: bool = False
    ) -> None:
        while data := await reader.read(1 << 16):
            if is_down and self.drop_after is not None and self.drop_after in data:
                self.drop_after = None  # the reply is lost, and the connection with it
                self.hang_up()
                return
            writer.write(data)
            await writer.drain()


async def three(run: Run) -> None:
    """An agent that does `add` right."""
    run.trace.content = "3"
