"""A file of entries, one JSON object a line, appended to by any number of processes.

Each line is one write to the end of the file, so lines of several writers do not mix. A process
killed inside a write leaves a torn line; the next one to open the file starts a new line after it,
and whoever reads the file skips what is not JSON.
"""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

from assay.errors import StoreError

__all__ = ["LedgerFile"]


class LedgerFile:
    """A file that lines are appended to; it is opened with the first one.

    Args:
        file: Its path; it and its directory are made if they are missing, for the user alone.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._handle: int | None = None

    def append(self, line: str) -> None:
        """Write one line.

        Raises:
            StoreError: It cannot be written.
        """
        content = f"{line}\n".encode()
        try:
            with self._lock:
                if self._handle is None:
                    self._handle = self._open()
                if os.write(self._handle, content) < len(content):
                    raise OSError(errno.ENOSPC, "no space is left")  # noqa: TRY301 - as the next
        except OSError as error:
            raise StoreError(
                f"the ledger cannot be kept in {self._file}: {error.strerror}",
                hint="choose a file that you may write to",
            ) from error

    def renew(self) -> None:
        """Take a new lock; see `forking`. A line is one write, so the file may stay open."""
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        with self._lock:
            handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    def _open(self) -> int:
        Path(self._file).absolute().parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        size = os.fstat(handle).st_size
        if size and os.pread(handle, 1, size - 1) != b"\n":
            os.write(handle, b"\n")
        return handle
