"""The client of a served environment: assay's own, or HUD's."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import cast

from assay.environment.channel.link import PATIENCE_SECONDS, Address, Channel, Channels
from assay.environment.channel.remote import RemoteSession, RemoteWork
from assay.errors import ChannelError, InputError, nearest, reason_of
from assay.frozen import frozen
from assay.scoring.graded import Grade
from assay.scoring.json_safe import Json, json_safe
from assay.tasks.task import Task
from assay.types.run import Run
from assay.types.submission import Submission
from assay.types.trace import PROMPT, Step, TaskCall


@frozen
class Binding:
    """Something that the environment offers besides its tasks, such as a shell or MCP tools."""

    name: str
    protocol: str
    url: str
    # What else one has to know.
    params: Mapping[str, Json]


@frozen
class TaskRow:
    """A template that the environment serves."""

    id: str
    description: str
    args: Mapping[str, Json]
    input: Mapping[str, Json] | None = None
    returns: Mapping[str, Json] | None = None
    max_steps: int = 1
    workspace: bool = False

    @property
    def needed(self) -> list[str]:
        """Arguments without a default."""
        required = self.args.get("required")
        return [str(name) for name in required] if isinstance(required, list) else []

    @classmethod
    def of(cls, row: Json) -> TaskRow:
        """Read a row of ``tasks.list``."""
        said = row if isinstance(row, dict) else {}
        name, args, most = said.get("id"), said.get("args"), said.get("max_steps")
        if not isinstance(name, str) or not name:
            raise ChannelError("tasks.list: a task has no id")
        return cls(
            name,
            str(said.get("description") or ""),
            args if isinstance(args, dict) else {},
            _schema(said.get("input")),
            _schema(said.get("returns")),
            most if isinstance(most, int) else 1,
            said.get("workspace") is True,
        )


def _schema(value: Json) -> Mapping[str, Json] | None:
    return value if isinstance(value, dict) else None


@frozen
class Manifest:
    """Who answers."""

    session_id: str
    name: str
    version: str

    def __repr__(self) -> str:
        return f"Manifest(name={self.name!r}, version={self.version!r})"


class ChannelClient:
    """A connected client; `connect` makes it."""

    def __init__(self, channel: Channel, rows: Mapping[str, Json], channels: Channels) -> None:
        self._channel = channel
        self._channels = channels
        self._current: RemoteSession | None = None
        listed = rows.get("tasks")
        hello = channel.hello
        env = cast("dict[str, Json]", hello["env"])
        bound = hello.get("bindings")
        self.url = channel.address.url
        self.manifest = Manifest(
            channel.session_id, str(env.get("name") or ""), str(env.get("version") or "")
        )
        tools = rows.get("tools")
        self.tools = (
            [one for one in tools if isinstance(one, dict)] if isinstance(tools, list) else []
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

    @property
    def name(self) -> str:
        """The environment's name."""
        return self.manifest.name

    def binding(self, name: str) -> Binding:
        """The binding of a name, a protocol, or a protocol without its version."""
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
        """A task whose work is there; its runs share no session with this client."""
        given = {name: json_safe(value) for name, value in args.items()}
        self._check(template_id, given)
        channel = self._channel
        work = RemoteWork(
            channel.address,
            template_id,
            given,
            self.url,
            patience=channel.patience,
            channels=self._channels,
        )
        return Task(id=template_id, env=self.manifest.name, args=given, work=work)

    def default_tasks(self) -> list[Task]:
        """A task of every template that needs no arguments."""
        return [self.task(row.id) for row in self.tasks if not row.needed]

    def run(self, template_id: str, /, **args: object) -> Run:
        """A run to be driven by hand: ``async with client.run("add", a=1) as run``.

        Entering it starts the task, in this client's session; leaving it has ``run.trace.content``
        graded.
        """
        task = self.task(template_id, **args)
        return Run(client=self, task_id=task.id, slug=task.slug, args=task.args)

    async def begin(self, run: Run) -> None:
        """Start a run's task; ``async with run`` does."""
        if self._current is not None:
            raise InputError(
                "a run of this client is in progress",
                hint="end it first, or use client.task(…).run(agent): each run has its session",
            )
        session = await RemoteSession.begin(self._channel, run.task_id, run.args)
        self._current = session
        run.prompt, run.stepping, run.runtime = session.prompt, session, self.url
        run.tools = session.tools
        run.trace_id = run.trace.trace_id = secrets.token_hex(16)
        call = TaskCall(phase="setup", name=run.task_id, arguments=run.args)
        run.record(Step(source="task", task_call=call))
        messages = tuple[Json, ...](
            {"role": message.role, "content": message.content} for message in run.prompt_messages
        )
        run.record(Step(source="user", messages=messages, extra={PROMPT: True}))

    async def end(self, run: Run) -> None:
        """Have a run's answer graded; ``async with run`` does."""
        session, self._current = self._current, None
        run.stepping, run.tools = None, {}
        if session is None:
            raise InputError("the run was not begun")
        try:
            result = await session.grade(Submission(answer=run.trace.content))
        except BaseException as error:
            run.grade = Grade.ungraded(reason_of(error))
            run.trace.status = "error"
            raise
        run.grade = Grade.from_result(result)
        run.trace.status = run.trace.status or "completed"
        call = TaskCall(phase="evaluate", name=run.task_id, result=dict(run.grade.raw))
        run.record(Step(source="task", task_call=call))

    async def cancel(self, run: Run) -> None:
        """End a run's task without a grade; ``async with run`` does where the work raises."""
        self._current = run.stepping = None
        run.tools = {}
        with suppress(ChannelError):
            await self._channel.call("tasks.cancel", {})

    def _check(self, template_id: str, args: Mapping[str, Json]) -> None:
        row = next((row for row in self.tasks if row.id == template_id), None)
        if row is None:
            hint = nearest(template_id, [row.id for row in self.tasks])
            raise InputError(f"{self.manifest.name!r} has no template {template_id!r}", hint=hint)
        properties = row.args.get("properties")
        if not isinstance(properties, dict):
            return
        if unknown := [name for name in args if name not in properties]:
            raise InputError(
                f"template {template_id!r} takes no argument {unknown[0]!r}",
                hint=nearest(unknown[0], list(properties)),
            )
        if missing := [name for name in row.needed if name not in args]:
            raise InputError(f"template {template_id!r} needs the argument {missing[0]!r}")


@asynccontextmanager
async def connect(
    url: str, *, token: str = "", patience: float = PATIENCE_SECONDS
) -> AsyncGenerator[ChannelClient]:
    """Connect to a served environment: ``assay serve env``'s, or HUD's.

    Args:
        url: ``tcp://HOST:PORT``, ``ws://HOST:PORT`` or ``wss://HOST``.
        token: The secret that its server wants.
        patience: For how many seconds a server is tried that does not answer any more; one that
            has never answered is tried for 5 at most.

    Raises:
        InputError: For another URL.
        ChannelError: If nobody answers, or the server refuses.
    """
    address = Address(url, token)
    async with (
        Channel.open(address, patience=patience) as channel,
        Channels(address, patience=patience, is_known=True) as channels,
    ):
        yield ChannelClient(channel, await channel.call("tasks.list", {}), channels)
