"""A server that replies what a test wrote down, byte for byte; for what no honest model sends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from aiohttp import web

from assay.conversation.messages import Message, Request
from assay.conversation.turns import Conversation
from assay.errors import ModelError
from assay.models import ModelClient, ModelSettings
from assay.models.asking import Check
from assay.models.pace import Timing
from assay.scoring.json_safe import Json

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "verdict": {"type": "string", "enum": ["MET", "UNMET", "NA"]},
    },
    "required": ["reasoning", "verdict"],
    "additionalProperties": False,
}
MET: dict[str, Json] = {"reasoning": "because", "verdict": "MET"}


def met(asked: object) -> Json:
    """For `FakeJudge`: always the same verdict."""
    del asked
    return MET


def until_killed(first: object) -> tuple[Callable[[Conversation], Awaitable[object]], Event]:
    """For `FakeModel`: a reply that calls a tool; whoever tells what came of it waits to be killed.

    The event says that somebody waits.
    """
    told = Event()

    async def answer(conversation: Conversation) -> object:
        if any(turn.speaker == "tool" for turn in conversation.turns):
            told.set()
            await asyncio.sleep(60)
        return first

    return answer, told


def question(model: str, **changes: Any) -> Request:
    """A request for a verdict."""
    values: dict[str, Any] = {
        "messages": (Message("system", "You judge."), Message("user", "Is it so?")),
        "schema": SCHEMA,
        "timeout_seconds": 20.0,
    }
    return Request(model=model, **(values | changes))


class FakeTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.at = 1_000.0
        self.slept: list[float] = []

    @property
    def timing(self) -> Timing:
        """For a client; chance always gives the most."""
        return Timing(
            sleep=self.sleep,
            uniform=lambda low, high: high,
            clock=lambda: self.at,
            now=lambda: 1_700_000_000.0 + self.at,
        )

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds
        await asyncio.sleep(0)


def client(time: FakeTime | None = None, **settings: Any) -> ModelClient:
    """A client that knows nothing of the environment."""
    return ModelClient(ModelSettings(**settings), timing=time.timing if time else None)


def priced(directory: Path, model: str, dollars: float) -> str:
    """A file of prices with one row: so many dollars for a million tokens, read or written."""
    file = directory / "prices.json"
    row = {"model": model, "input": dollars, "output": dollars}
    file.write_text(json.dumps({"prices": [row]}))
    return str(file)


async def failing(asked: ModelClient, request: Request, check: Check | None = None) -> ModelError:
    """The error that a request ends with."""
    with pytest.raises(ModelError) as failure:
        await asked.ask(request, check)
    return failure.value


@dataclass
class Raw:
    """A reply, as it is sent."""

    body: bytes | str | dict[str, Any] = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    content_type: str = "application/json"
    chunks: int = 0
    """Sent so often, without saying how long it is."""


def said(content: str | None, **message: Any) -> Raw:
    """A chat completion."""
    finish = message.pop("finish_reason", "stop")
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    choice = {"index": 0, "finish_reason": finish, "message": {"content": content, **message}}
    return Raw({"model": "served", "choices": [choice], "usage": usage})


def verdict(**changes: str) -> Raw:
    """A chat completion with a verdict."""
    return said(json.dumps({**MET, **changes}))


def error(status: int, message: str, *, headers: dict[str, str] | None = None, **more: Any) -> Raw:
    """An error in OpenAI's form."""
    return Raw({"error": {"message": message, **more}}, status, headers or {})


@dataclass
class Seen:
    """A request, as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


Script = Sequence[Raw] | Callable[[Seen], Raw]


class Scripted:
    """A server that replies from a script; its last line is said for ever."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.seen: list[Seen] = []
        self.port = 0
        self.hold: Callable[[], Awaitable[object]] | None = None
        """Waited for before each reply."""

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def model(self) -> str:
        return f"{self.root}/v1#m"

    @property
    def anthropic_model(self) -> str:
        return f"anthropic+{self.root}#m"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        seen = Seen(request.path, dict(request.headers), json.loads(await request.read()))
        self.seen.append(seen)
        if self.hold is not None:
            await self.hold()
        if callable(self.script):
            raw = self.script(seen)
        else:
            raw = self.script[min(len(self.seen), len(self.script)) - 1]
        content = json.dumps(raw.body) if isinstance(raw.body, dict) else raw.body
        data = content.encode() if isinstance(content, str) else content
        headers = {"Content-Type": raw.content_type, **raw.headers}
        if not raw.chunks:
            return web.Response(body=data, status=raw.status, headers=headers)
        response = web.StreamResponse(status=raw.status, headers=headers)
        await response.prepare(request)
        try:
            for _ in range(raw.chunks):
                await response.write(data)
        except ConnectionError:  # the client has heard enough
            pass
        return response


@asynccontextmanager
async def scripted(script: Script) -> AsyncGenerator[Scripted]:
    """Serve a script on a real socket."""
    server = Scripted(script)
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()
