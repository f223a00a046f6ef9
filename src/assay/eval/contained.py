"""An environment that is served inside of a container image, in assay's own sandbox.

Nobody reaches it from outside, where it has no network, and it listens to nobody inside. For each
connection that is wanted, a word is written to its standard input; it connects to a door of its
loopback, which this process has, and says the word there.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import socket
import sys
import sysconfig
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from assay.environment.channel.frames import TcpWire, Wire
from assay.environment.channel.link import Address
from assay.errors import ProvisionError
from assay.eval.workspaces.images import prepare
from assay.frozen import frozen
from assay.sandbox import Door, Limits, Mount, OpenCommand, open_command, run_command_sync
from assay.tasks.blocks import ContainerSpec
from assay.types.submission import UnpackedImage, Workspace
from assay.version import __version__

_PORT = 8765
_WORD_BYTES, _WORD_SECONDS = 32, 2.0
_START_SECONDS, _DIAL_SECONDS = 150.0, 20.0
_OWN, _FILES = "/opt/assay", "/opt/environment"
_LIMITS = Limits(wall_seconds=20 * 86_400.0, output_kill_bytes=1 << 40)
# The image's packages go before ours.
_PATHS = "import sys\nsys.path += {}\n"
_PROBE = """\
import aiohttp, pydantic, assay
from assay.version import __version__
print(__version__)
"""


@frozen
class Contained(Address):
    """The address of an environment in a sandbox, which this process alone can connect to.

    Attributes:
        inside: What it is served by.
    """

    inside: _Inside | None = None

    def __post_init__(self) -> None:
        """Its URL is a name, at which nobody listens."""

    async def dial(self) -> tuple[Wire, None]:
        """Connect.

        Raises:
            OSError: If it has ended.
        """
        assert self.inside is not None
        async with asyncio.timeout(_DIAL_SECONDS):
            return TcpWire(*await self.inside.connect()), None


class _Inside:
    """A server in a sandbox, and the door at which it connects to us."""

    def __init__(self) -> None:
        self._listener: socket.socket | None = None
        self._command: OpenCommand | None = None
        self._connecting = asyncio.Lock()

    def open(self, listener: socket.socket) -> None:
        listener.listen(128)
        listener.setblocking(False)
        self._listener = listener

    def use(self, command: OpenCommand) -> None:
        self._command = command

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Have it connect, for one after the other.

        What else runs in there finds the door, too: the server alone was told the word.
        """
        command, listener = self._command, self._listener
        assert command is not None
        assert listener is not None
        async with self._connecting:
            word = secrets.token_hex(_WORD_BYTES // 2).encode()
            command.stdin.write(word + b"\n")
            await command.stdin.drain()
            while True:
                connection, _ = await asyncio.get_running_loop().sock_accept(listener)
                reader, writer = await asyncio.open_connection(sock=connection)
                with suppress(OSError, EOFError):  # a timeout is an OSError
                    async with asyncio.timeout(_WORD_SECONDS):
                        if hmac.compare_digest(await reader.readexactly(_WORD_BYTES), word):
                            return reader, writer
                writer.transport.abort()


@asynccontextmanager
async def contained(file: str, name: str, image: str, cache: str) -> AsyncGenerator[Contained]:
    """Serve the environment of a file in an image; it is killed whole with the context.

    Args:
        file: The file. Its directory is shown there, read-only.
        name: The environment in it.
        image: The image's name, perhaps with its digest.
        cache: Directory in which images are unpacked.

    Raises:
        ProvisionError: If the image cannot be had, has no Python that assay runs in, or the file
            cannot be served in it.
    """
    unpacked = await asyncio.to_thread(prepare, ContainerSpec(image=image), cache)
    with TemporaryDirectory(prefix="assay-contained-") as scratch:
        (nothing := Path(scratch, "workspace")).mkdir()
        mounts = [Mount(source=str(Path(file).parent), target=_FILES), *_own(Path(scratch, "own"))]
        workspace = Workspace(
            path=str(nothing), image=unpacked, env={"PYTHONPATH": _OWN, "PYTHONNOUSERSITE": "1"}
        )
        await asyncio.to_thread(_require_assay, image, unpacked, workspace, mounts)
        inside = _Inside()
        served = f"{_FILES}/{Path(file).name}:{name}"
        words = [unpacked.python, "-m", "assay", "serve", "env", served, "--json"]
        try:
            async with open_command(
                [*words, "--set", f"dial={_PORT}"],
                workspace=workspace,
                mounts=mounts,
                limits=_LIMITS,
                door=Door(port=_PORT, on_open=inside.open),
            ) as command:
                said = b""
                with suppress(TimeoutError):
                    async with asyncio.timeout(_START_SECONDS):
                        said = await command.stdout.readline()
                if not said:
                    why = command.stderr.strip()[-500:] or "it took too long"
                    raise ProvisionError(f"{file} cannot be served in image {image!r}: {why}")
                json.loads(said)
                inside.use(command)
                bare = image.partition("@")[0]
                yield Contained(f"container:{bare}@{unpacked.digest}", inside=inside)
        finally:
            inside.close()


def _own(place: Path) -> list[Mount]:
    """What shows assay, and what it needs, to a Python like this one."""
    found = [str(Path(__file__).parents[2])]
    found += [sysconfig.get_path(name) for name in ("purelib", "platlib")]
    sources = list(dict.fromkeys(found))
    targets = [f"{_OWN}-{number}" for number in range(len(sources))]
    place.mkdir()
    (place / "sitecustomize.py").write_text(_PATHS.format(targets))
    return [
        Mount(source=str(place), target=_OWN),
        *(Mount(source=a, target=b) for a, b in zip(sources, targets, strict=True)),
    ]


def _require_assay(
    name: str, image: UnpackedImage, workspace: Workspace, mounts: list[Mount]
) -> None:
    version = ".".join(map(str, sys.version_info[:2]))
    hint = f"use an image with Python {version}, or one in which assay {__version__} is installed"
    if not image.python:
        raise ProvisionError(f"image {name!r} has no Python", hint=hint)
    result = run_command_sync(
        [image.python, "-c", _PROBE],
        workspace=workspace,
        mounts=mounts,
        limits=Limits(wall_seconds=60.0),
    )
    said = result.stdout.strip()
    if result.exit_code != 0:
        why = (result.stderr.strip() or result.status).rpartition("\n")[2][-300:]
        raise ProvisionError(f"{image.python} of image {name!r} cannot run assay: {why}", hint=hint)
    if said != __version__:
        raise ProvisionError(f"image {name!r} has assay {said}, and this is another", hint=hint)
