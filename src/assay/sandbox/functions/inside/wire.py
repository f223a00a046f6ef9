"""The worker's end of the control socket, and the layout of everything that crosses it.

Each frame is ``<I length><B kind>`` and that many bytes. From the host: ``F`` the system-call
filters, ``L`` a program, ``B`` a batch, which payloads follow. To the host: ``R`` whether the
program is loaded, ``C`` what came of a call, ``E`` the end of a batch. Nothing is pickled or JSON
on its way to the host: it unpacks a struct, checks it and trusts nothing else.
"""

from __future__ import annotations

import os
from _struct import Struct, pack, unpack_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BATCH", "CALL", "FRAME", "LOADED", "MESSAGE_BYTES", "REPLY", "Line"]

FRAME = Struct("<IB")
BATCH = Struct("<dd")
"""CPU and wall seconds of each call; the size of each payload follows, ``<I``."""
LOADED = Struct("<BI")
"""Whether it went well, and the line where not; a message follows."""
CALL = Struct("<IBdQQI")
"""Number, status, score, CPU and wall microseconds, bytes of output; output and message follow."""
REPLY = Struct("<BddII")
"""What the process of a call writes: status, score, CPU seconds, bytes of message and output."""
MESSAGE_BYTES = 2000
"""The longest message."""


class Line:
    """The control socket, in blocking mode.

    Attributes:
        on_hang_up: What to do before this process ends because the host has hung up.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.on_hang_up: Callable[[], None] | None = None

    def exactly(self, count: int) -> bytes:
        """Read so many bytes, or end the process: the host has hung up."""
        got = b""
        while len(got) < count:
            chunk = os.read(self.fd, min(count - len(got), 1 << 20))
            if not chunk:
                if self.on_hang_up is not None:
                    self.on_hang_up()
                os._exit(0)
            got += chunk
        return got

    def frame(self) -> tuple[int, bytes]:
        """The kind and the content of the next frame."""
        length, kind = FRAME.unpack(self.exactly(FRAME.size))
        return kind, self.exactly(length)

    def fields(self) -> tuple[int, list[bytes]]:
        """The kind of the next frame and its parts, each with its length before it."""
        kind, content = self.frame()
        parts: list[bytes] = []
        at = 0
        while at < len(content):
            (length,) = unpack_from("<I", content, at)
            parts.append(content[at + 4 : at + 4 + length])
            at += 4 + length
        return kind, parts

    def send(self, kind: bytes, content: bytes) -> None:
        """Write one frame."""
        self.write(pack("<IB", len(content), kind[0]) + content)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write all of it."""
        left = memoryview(data)
        while left:
            left = left[os.write(self.fd, left) :]
