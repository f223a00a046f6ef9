"""Where the calls of one process print to: each keeps the head of what it prints."""

from __future__ import annotations

import io
import sys

__all__ = ["Tape"]


class Tape(io.RawIOBase):
    """A stream that remembers its first bytes.

    Args:
        keep: How many.
    """

    name = "<tape>"

    def __init__(self, keep: int) -> None:
        super().__init__()
        self._keep = keep
        self._kept = bytearray()
        self._text = io.TextIOWrapper(
            self, encoding="utf-8", errors="backslashreplace", write_through=True
        )

    def writable(self) -> bool:
        """It is."""
        return True

    def write(  # pyright: ignore[reportIncompatibleMethodOverride] - `Buffer` is new in 3.12
        self, data: bytes | bytearray | memoryview, /
    ) -> int:
        """Take everything, keep what there is room for."""
        view = memoryview(data)
        room = self._keep - len(self._kept)
        if room > 0:
            self._kept += view[:room]
        return len(view)

    def take(self) -> bytes:
        """What was written since the last time."""
        if not self._kept:
            return b""
        kept, self._kept = bytes(self._kept), bytearray()
        return kept

    def install(self) -> None:
        """Let Python's standard streams write here."""
        sys.stdout = sys.stderr = self._text
