"""``assay serve env``: serve a Python environment until Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import sys
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from assay.cli.options import add_set, explain, file_and_name, port, positive
from assay.errors import InputError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from assay.environment.channel.serve import ServedEnvironment

_MORE = """\
Each session of a client runs in one of the workers, processes that load the file. Connect with
assay.connect(URL), with runtime=URL, or with HUD's own client; with --openenv, OpenEnv's, too.
Ctrl-C ends it.

exit status: 0 ended, 2 bad input, 3 it could not be served"""

_FILES = 16_384

_EXAMPLES = """\
  assay serve env env.py
  assay serve env env.py:arithmetic --port 8765 --workers 4 --set log=audit.jsonl
  ENV_TOKEN=… assay serve env env.py --host 0.0.0.0 --token-env ENV_TOKEN"""


def add(parser: ArgumentParser) -> None:
    """Say what ``assay serve env`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    add = parser.add_argument
    add("file", metavar="FILE.py[:NAME]", help="the file, and the environment in it if several")
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="where to listen; only this machine")
    add("--port", type=port, default=0, metavar="N", help="a free one by default")
    add(
        "--workers", type=positive, metavar="N", help="processes; one for each processor by default"
    )
    add(
        "--token-env",
        default="",
        metavar="NAME",
        help="environment variable with the token that clients must know; needed off loopback",
    )
    add("--json", action="store_true", help="say in JSON where it is served")
    add(
        "--openenv",
        action="store_true",
        help="serve OpenEnv's clients, too, at http:// on the same port",
    )
    add_set(parser, "a setting, or @FILE.yaml with several (docs/environments.md)")


def run(given: Namespace) -> int:
    """Serve an environment."""
    file, name = file_and_name(given.file)
    token = _token(given.token_env)
    _allow_connections()
    asyncio.run(_serve(given, file, name, token))
    return 0


async def _serve(given: Namespace, file: str, name: str, token: str) -> None:
    from assay.cli.fields import settings_of
    from assay.environment.channel.serve import audit_to, serve
    from assay.environment.channel.sessions import ChannelLimits

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Settings(ChannelLimits):
        """What a server bears, and how it is told to say and hear things.

        Attributes:
            log: A file that gets a JSON line for each task that ended.
            hud: Say HUD_SERVE_PORT=N, which HUD's SDK waits for.
            with_parent: End when standard input ends, as it does with the process that holds it.
            dial: Likewise, and listen to nobody: for each line of standard input, connect to a
                client at this port of loopback, and begin with the line.
        """

        log: str = ""
        hud: bool = False
        with_parent: bool = False
        dial: int = 0

    settings = settings_of(Settings, given.set)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    words = asyncio.Queue[bytes]()
    if settings.with_parent or settings.dial:
        await _watch_input(ended, words)
    serving = serve(
        file,
        name=name,
        host=given.host,
        port=given.port,
        workers=given.workers or 0,
        token=token,
        limits=settings,
        audit=audit_to(settings.log) if settings.log else None,
        listens=not settings.dial,
        openenv=given.openenv,
    )
    async with AsyncExitStack() as stack:
        opening = asyncio.ensure_future(stack.enter_async_context(serving))
        waiting = asyncio.ensure_future(ended.wait())
        await asyncio.wait({opening, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not opening.done():  # the file is still being loaded, which may take minutes
            opening.cancel()
            await asyncio.wait({opening})
            return
        served = await opening
        print(_announced(given, served, hud=settings.hud), flush=True)
        dialing = (
            asyncio.create_task(_dial(served, settings.dial, words)) if settings.dial else None
        )
        await waiting
        if dialing is not None:
            dialing.cancel()


async def _dial(served: ServedEnvironment, to: int, words: asyncio.Queue[bytes]) -> None:
    while True:
        word = await words.get()
        with suppress(OSError):  # whoever wanted it has gone
            await served.dial(to, word)


async def _watch_input(ended: asyncio.Event, words: asyncio.Queue[bytes]) -> None:
    """Set the event when standard input ends; its lines are words."""

    class _Input(asyncio.Protocol):
        rest = b""

        def data_received(self, data: bytes) -> None:
            *lines, self.rest = (self.rest + data).split(b"\n")
            for line in lines:
                words.put_nowait(line)

        def eof_received(self) -> bool:
            ended.set()
            return False

    if not stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode):
        raise InputError("with_parent wants a pipe as standard input")
    await asyncio.get_running_loop().connect_read_pipe(_Input, sys.stdin)


def _announced(given: Namespace, served: ServedEnvironment, *, hud: bool) -> str:
    if hud:
        return f"HUD_SERVE_PORT={served.port}"
    rows = cast("list[dict[str, object]]", served.manifest["templates"])
    names = [str(row["id"]) for row in rows]
    if given.json:
        said = {
            "env": {"name": served.manifest["name"], "version": served.manifest["version"]},
            "url": served.url,
            "websocket": served.websocket,
            "port": served.port,
            "templates": names,
            **({"openenv": served.openenv} if given.openenv else {}),
        }
        return json.dumps(said)
    and_openenv = f", and for OpenEnv at {served.openenv}" if given.openenv else ""
    return (
        f"templates: {', '.join(names) or 'none'}\n"
        f"serving {served.manifest['name']} at {served.url} and {served.websocket}{and_openenv}"
        " (Ctrl-C ends it)"
    )


def _allow_connections() -> None:
    """Each connection is an open file, of which a process may have few unless it asks."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _token(variable: str) -> str:
    if not variable:
        return ""
    token = os.environ.pop(variable, "")  # what graders run has no use for it
    if len(token) < 16:
        raise InputError(
            f"the token in {variable} has {len(token)} characters"
            if token
            else f"the environment variable {variable} is not set",
            hint="a token has at least 16 characters: openssl rand -hex 16",
        )
    return token
