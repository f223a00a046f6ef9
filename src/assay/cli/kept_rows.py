"""Rows that were graded so far, kept beside the file that they go to until all are."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from assay.errors import InputError, ScoreError
from assay.reports.files import replacing
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json

__all__ = ["KeptRows", "keep_rows", "partial_of"]

_MARK = b'{"assay": "rows graded so far"'


def partial_of(out: str) -> str:
    """Where rows are kept on their way to a file."""
    return f"{out}.partial"


@contextmanager
def keep_rows(out: str, made_by: Mapping[str, Json]) -> Generator[KeptRows]:
    """Keep rows beside the file that they go to; what an earlier process kept is found again.

    Args:
        out: The file that they go to.
        made_by: What gives the grades, and of which data. Rows that something else made are not
            gone on with.

    Raises:
        InputError: If nothing can be kept there: somebody else's file, another process's work.
    """
    path = partial_of(out)
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.fdopen(os.open(path, flags, 0o666), "r+b")
    except OSError as error:
        raise _cannot_write(path, error) from error
    try:
        kept = KeptRows(out, file, made_by)
        try:
            yield kept
        finally:
            if not kept.rows:
                Path(path).unlink(missing_ok=True)
    finally:
        with suppress(OSError):  # what cannot be written has been told
            file.close()


class KeptRows:
    """A file with a line about what made it, and a line for each row, in the order of the data.

    Args:
        out: The file that the rows go to in the end.
        file: Where they are kept, open to read and to write.
        made_by: What makes them.

    Attributes:
        path: Where they are kept.
        is_anew: Whether something else's rows were there, and were dropped.
        rows: Rows that are kept.

    Raises:
        InputError: As for `keep_rows`.
    """

    def __init__(self, out: str, file: BinaryIO, made_by: Mapping[str, Json]) -> None:
        self.path = partial_of(out)
        self.rows = 0
        self._out = out
        self._file = file
        try:
            # Let go of with the process, however it ends.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            hint = "wait for it, or write to another file"
            raise InputError(f"another process writes {self.path!r}", hint=hint) from error
        head = _MARK + b", " + json.dumps(dict(made_by)).encode()[1:] + b"\n"
        found = file.readline(64 << 10)
        if not (found.startswith(_MARK) or _MARK.startswith(found)):
            hint = "move it away, or write to another file"
            raise InputError(f"{self.path!r} is another program's", hint=hint)
        self.is_anew = found != head and found.endswith(b"\n")
        if found != head:
            self._cut(0)
            self._write(head)
        self._start = len(head)

    def earlier(self, most: int) -> Iterator[Graded]:
        """What an earlier process kept; has to be read to its end before rows are added.

        A last line that is torn is dropped, and whatever follows one that cannot be read.

        Args:
            most: Rows that there can be.
        """
        place = self._start
        self._file.seek(place)
        while self.rows < most and (graded := _grade_in(self._file.readline())) is not None:
            place = self._file.tell()
            self.rows += 1
            yield graded
        self._cut(place)

    def add(self, row: Mapping[str, Json], graded: Graded) -> None:
        """Keep a row; see `flush`."""
        self._write(json.dumps({**row, "grade": graded.to_dict()}).encode() + b"\n")
        self.rows += 1

    def flush(self) -> None:
        """Hand on what was added, so that it stays whatever becomes of this process."""
        try:
            self._file.flush()
        except OSError as error:
            raise _cannot_write(self.path, error) from error

    def finish(self) -> None:
        """Write the rows to the file that they go to, whole or not at all, and keep no more."""
        self.flush()
        self._file.seek(self._start)
        try:
            with replacing(self._out) as out:
                out.writelines(line.decode() for line in self._file)
        except OSError as error:
            raise _cannot_write(self._out, error) from error
        Path(self.path).unlink(missing_ok=True)

    def _write(self, line: bytes) -> None:
        try:
            self._file.write(line)
        except OSError as error:
            raise _cannot_write(self.path, error) from error

    def _cut(self, place: int) -> None:
        self._file.seek(place)
        self._file.truncate()


def _grade_in(line: bytes) -> Graded | None:
    if not line.endswith(b"\n"):
        return None
    try:
        row = cast("Json", json.loads(line))
        grade = row.get("grade") if isinstance(row, dict) else None
        return Graded.from_dict(grade) if isinstance(grade, dict) else None
    except (ValueError, ScoreError, RecursionError):
        return None


def _cannot_write(path: str, error: OSError) -> InputError:
    return InputError(f"cannot write {path!r}: {error.strerror}")
