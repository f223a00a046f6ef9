"""The client of a served environment: assay's own, or HUD's.

A session outlives its connection. When that breaks, it is made again and the session resumed within
`PATIENCE_SECONDS`; what was asked is asked once more, which the server takes for the same. Whatever
goes wrong is an error; nothing here makes a number of it.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from assay import errors
from assay.environment.channel.frames import (
    MOST_BYTES,
    UNAUTHORIZED,
    TcpWire,
    WebSocketWire,
    Wire,
    decode,
    encode,
    fault_of,
)
from assay.errors import ChannelError, InputError, SkippedError, nearest
from assay.frozen import frozen
from assay.scoring.graded import Grade
from assay.scoring.json_safe import Json, json_safe
from assay.scoring.results import EvaluationResult
from assay.tasks.task import Session, Task
from assay.types.run import Prompt
from assay.types.submission import Submission, Workspace

if TYPE_CHECKING:
    from aiohttp import ClientSession

__all__ = ["Address", "Binding", "ChannelClient", "RemoteWork", "TaskRow", "connect", "grade_of"]

PATIENCE_SECONDS = 60.0
"""How long a connection that broke is made again."""
_CONNECT_SECONDS = 10.0
_HEARTBEAT_SECONDS = 30.0
_REPLY_SECONDS = 20.0
_BYE_SECONDS = 2.0
_FRAME_SECONDS = 120.0
_NAPS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
_MOST_BREAKS = 8
_NATIVE = "assay"


@frozen
class Address:
    """Where an environment is served.

    Attributes:
        url: ``tcp://``, ``ws://`` or ``wss://``, host and port.
        token: The secret that its server wants; empty for none.

    Raises:
        InputError: For any other URL.
    """

    url: str
    token: str = ""

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            port = parts.port
        except ValueError as error:
            raise InputError(f"{self.url!r} is no URL: {error}") from error
        if parts.scheme not in ("tcp", "ws", "wss") or not parts.hostname:
            raise InputError(
                f"{self.url!r} is not where an environment is served",
                hint="tcp://HOST:PORT, ws://HOST:PORT or wss://HOST",
            )
        if parts.username is not None or parts.password is not None:
            raise InputError("a URL with a secret in it is written down", hint="give token=")
        if parts.scheme == "tcp" and port is None:
            raise InputError(f"{self.url!r} has no port", hint="tcp://HOST:PORT")

    def __repr__(self) -> str:
        return f"Address({self.url!r})"

    async def dial(self) -> tuple[Wire, ClientSession | None]:
        """Connect.

        Raises:
            OSError: If nobody answers.
            ChannelError: If the server wants another token.
        """
        parts = urlsplit(self.url)
        async with asyncio.timeout(_CONNECT_SECONDS):
            if parts.scheme == "tcp":
                opened = await asyncio.open_connection(parts.hostname, parts.port)
                return TcpWire(*opened), None
            return await self._dial_web()

    async def _dial_web(self) -> tuple[Wire, ClientSession]:
        import aiohttp

        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        session = aiohttp.ClientSession()
        try:
            opened = await session.ws_connect(
                self.url, headers=headers, max_msg_size=4 * MOST_BYTES, compress=0
            )
        except aiohttp.WSServerHandshakeError as error:
            await session.close()
            if error.status in (401, 403):
                raise ChannelError(
                    "the token is wrong" if self.token else "the server wants a token",
                    code=UNAUTHORIZED,
                    hint="connect(url, token=…)",
                ) from None
            raise OSError(f"{self.url} answers {error.status}, not a WebSocket") from error
        except aiohttp.ClientError as error:
            await session.close()
            raise OSError(str(error)) from error
        except BaseException:
            await session.close()
            raise
        return WebSocketWire(opened, _nothing), session  # closing that breaks it off


def _nothing() -> None:
    pass


class _BrokenError(Exception):
    """The connection is gone before the reply came."""


class _Link:
    """One connection: calls, and their replies."""

    def __init__(self, wire: Wire, session: ClientSession | None) -> None:
        self._wire = wire
        self._session = session
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[dict[str, Json]]] = {}
        self._listening = asyncio.create_task(self._listen())

    @property
    def is_broken(self) -> bool:
        return self._listening.done()

    @property
    def is_waiting(self) -> bool:
        return bool(self._asked)

    async def ask(self, method: str, params: Mapping[str, Json]) -> dict[str, Json]:
        """Call a method.

        Raises:
            ChannelError: If the server refuses, or says what is no reply.
        """
        if self.is_broken:
            raise _BrokenError
        number = next(self._numbers)
        answered = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            data = encode(
                {"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params)}
            )
            if len(data) > MOST_BYTES:
                raise ChannelError(
                    f"{method}: the frame has {len(data):,} bytes, and may have {MOST_BYTES:,}"
                )
            await self._wire.send(data)
            frame = await answered
        finally:
            self._asked.pop(number, None)
        if "error" in frame:
            raise _named(fault_of(frame["error"]))
        result = frame.get("result")
        if not isinstance(result, dict):
            raise ChannelError(f"{method}: the reply is no object")
        return cast("dict[str, Json]", result)

    async def close(self) -> None:
        self._listening.cancel()
        await asyncio.wait({self._listening})
        self._wire.close()
        if self._session is not None:
            await self._session.close()

    async def _listen(self) -> None:
        fault: Exception = _BrokenError()
        try:
            while (data := await self._wire.receive(4 * MOST_BYTES, _FRAME_SECONDS)) is not None:
                frame = decode(data)
                number = frame.get("id")
                if number is None and "error" in frame:
                    raise _named(fault_of(frame["error"]))
                answered = self._asked.get(number) if isinstance(number, int) else None
                if answered is None or isinstance(number, bool):
                    continue  # of a call that nobody waits for any more
                if not answered.done():
                    answered.set_result(frame)
        except ChannelError as error:
            fault = error
        finally:
            for answered in self._asked.values():
                if not answered.done():
                    answered.set_exception(fault)


def _named(fault: ChannelError) -> ChannelError:
    """What a task raised there, with its kind, as it would be shown here."""
    if fault.kind and not hasattr(errors, fault.kind):
        said = f"{fault.kind}: {fault.message}"
        return ChannelError(said, code=fault.code, kind=fault.kind, hint=fault.hint)
    return fault


class Channel:
    """A session with a served environment, over as many connections as it takes."""

    def __init__(self, address: Address, *, patience: float = PATIENCE_SECONDS) -> None:
        self.address = address
        self.hello: dict[str, Json] = {}
        self._patience = patience
        self._link: _Link | None = None
        self._linking = asyncio.Lock()
        self._beating: asyncio.Task[None] | None = None
        self._has_started = False
        self._is_closed = False

    @property
    def session_id(self) -> str:
        """The right to go on with the session."""
        return str(self.hello.get("session_id") or "")

    @property
    def is_native(self) -> bool:
        """Whether the server is one of ours."""
        return self.hello.get("form") == _NATIVE

    @classmethod
    @asynccontextmanager
    async def open(
        cls, address: Address, *, patience: float = PATIENCE_SECONDS
    ) -> AsyncGenerator[Channel]:
        """A session, ended with the context.

        Raises:
            ChannelError: If nobody answers, or the server refuses.
        """
        channel = cls(address, patience=patience)
        try:
            await channel._linked()
            channel._beating = asyncio.create_task(channel._beat())
            yield channel
        finally:
            await channel._close()

    async def call(self, method: str, params: Mapping[str, Json]) -> dict[str, Json]:
        """Call a method; again, where the connection breaks before the reply.

        Raises:
            ChannelError: If the server refuses, or cannot be reached any more.
        """
        self._has_started = self._has_started or method == "tasks.start"
        for _ in range(_MOST_BREAKS):
            link = await self._linked()
            try:
                return await link.ask(method, params)
            except _BrokenError:
                continue
        raise ChannelError(f"{self.address.url} broke off {method} {_MOST_BREAKS} times")

    async def _linked(self) -> _Link:
        """The connection, with the session in it; made again if it broke."""
        async with self._linking:
            if self._is_closed:
                raise ChannelError("this client is closed")
            if self._link is not None and not self._link.is_broken:
                return self._link
            if self._link is not None:
                await self._link.close()
                self._link = None
            loop = asyncio.get_running_loop()
            deadline = loop.time() + self._patience
            for nap in itertools.chain(_NAPS, itertools.repeat(_NAPS[-1])):
                try:
                    self._link = await self._enter()
                except (_BrokenError, OSError, TimeoutError) as error:
                    if loop.time() + nap >= deadline:
                        reason = str(error) or "it does not answer"
                        raise ChannelError(
                            f"cannot reach {self.address.url}: {reason}",
                            hint="is it served there? assay env serve FILE.py",
                        ) from error
                    await asyncio.sleep(nap)
                else:
                    return self._link
            raise AssertionError  # the naps have no end

    async def _enter(self) -> _Link:
        wire, session = await self.address.dial()
        link = _Link(wire, session)
        try:
            async with asyncio.timeout(_REPLY_SECONDS):
                self.hello = await self._hello(link)
        except BaseException:
            await link.close()
            raise
        return link

    async def _hello(self, link: _Link) -> dict[str, Json]:
        params: dict[str, Json] = {"form": _NATIVE}
        if self.address.token:
            params["token"] = self.address.token
        if self.session_id:
            params["session_id"] = self.session_id
        try:
            said = await link.ask("hello", params)
        except ChannelError as error:
            if not self.session_id or error.code == UNAUTHORIZED:
                raise
            if "live connection" in error.message:  # HUD's server has not seen it break yet
                raise _BrokenError from error
            if self._has_started:
                raise ChannelError(
                    f"the session is lost: {error.message}",
                    code=error.code,
                    kind="SessionLostError",
                    hint=error.hint,
                ) from error
            del params["session_id"]  # nothing was begun in it
            said = await link.ask("hello", params)
        if not isinstance(said.get("session_id"), str) or not isinstance(said.get("env"), dict):
            raise ChannelError("hello: the reply names no session or environment")
        return said

    async def _beat(self) -> None:
        """Notice a connection that is dead without having been closed."""
        while True:
            await asyncio.sleep(_HEARTBEAT_SECONDS)
            link = self._link
            if link is None or link.is_broken or (link.is_waiting and not self.is_native):
                continue  # HUD's server answers one call after the other
            with suppress(ChannelError, _BrokenError):
                try:
                    async with asyncio.timeout(_REPLY_SECONDS):
                        await self._hello(link)
                except TimeoutError:
                    await link.close()

    async def _close(self) -> None:
        self._is_closed = True
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.wait({self._beating})
        link, self._link = self._link, None
        if link is None:
            return
        if not link.is_broken:
            with suppress(ChannelError, _BrokenError, TimeoutError):
                async with asyncio.timeout(_BYE_SECONDS):
                    await link.ask("bye", {})
        await link.close()


@frozen
class Binding:
    """Something that the environment offers besides its tasks, such as a shell or MCP tools.

    Attributes:
        name: Its name.
        protocol: How to speak to it, such as ``mcp/2025-11-25``.
        url: Where.
        params: What else one has to know.
    """

    name: str
    protocol: str
    url: str
    params: Mapping[str, Json]


@frozen
class TaskRow:
    """A template that the environment serves.

    Attributes:
        id: Its name.
        description: What the task is.
        args: JSON schema of its arguments.
        input: JSON schema of its structured input; None if undeclared.
        returns: JSON schema of its answer; None for text.
    """

    id: str
    description: str
    args: Mapping[str, Json]
    input: Mapping[str, Json] | None = None
    returns: Mapping[str, Json] | None = None

    @classmethod
    def of(cls, row: Json) -> TaskRow:
        """Read a row of ``tasks.list``.

        Raises:
            ChannelError: For one without an id.
        """
        said = row if isinstance(row, dict) else {}
        name, args = said.get("id"), said.get("args")
        if not isinstance(name, str) or not name:
            raise ChannelError("tasks.list: a task has no id")
        return cls(
            name,
            str(said.get("description") or ""),
            args if isinstance(args, dict) else {},
            _schema(said.get("input")),
            _schema(said.get("returns")),
        )


def _schema(value: Json) -> Mapping[str, Json] | None:
    return value if isinstance(value, dict) else None


@frozen
class Manifest:
    """Who answers.

    Attributes:
        session_id: The right to go on with this session; keep it to yourself.
        name: The environment's name.
        version: Its version.
    """

    session_id: str
    name: str
    version: str


class ChannelClient:
    """A connected client; `connect` makes it.

    Attributes:
        url: Where the environment is served.
        manifest: Who answers.
        bindings: What it offers besides tasks.
        tasks: The templates that it serves.
    """

    def __init__(self, channel: Channel, rows: Mapping[str, Json]) -> None:
        self._channel = channel
        listed = rows.get("tasks")
        hello = channel.hello
        env = cast("dict[str, Json]", hello["env"])
        bound = hello.get("bindings")
        self.url = channel.address.url
        self.manifest = Manifest(
            channel.session_id, str(env.get("name") or ""), str(env.get("version") or "")
        )
        self.tasks = [TaskRow.of(row) for row in (listed if isinstance(listed, list) else [])]
        self.bindings = [
            Binding(
                str(one.get("name") or ""),
                str(one.get("protocol") or ""),
                str(one.get("url") or ""),
                cast("dict[str, Json]", one.get("params") or {}),
            )
            for one in (bound if isinstance(bound, list) else [])
            if isinstance(one, dict)
        ]

    def binding(self, name: str) -> Binding:
        """The binding of a name, a protocol, or a protocol without its version.

        Raises:
            InputError: If there is none, or several.
        """
        found = [
            one
            for one in self.bindings
            if name in (one.name, one.protocol, one.protocol.partition("/")[0])
        ]
        if len(found) == 1:
            return found[0]
        names = [one.name for one in found or self.bindings]
        what = "several bindings" if found else "no binding"
        raise InputError(f"{self.manifest.name!r} has {what} {name!r}", hint=nearest(name, names))

    def task(self, template_id: str, /, **args: object) -> Task:
        """A task whose work is there: every run of it has a session of its own.

        Raises:
            InputError: For an unknown template, or an argument that it does not take or misses.
        """
        given = {name: json_safe(value) for name, value in args.items()}
        self._check(template_id, given)
        work = RemoteWork(self._channel.address, template_id, given)
        return Task(id=template_id, env=self.manifest.name, args=given, work=work)

    def _check(self, template_id: str, args: Mapping[str, Json]) -> None:
        row = next((row for row in self.tasks if row.id == template_id), None)
        if row is None:
            hint = nearest(template_id, [row.id for row in self.tasks])
            raise InputError(f"{self.manifest.name!r} has no template {template_id!r}", hint=hint)
        properties, required = row.args.get("properties"), row.args.get("required")
        if not isinstance(properties, dict):
            return
        if unknown := [name for name in args if name not in properties]:
            raise InputError(
                f"template {template_id!r} takes no argument {unknown[0]!r}",
                hint=nearest(unknown[0], list(properties)),
            )
        needed = required if isinstance(required, list) else []
        if missing := [str(name) for name in needed if name not in args]:
            raise InputError(f"template {template_id!r} needs the argument {missing[0]!r}")


@asynccontextmanager
async def connect(
    url: str, *, token: str = "", patience: float = PATIENCE_SECONDS
) -> AsyncGenerator[ChannelClient]:
    """Connect to a served environment: ``assay env serve``'s, or HUD's.

    Args:
        url: ``tcp://HOST:PORT``, ``ws://HOST:PORT`` or ``wss://HOST``.
        token: The secret that its server wants.
        patience: For how many seconds a server is tried that does not answer.

    Raises:
        InputError: For another URL.
        ChannelError: If nobody answers, or the server refuses.
    """
    async with Channel.open(Address(url, token), patience=patience) as channel:
        yield ChannelClient(channel, await channel.call("tasks.list", {}))


@frozen
class RemoteWork:
    """A template of a served environment with its arguments: what a remote task begins.

    Attributes:
        address: Where.
        template: The template.
        args: Its arguments.
    """

    address: Address
    template: str
    args: Mapping[str, Json]

    @property
    def runtime(self) -> str:
        """Where its runs execute."""
        return self.address.url

    def open(self) -> AbstractAsyncContextManager[Session]:
        """Begin it in a session of its own."""
        return self._session()

    @asynccontextmanager
    async def _session(self) -> AsyncGenerator[Session]:
        async with Channel.open(self.address) as channel:
            yield await RemoteSession.begin(channel, self.template, self.args)


class RemoteSession:
    """A task that has begun elsewhere."""

    def __init__(self, channel: Channel, prompt: Prompt) -> None:
        self.prompt = prompt
        self.workspace: Workspace | None = None
        self.notes: dict[str, Json] = {}
        self._channel = channel

    @classmethod
    async def begin(
        cls, channel: Channel, template: str, args: Mapping[str, Json]
    ) -> RemoteSession:
        """Start a task.

        Raises:
            ChannelError: If it cannot be started.
            SkippedError: If it does not apply there.
        """
        params: dict[str, Json] = {"id": template, "args": dict(args)}
        if channel.is_native:
            params["key"] = secrets.token_hex(8)
        try:
            said = await channel.call("tasks.start", params)
        except ChannelError as error:
            if error.kind == "SkippedError":
                raise SkippedError(error.message, hint=error.hint) from error
            raise
        return cls(channel, _prompt_of(said, template))

    async def grade(self, submission: Submission) -> EvaluationResult:
        """Have the answer graded there.

        Raises:
            ChannelError: If it cannot be, or the grade is none.
        """
        frame = await self._channel.call("tasks.grade", {"answer": submission.answer})
        return grade_of(frame).result


def _prompt_of(frame: Mapping[str, Json], template: str) -> Prompt:
    prompt = frame.get("prompt")
    if prompt is None or isinstance(prompt, str):
        return prompt
    if isinstance(prompt, list) and all(isinstance(item, str | dict) for item in prompt):
        return prompt
    raise ChannelError(f"the prompt of {template!r} is neither text nor chat messages")


def grade_of(frame: Mapping[str, Json]) -> Grade:
    """Read a grade from elsewhere; what is not of its form is no grade.

    Raises:
        ChannelError: Naming what is wrong.
    """
    for name, kinds in _GRADE_FIELDS.items():
        if name in frame and not isinstance(frame[name], kinds):
            raise ChannelError(f"a grade's {name!r} is {type(frame[name]).__name__}")
    nodes = frame.get("subscores")
    if isinstance(nodes, list) and not all(isinstance(node, dict) for node in nodes):
        raise ChannelError("a grade's 'subscores' are not all objects")
    if "score" not in frame:
        raise ChannelError("a grade has no 'score'")
    try:
        return Grade.from_dict(frame)
    except errors.ScoreError as error:
        raise ChannelError(f"what came is no grade: {error.message}", hint=error.hint) from error


_GRADE_FIELDS: dict[str, tuple[type, ...]] = {
    "done": (bool,),
    "isError": (bool,),
    "content": (str, type(None)),
    "info": (dict, type(None)),
    "subscores": (list, type(None)),
}
