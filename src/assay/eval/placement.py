"""Where tasks run: in this process, in one that serves their environment, or at a URL."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import secrets
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    suppress,
)
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from assay.environment.channel.link import Address, Channels
from assay.environment.channel.remote import RemoteWork
from assay.environment.environment import Environment
from assay.environment.template import TemplateWork
from assay.errors import InputError, ProvisionError, nearest
from assay.tasks.task import Runtime, Task

_SUBPROCESS = "subprocess"
_CONTAINER = "container:"
_TOKEN = "ASSAY_CHANNEL_TOKEN"  # noqa: S105 - the name of a variable
_START_SECONDS = 150.0
_END_SECONDS = 15.0


@asynccontextmanager
async def placed(
    tasks: Sequence[Task], runtime: str | Runtime, home: str = ""
) -> AsyncGenerator[list[Task]]:
    """The same tasks, to be run elsewhere, while the context lasts.

    Args:
        tasks: Tasks of environments.
        runtime: ``local``, ``subprocess``, ``container:IMAGE``, the URL of a served environment, or
            its address with the token that it wants.
        home: The store's directory, in which images are unpacked; by default they go with the
            context.

    Raises:
        InputError: For any other runtime, and tasks that it cannot run.
        ProvisionError: If no process can be started, or the image does not fit.
    """
    if runtime == "local":
        yield list(tasks)
        return
    async with AsyncExitStack() as stack:
        served: dict[tuple[str, str], Address] = {}
        shared: dict[Address, Channels] = {}
        found: list[Task] = []
        serving = _serving(runtime, home, stack)
        for task in tasks:
            if serving is None:
                address = _address(runtime)
                name = address.url
            else:
                source = _source_of(task)
                if source not in served:
                    served[source] = await stack.enter_async_context(serving(*source))
                address = served[source]
                name = _SUBPROCESS if runtime == _SUBPROCESS else address.url
            if address not in shared:
                shared[address] = await stack.enter_async_context(Channels(address))
            found.append(_moved(task, address, name, shared[address]))
        yield found


def _serving(
    runtime: str | Runtime, home: str, stack: AsyncExitStack
) -> Callable[[str, str], AbstractAsyncContextManager[Address]] | None:
    """What serves the environment of a file, for this job alone; None where it is served."""
    if runtime == _SUBPROCESS:
        return _child
    if not isinstance(runtime, str) or not runtime.startswith(_CONTAINER):
        return None
    from assay.eval.contained import contained

    image = runtime.removeprefix(_CONTAINER)
    if not image:
        raise InputError("the runtime names no image", hint="container:python:3.12-slim")
    cache = (
        str(Path(home, "cache"))
        if home
        else stack.enter_context(TemporaryDirectory(prefix="assay-images-"))
    )
    return lambda file, name: contained(file, name, image, cache)


def _address(runtime: str | Runtime) -> Address:
    if not isinstance(runtime, str):
        return Address(runtime.url, runtime.token)
    if "://" not in runtime:
        hint = nearest(runtime, ["local", _SUBPROCESS])
        hint = f"{hint}, container:IMAGE, or tcp://HOST:PORT"
        raise InputError(f"unknown runtime {runtime!r}", hint=hint)
    return Address(runtime)


def _moved(task: Task, address: Address, runtime: str, channels: Channels) -> Task:
    if not isinstance(task.work, TemplateWork | RemoteWork) or task.verifier is not None:
        raise InputError(
            f"{task.slug!r} is no template's task, or has a verifier, and runs here alone",
            hint="runtime='local'",
        )
    work = RemoteWork(address, task.id, task.args, runtime, task.work, channels=channels)
    return replace(task, work=work)


def _source_of(task: Task) -> tuple[str, str]:
    """The file that another process can load to find the task's environment, and its name there.

    Raises:
        InputError: If no other process could.
    """
    if not isinstance(task.work, TemplateWork):
        raise InputError(f"{task.slug!r} is not a template's task, and has no file to be served")
    file = task.work.file
    module = sys.modules.get(inspect.unwrap(task.work.template.function).__module__)
    known = list(vars(module).values()) if module is not None else []
    if not Path(file).is_file() or not any(
        isinstance(value, Environment) and value.name == task.env for value in known
    ):
        raise InputError(
            f"no other process can find the environment {task.env!r}",
            hint="make it at module level of a file",
        )
    return str(Path(file).resolve()), task.env


@asynccontextmanager
async def _child(file: str, name: str) -> AsyncGenerator[Address]:
    """A process that serves an environment; it ends with the context, and with this process."""
    token = secrets.token_hex(16)
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "assay", "serve", "env", f"{file}:{name}"),
        *("--json", "--set", "with_parent=true", "--token-env", _TOKEN),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, _TOKEN: token},
        start_new_session=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        said = b""
        with suppress(TimeoutError):
            async with asyncio.timeout(_START_SECONDS):
                said = await child.stdout.readline()
        if not said:
            raise ProvisionError(
                f"{file} could not be served", hint=f"assay serve env {file} says why"
            )
        yield Address(str(json.loads(said)["url"]), token)
    finally:
        child.stdin.close()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await child.wait()
        except TimeoutError:
            child.kill()
            await child.wait()
