"""The directory for temporary files that a judge and the host of a submission share.

There is none unless the author's reference was seen to need one: else each side has a ``/tmp`` of
its own, which its sandbox bounds. This one lies on the engine's disk, so it is watched while the
tests run: beyond its bounds both sandboxes end, and the score is a 0, flagged.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import stat
import struct
import time
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self

from assay.graders.testing.contract import Contract
from assay.sandbox import CommandResult, Mount

SHARED = "/tmp/shared"  # noqa: S108 - a mount point inside of the sandboxes
"""Where both sides see it."""

_MOST_BYTES = 1 << 30
_MOST_FILES = 100_000
_MOST_LEVELS = 100
_WHERE = "files in the shared temporary directory"
_READ = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_SECONDS_BETWEEN = 0.5


class SharedFiles:
    """One run's shared directory; made by `shared_files`."""

    def __init__(self, place: Path | None, creations: _Creations | None = None) -> None:
        self._place = place
        self._creations = creations
        self.env: Mapping[str, str] = {"TMPDIR": SHARED} if place else {}
        self.of_the_host: Sequence[Mount] = ()
        self.of_the_judge: Sequence[Mount] = ()
        if place:
            source = str(place)
            self.of_the_host = (Mount(source=source, target=SHARED, writable=True),)
            self.of_the_judge = (Mount(source=source, target=SHARED, writable=True, links=False),)

    async def bounded(
        self, command: Coroutine[None, None, CommandResult]
    ) -> tuple[CommandResult, str]:
        """Run a command while the directory keeps its bounds.

        Returns what the command did, and what grew beyond them so that it was ended, or "".
        """
        if self._place is None:
            return await command, ""
        started = time.monotonic()
        running = asyncio.ensure_future(command)
        try:
            while True:
                done, _ = await asyncio.wait([running], timeout=_SECONDS_BETWEEN)
                if grown := await asyncio.to_thread(_beyond, self._place):
                    break
                if done:
                    return running.result(), ""
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await running
        return _ended(grown, time.monotonic() - started), grown

    def were_used(self) -> bool:
        """Whether either side has put anything there, also if it is gone again."""
        return self._creations is not None and self._creations.any()


@asynccontextmanager
async def shared_files(home: Path, contract: Contract) -> AsyncGenerator[SharedFiles]:
    """The directory below a run's own, where its contract has one."""
    if not contract.shares_files:
        yield SharedFiles(None)
        return
    place = home / "shared"
    place.mkdir()
    if not contract.learns:
        yield SharedFiles(place)
        return
    with _Creations(place) as creations:
        yield SharedFiles(place, creations)


def _ended(grown: str, seconds: float) -> CommandResult:
    return CommandResult(
        status="exited",
        exit_code=None,
        stdout="",
        stderr=f"ended: {grown}",
        truncated=False,
        seconds=seconds,
        tier="bwrap",
    )


def _beyond(root: Path) -> str:
    """What of a directory is more than it may be; looks at no more than that.

    No link is followed: whoever writes there may do so while it is looked at.
    """
    size = count = 0
    above: list[tuple[int, list[str]]] = []
    opened: int | None = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        while True:
            if opened is not None:
                inner: list[str] = []
                above.append((opened, inner))
                with os.scandir(opened) as entries:
                    for entry in entries:
                        count += 1
                        if count > _MOST_FILES:
                            return f"more than {_MOST_FILES:,} {_WHERE}"
                        with suppress(OSError):  # gone meanwhile
                            size += entry.stat(follow_symlinks=False).st_blocks * 512
                            if entry.is_dir(follow_symlinks=False):
                                inner.append(entry.name)
            if size > _MOST_BYTES:
                return f"more than 1 GiB of {_WHERE}"
            if len(above) > _MOST_LEVELS:
                return f"more than {_MOST_LEVELS} levels of {_WHERE}"
            while above and not above[-1][1]:
                os.close(above.pop()[0])
            if not above:
                return ""
            place, names = above[-1]
            opened = _opened(place, names.pop())
    finally:
        for place, _ in above:
            os.close(place)


def _opened(place: int, name: str) -> int | None:
    """Open a directory, a closed one for this moment: nothing hides there. None if it is gone."""
    try:
        return os.open(name, _READ, dir_fd=place)
    except PermissionError:
        pass
    except OSError:
        return None
    with suppress(OSError):
        closed = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
        path, mode = f"/proc/self/fd/{closed}", stat.S_IMODE(os.fstat(closed).st_mode)
        try:
            os.chmod(path, mode | 0o700)  # noqa: PTH101
            return os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        finally:
            os.chmod(path, mode)  # noqa: PTH101
            os.close(closed)
    return None


_CREATED = 0x00000100 | 0x00000080  # IN_CREATE, IN_MOVED_TO
_OVERFLOWN, _DIRECTORY = 0x00004000, 0x40000000
_HEAD = struct.Struct("iIII")
_TRIAL = re.compile(rb"[a-z0-9_]{8}")
"""What Python calls a file that it makes and removes to learn whether a directory can be used."""


class _Creations:
    """What is made in a directory while it is watched; the kernel counts, so nothing is missed."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._opened = -1

    def __enter__(self) -> Self:
        library = ctypes.CDLL(None, use_errno=True)
        self._opened = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        watched = library.inotify_add_watch(self._opened, os.fsencode(self._place), _CREATED)
        if watched < 0:
            self.__exit__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._opened >= 0:
            os.close(self._opened)
        self._opened = -1

    def any(self) -> bool:
        """Whether anything was made; also where that cannot be known."""
        if self._opened < 0:
            return True
        with suppress(BlockingIOError):
            while events := os.read(self._opened, 1 << 16):
                while events:
                    _, mask, _, length = _HEAD.unpack_from(events)
                    name = events[_HEAD.size : _HEAD.size + length].rstrip(b"\0")
                    events = events[_HEAD.size + length :]
                    is_trial = _TRIAL.fullmatch(name) and not mask & _DIRECTORY
                    if mask & _OVERFLOWN or not is_trial:
                        return True
        return False
