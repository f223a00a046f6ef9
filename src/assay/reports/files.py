"""Report files that are there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import TextIO

from assay.errors import InputError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Generator[TextIO]:
    """Write a UTF-8 text file under another name and move it into place at the end.

    Whatever goes wrong on the way, ``path`` keeps what it had. A missing directory is made.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name[:80]}.{token_hex(6)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        file = temporary.open("x", encoding="utf-8", newline="\n", errors="replace")
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from error
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _move(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _move(temporary: Path, target: Path) -> None:
    try:
        temporary.replace(target)
    except OSError as error:  # a directory of that name
        raise InputError(f"cannot write {str(target)!r}: {error.strerror}") from error
