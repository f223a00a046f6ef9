"""The worker's end of the control socket, and the layout of everything that crosses it.

Each frame is ``<I length><B kind>`` and that many bytes. From the host: ``F`` the system-call
filters, ``L`` a program, ``B`` a batch, which payloads follow. To the host: ``R`` whether the
program is loaded, ``C`` what came of a call, ``E`` the end of a batch. Nothing is pickled or JSON
on its way to the host: it unpacks a struct, checks it and trusts nothing else.
"""

from __future__ import annotations

import ctypes
import os
import sys
from _struct import Struct, pack, unpack_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

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

    ``on_hang_up``: What to do before this process ends because the host has hung up.
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


FORK, MAKE_LOOP = b"f", b"l"
"""Orders to the template."""
ORDER = Struct("<IIB")
"""What the payloads begin with: how many, the bytes of the only one, whether to use a loop."""
BIRTH = Struct("<i")
"""Process id of a fork; negative if there is none."""
DEATH = Struct("<iB")
"""How the fork ended, as `os.waitpid` says, and whether it left a sibling."""

_SET_PIPE_SIZE, _PAYLOAD_BYTES = 1031, 1 << 20


class Pipes:
    """Six pipes. They are made before the filter, which takes away what makes one larger.

    ``deaths``: Template to supervisor: `DEATH` of each fork. No fork may have it: with a forged
    death it would outlive its call.
    ``payloads``: Supervisor to the fork: `ORDER`, then payloads; each with its length before it if
    there are several.
    """

    def __init__(self) -> None:
        libc = ctypes.PyDLL(None)
        self.orders = os.pipe()
        self.births = os.pipe()
        self.deaths = os.pipe()
        self.payloads = os.pipe()
        self.replies = os.pipe()
        self.prints = os.pipe()
        self._shared = (0, self.payloads[0], self.replies[1], self.prints[1])
        # So that a batch is handed over in one piece. Where it is refused, it is in several.
        libc.fcntl(self.payloads[1], _SET_PIPE_SIZE, _PAYLOAD_BYTES)

    def keep_supervisor_ends(self) -> None:
        """In the supervisor, which keeps both ends of the forks' pipes: see `make_blocking`."""
        os.close(self.orders[0])
        os.close(self.births[1])
        os.close(self.deaths[1])
        for fd in (self.births[0], self.deaths[0], self.replies[0], self.payloads[1]):
            os.set_blocking(fd, False)

    def keep_template_ends(self) -> None:
        """In the template, whose standard streams become the last pipe."""
        os.close(self.orders[1])
        os.close(self.payloads[1])
        for reading, _ in (self.births, self.deaths, self.replies, self.prints):
            os.close(reading)
        for stream in (sys.stdout, sys.stderr):
            # What cannot be encoded, such as half a surrogate pair, is no reason to fail. A pipe
            # cannot be made to do so any more.
            stream.reconfigure(errors="backslashreplace")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - they are Python's own
        os.dup2(self.prints[1], 1)
        os.dup2(self.prints[1], 2)
        os.close(self.prints[1])

    def make_blocking(self) -> None:
        """Undo the one thing that a fork can do to the pipes themselves, for all after it."""
        for fd in self._shared:
            os.set_blocking(fd, True)
