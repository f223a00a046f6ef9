"""Frames on their way to the host."""

from __future__ import annotations

import time

from assay.sandbox.functions.inside.wire import CALL, FRAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from assay.sandbox.functions.inside.wire import Line

    Times = tuple[float, float]

__all__ = ["Outbox"]

_KIND_CALL, _KIND_END = b"CE"
_LONG = 1e6
_HOLD_BYTES = 1 << 16
_HOLD_SECONDS = 0.02


class Outbox:
    """Collects frames, to send many at once; none waits for long."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._frames: list[bytes] = []
        self._bytes = 0
        self._since = 0.0

    def add(
        self, number: int, status: int, score: float, *, times: Times, output: bytes, message: bytes
    ) -> None:
        """Put what came of one call.

        Args:
            number: Its place in the batch.
            status: What came of it.
            score: Its score, or 0.0.
            times: CPU and wall seconds.
            output: What it printed.
            message: What went wrong.
        """
        cpu, wall = times
        # What a call says of its own CPU time may be anything.
        micros = int(cpu * 1e6) if 0.0 <= cpu < _LONG else 0, int(wall * 1e6)
        text = output + message
        frame = FRAME.pack(CALL.size + len(text), _KIND_CALL)
        frame += CALL.pack(number, status, score, *micros, len(output)) + text
        self._frames.append(frame)
        self._bytes += len(frame)
        now = time.monotonic()
        if self._bytes > _HOLD_BYTES or now - self._since > _HOLD_SECONDS:
            self.flush()
            self._since = now

    def flush(self) -> None:
        """Send what there is."""
        if not self._frames:
            return
        self._line.write(b"".join(self._frames))
        self._frames.clear()
        self._bytes = 0

    def end(self, flags: int) -> None:
        """End the batch."""
        self._frames.append(FRAME.pack(1, _KIND_END) + bytes([flags]))
        self.flush()
