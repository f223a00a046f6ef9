"""What crosses the control socket, as the host sees it: everything a worker says may be a lie.

`inside.wire` describes the frames. The host unpacks a struct and checks order, status, size and
finiteness; anything else is a fault of the worker, which then dies for it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from assay.errors import SandboxError
from assay.sandbox.functions.program import (
    FunctionLimits,
    Isolation,
    Outcome,
    OutcomeStatus,
    Program,
)

__all__ = [
    "STATUSES",
    "Results",
    "WorkerError",
    "batch_frame",
    "filter_frame",
    "load_frame",
    "read_load",
]

_FRAME = struct.Struct("<IB")
_CALL = struct.Struct("<IBdQQI")
_LOADED = struct.Struct("<BI")
_MESSAGE_BYTES = 2000
_CALLED, _ENDED, _LOADED_KIND = b"CER"
_OK, _BAD_RETURN = 0, 2
_RETIRE = 2

STATUSES: tuple[OutcomeStatus, ...] = (
    "ok",
    "error",
    "bad_return",
    "cpu_timeout",
    "wall_timeout",
    "memory",
    "crash",
)
"""The statuses that a worker may report, by their number."""


class WorkerError(SandboxError):
    """A worker died, fell silent or broke the protocol: nothing it says counts any more.

    Attributes:
        status: What to say of the call that was being made.
    """

    def __init__(self, message: str, *, status: OutcomeStatus = "sandbox_error") -> None:
        super().__init__(message)
        self.status: OutcomeStatus = status


def filter_frame(filters: Sequence[bytes]) -> bytes:
    """The system-call filters that the worker puts on itself."""
    return _fields(b"F", filters)


def load_frame(program: Program, isolation: Isolation, limits: FunctionLimits) -> bytes:
    """A program and the limits under which it runs."""
    header = (
        int(isolation == "call"),
        limits.memory_bytes,
        limits.processes,
        limits.output_bytes,
        math.ceil(limits.load_seconds * 1000),
    )
    words = [program.source, program.entry, program.argument, program.provided]
    words.append("as written" if program.as_written else "")
    for name, source in program.modules.items():
        words += [name, source]
    parts = [word.encode("utf-8", "surrogatepass") for word in words]
    return _fields(b"L", [" ".join(map(str, header)).encode(), *parts])


def _fields(kind: bytes, parts: Sequence[bytes]) -> bytes:
    content = b"".join(len(part).to_bytes(4, "little") + part for part in parts)
    return _FRAME.pack(len(content), kind[0]) + content


def batch_frame(payloads: Sequence[bytes], limits: FunctionLimits) -> bytes:
    """Calls to be made."""
    sizes = struct.pack(f"<{len(payloads)}I", *map(len, payloads))
    head = struct.pack("<dd", limits.cpu_seconds, limits.wall_seconds)
    return b"".join([_FRAME.pack(len(head) + len(sizes), ord("B")), head, sizes, *payloads])


def read_load(data: bytes) -> tuple[bool, int, str] | None:
    """What a worker said of a program: whether it is loaded, the line and the reason where not.

    Returns:
        None as long as there is more to come.

    Raises:
        WorkerError: It is not an answer to that.
    """
    if len(data) < _FRAME.size:
        return None
    length, kind = _FRAME.unpack_from(data)
    if kind != _LOADED_KIND or not _LOADED.size <= length <= _LOADED.size + 4 * _MESSAGE_BYTES:
        raise WorkerError("the worker broke the protocol while it loaded a program")
    if len(data) < _FRAME.size + length:
        return None
    if len(data) > _FRAME.size + length:
        raise WorkerError("the worker said more than it was asked")
    went_well, line = _LOADED.unpack_from(data, _FRAME.size)
    reason = data[_FRAME.size + _LOADED.size :].decode("utf-8", "replace")
    return went_well == 1, line, reason


class Results:
    """Reads the outcomes of one batch.

    Args:
        count: How many calls the batch has.
        limits: What was allowed; longer output than that is a fault.

    Attributes:
        outcomes: Those so far, in the order of the calls.
        is_retiring: Whether the worker asks to be replaced. Then calls may be missing at the end:
            it did not begin with them.
        done: Whether the batch is over.
    """

    def __init__(self, count: int, limits: FunctionLimits) -> None:
        self.outcomes: list[Outcome] = []
        self.is_retiring = False
        self.done = False
        self._count = count
        self._output = limits.output_bytes
        self._largest = _CALL.size + limits.output_bytes + _MESSAGE_BYTES
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> list[Outcome]:
        """Take in what the worker sent.

        Returns:
            The outcomes that came with it, in the order of the calls.

        Raises:
            WorkerError: It is not what a worker sends.
        """
        buffer = self._buffer
        buffer += chunk
        at, end, before = 0, len(buffer), len(self.outcomes)
        while end - at >= _FRAME.size:
            if self.done:
                raise WorkerError("the worker went on after the end of a batch")
            length, kind = _FRAME.unpack_from(buffer, at)
            if length > self._largest:
                raise WorkerError(f"the worker announced a frame of {length} bytes")
            if end - at - _FRAME.size < length:
                break
            at += _FRAME.size
            if kind == _CALLED:
                self.outcomes.append(self._outcome(buffer, at, length))
            elif kind == _ENDED and length == 1 and self._may_end(buffer[at]):
                self.is_retiring, self.done = bool(buffer[at] & _RETIRE), True
            else:
                raise WorkerError(f"the worker sent a frame of kind {kind} out of turn")
            at += length
        del buffer[:at]
        if self.done and buffer:
            raise WorkerError("the worker went on after the end of a batch")
        return self.outcomes[before:]

    def _may_end(self, flags: int) -> bool:
        made = len(self.outcomes)
        return made == self._count or (made > 0 and bool(flags & _RETIRE))

    def _outcome(self, buffer: bytearray, at: int, length: int) -> Outcome:
        if length < _CALL.size:
            raise WorkerError("the worker sent a short result")
        number, status, score, cpu, wall, printed = _CALL.unpack_from(buffer, at)
        said = length - _CALL.size - printed
        if number != len(self.outcomes) or number >= self._count:
            raise WorkerError(f"the worker sent result {number} out of turn")
        if status >= len(STATUSES) or printed > self._output or not 0 <= said <= _MESSAGE_BYTES:
            raise WorkerError(f"the worker sent a malformed result for call {number}")
        message = output = ""
        if printed or said:
            at += _CALL.size
            output = buffer[at : at + printed].decode("utf-8", "replace")
            message = buffer[at + printed : at + printed + said].decode("utf-8", "replace")
        if status == _OK and not math.isfinite(score):
            status, message = _BAD_RETURN, "it returned a number that is not finite"
        return Outcome(
            STATUSES[status],
            score if status == _OK else None,
            message,
            output,
            cpu / 1e6,
            wall / 1e6,
        )
