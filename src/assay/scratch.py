"""Directories for a while: removed at the end, or by the next one if their process was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

__all__ = ["scratch", "sweep"]


@contextmanager
def scratch(prefix: str, base: str = "") -> Generator[Path]:
    """A new directory, which is locked for as long as it is in use; others that nobody uses go.

    Args:
        prefix: What the names of all such directories begin with, and of no others.
        base: Where they are; by default the directory for temporary files.
    """
    base = base or tempfile.gettempdir()
    sweep(prefix, base)
    with ExitStack() as stack:
        place = None
        while place is None:
            made = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
            with suppress(BlockingIOError, FileNotFoundError):  # another one has taken it for left
                stack.enter_context(_held(made))
                place = made
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        yield place


def sweep(prefix: str, base: str) -> None:
    """Remove what killed processes have left there."""
    for left in Path(base).glob(f"{prefix}*"):
        with suppress(OSError), _held(left):  # else it is in use, or another's
            shutil.rmtree(left, ignore_errors=True)


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
