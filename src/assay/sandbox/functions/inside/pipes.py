"""What supervisor and template talk through; each end of a pipe belongs to one side."""

from __future__ import annotations

import ctypes
import os
import sys
from _struct import Struct

__all__ = ["BIRTH", "DEATH", "FORK", "MAKE_LOOP", "ORDER", "Pipes"]

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

    Attributes:
        orders: Supervisor to template: a byte to fork, which says whether to make a loop first.
        births: Template to supervisor: `BIRTH` of each fork.
        deaths: Template to supervisor: `DEATH` of each fork. No fork may have it: with a forged
            death it would outlive its call.
        payloads: Supervisor to the fork: `ORDER`, then payloads; each with its length before it
            if there are several.
        replies: Fork to supervisor: `wire.REPLY`.
        prints: What the fork prints.
    """

    def __init__(self) -> None:
        libc = ctypes.PyDLL(None)
        self.orders = os.pipe()
        self.births = os.pipe()
        self.deaths = os.pipe()
        self.payloads = os.pipe()
        self.replies = os.pipe()
        self.prints = os.pipe()
        # So that a batch is handed over in one piece. Where it is refused, it is in several.
        libc.fcntl(self.payloads[1], _SET_PIPE_SIZE, _PAYLOAD_BYTES)

    def keep_supervisor_ends(self) -> None:
        """In the supervisor. Of the pipes that forks have, it keeps both ends: see `mend`."""
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

    def mend(self) -> None:
        """Undo the one thing that a fork can do to the pipes themselves, for all after it."""
        for fd in (0, self.payloads[0], self.replies[1], self.prints[1]):
            os.set_blocking(fd, True)
