"""Directories for a while: removed at the end, or by the next one if their process was killed."""

from __future__ import annotations

import fcntl
import logging
import os
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_REMOVE = 'rm -rf -- "$1" || { chmod -R u+rwX -- "$1"; rm -rf -- "$1"; }'
_LOG = logging.getLogger(__name__)
_SWEPT: set[tuple[str, str]] = set()


@contextmanager
def scratch(prefix: str, base: str = "") -> Generator[Path]:
    """A new directory, which is locked for as long as it is in use; others that nobody uses go.

    Args:
        prefix: What the names of all such directories begin with, and of no others.
        base: Where they are; by default the directory for temporary files.
    """
    base = base or tempfile.gettempdir()
    sweep(prefix, base)
    with _locked(prefix, base) as place:
        try:
            yield place
        finally:
            remove(place)


@contextmanager
def _locked(prefix: str, base: str) -> Generator[Path]:
    with ExitStack() as stack:
        place = None
        while place is None:
            made = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
            with suppress(BlockingIOError, FileNotFoundError):  # another one has taken it for left
                stack.enter_context(_held(made))
                place = made
        yield place


@asynccontextmanager
async def scratch_beside(prefix: str) -> AsyncGenerator[Path]:
    """The same beside an event loop, which goes on while old and new are removed.

    What killed processes left is looked for once: thousands of cells take some milliseconds each.
    """
    import asyncio

    base = tempfile.gettempdir()
    if (prefix, base) not in _SWEPT:
        _SWEPT.add((prefix, base))
        await to_end(sweep, prefix, base)
    with _locked(prefix, base) as place:
        try:
            yield place
        finally:
            if os.path.lexists(place):
                await asyncio.to_thread(remove, place)


async def to_end(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Do something to a directory in a thread; who is cancelled waits until it has ended.

    A thread goes on: what it still wrote would come after the directory was removed, and stay.
    """
    import asyncio

    doing = asyncio.ensure_future(asyncio.to_thread(work, *given, **named))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait([doing])
        doing.exception()  # nobody else hears of it
        raise


def sweep(prefix: str, base: str) -> None:
    """Remove what killed processes have left there."""
    for left in Path(base).glob(f"{prefix}*"):
        with suppress(OSError), _held(left):  # else it is in use, or another's
            remove(left)


def remove(place: str | os.PathLike[str]) -> None:
    """Remove a directory that others wrote to; never fails, so that it is nobody's result.

    Python's own removal recurses: a few thousand directories inside each other are a
    RecursionError, by which a failed command would become a grader that could not judge.
    """
    if not os.path.lexists(place):
        return
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", _REMOVE, "sh", os.fspath(place)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C in a terminal is no reason to leave it
            check=False,
        )
    except OSError as error:
        _LOG.warning("%s could not be removed: %s", place, error)
        return
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        _LOG.warning("%s could not be removed: %s", place, *said or ["rm failed"])


@contextmanager
def _held(place: Path) -> Generator[None]:
    """Have a directory to oneself for as long as this process lives.

    Raises:
        OSError: Somebody else has it, or it has been removed.
    """
    opened = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        place.lstat()  # whoever has removed it had it until then
        yield
    finally:
        os.close(opened)
