"""What crosses the control socket, as the host sees it: everything a worker says may be a lie.

`inside.wire` describes the frames. The host unpacks a struct and checks order, status, size and
finiteness; anything else is a fault of the worker, which then dies for it.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from assay.errors import InputError, SandboxError
from assay.sandbox.functions.inside.wire import BATCH, CALL, FRAME, LOADED, MESSAGE_BYTES

_CALLED, _ENDED, _LOADED_KIND = b"CER"
_OK, _BAD_RETURN = 0, 2
_RETIRE = 2


class WorkerError(SandboxError):
    """A worker died, fell silent or broke the protocol: nothing it says counts any more."""

    def __init__(self, message: str, *, status: OutcomeStatus = "sandbox_error") -> None:
        super().__init__(message)
        self.status: OutcomeStatus = status


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
    return fields_frame(b"L", [" ".join(map(str, header)).encode(), *parts])


def fields_frame(kind: bytes, parts: Sequence[bytes]) -> bytes:
    """A frame of parts, each with its length before it."""
    content = b"".join(len(part).to_bytes(4, "little") + part for part in parts)
    return FRAME.pack(len(content), kind[0]) + content


def batch_frame(payloads: Sequence[bytes], limits: FunctionLimits) -> bytes:
    """Calls to be made."""
    sizes = struct.pack(f"<{len(payloads)}I", *map(len, payloads))
    head = BATCH.pack(limits.cpu_seconds, limits.wall_seconds)
    return b"".join([FRAME.pack(len(head) + len(sizes), ord("B")), head, sizes, *payloads])


def read_load(data: bytes) -> tuple[bool, int, str] | None:
    """What a worker said of a program: whether it is loaded, the line and the reason where not."""
    if len(data) < FRAME.size:
        return None
    length, kind = FRAME.unpack_from(data)
    if kind != _LOADED_KIND or not LOADED.size <= length <= LOADED.size + 4 * MESSAGE_BYTES:
        raise WorkerError("the worker broke the protocol while it loaded a program")
    if len(data) < FRAME.size + length:
        return None
    if len(data) > FRAME.size + length:
        raise WorkerError("the worker said more than it was asked")
    went_well, line = LOADED.unpack_from(data, FRAME.size)
    reason = data[FRAME.size + LOADED.size :].decode("utf-8", "replace")
    return went_well == 1, line, reason


class Results:
    """Reads the outcomes of one batch.

    ``is_retiring``: Whether the worker asks to be replaced. Then calls may be missing at the end,
    or all of them: it did not begin with them.
    """

    def __init__(self, count: int, limits: FunctionLimits) -> None:
        self.outcomes: list[Outcome] = []
        self.is_retiring = False
        self.done = False
        self._count = count
        self._output = limits.output_bytes
        self._largest = CALL.size + limits.output_bytes + MESSAGE_BYTES
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> list[Outcome]:
        """Take in what the worker sent."""
        buffer = self._buffer
        buffer += chunk
        at, end, before = 0, len(buffer), len(self.outcomes)
        while end - at >= FRAME.size:
            if self.done:
                raise WorkerError("the worker went on after the end of a batch")
            length, kind = FRAME.unpack_from(buffer, at)
            if length > self._largest:
                raise WorkerError(f"the worker announced a frame of {length} bytes")
            if end - at - FRAME.size < length:
                break
            at += FRAME.size
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
        return len(self.outcomes) == self._count or bool(flags & _RETIRE)

    def _outcome(self, buffer: bytearray, at: int, length: int) -> Outcome:
        if length < CALL.size:
            raise WorkerError("the worker sent a short result")
        number, status, score, cpu, wall, printed = CALL.unpack_from(buffer, at)
        said = length - CALL.size - printed
        if number != len(self.outcomes) or number >= self._count:
            raise WorkerError(f"the worker sent result {number} out of turn")
        if status >= len(STATUSES) or printed > self._output or not 0 <= said <= MESSAGE_BYTES:
            raise WorkerError(f"the worker sent a malformed result for call {number}")
        message = output = ""
        if printed or said:
            at += CALL.size
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


Isolation = Literal["call", "batch"]
TierChoice = Literal["auto", "bwrap", "landlock"]
OutcomeStatus = Literal[
    "ok",
    "error",
    "bad_return",
    "cpu_timeout",
    "wall_timeout",
    "memory",
    "crash",
    "recursion",
    "late",
    "sandbox_error",
]
STATUSES: tuple[OutcomeStatus, ...] = get_args(OutcomeStatus)[:-2]
"""The statuses that a worker may report, by their number; the last two are the host's own."""

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What a worker loads: untrusted source, and the modules that we give it."""

    source: str
    entry: str = "grade"
    # Further importable modules, ours, from full name to source. A name that is the beginning of
    # another (``a`` of ``a.b``) is a package.
    modules: Mapping[str, str] = field(default_factory=dict[str, str])
    # ``module:function`` of those modules: turns the decoded payload into the tuple of positional
    # arguments. Empty: the payload itself is the one argument.
    argument: str = ""
    # A module of `modules` whose public names are in the program's globals before it runs. Empty
    # for none.
    provided: str = ""
    # Whether the entry must be the very ``async def`` that the source has: a program that puts
    # something else in its place cannot be loaded.
    as_written: bool = False

    def __post_init__(self) -> None:
        if not self.entry.isidentifier():
            raise InputError(f"the entry {self.entry!r} cannot be the name of a function")
        module, _, function = self.argument.partition(":")
        if self.argument and (module not in self.modules or not function):
            raise InputError(
                f"argument {self.argument!r} names nothing in the program's modules",
                hint="write it module:function",
            )
        if self.provided and self.provided not in self.modules:
            raise InputError(f"provided {self.provided!r} is not one of the program's modules")

    @property
    def digest(self) -> str:
        """SHA-256 over everything that decides what the program does, in hexadecimal."""
        parts = [self.source, self.entry, self.argument, self.provided, str(self.as_written)]
        for name in sorted(self.modules):
            parts += [name, self.modules[name]]
        digest = hashlib.sha256()
        for part in parts:
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "little") + data)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionLimits:
    """How much one call may use. The same on every machine, so that scores are."""

    # CPU time of the call's process. It is read from that process's own clock, so that a busy
    # machine makes nobody time out.
    cpu_seconds: float = 2.0
    wall_seconds: float = 10.0
    # CPU time in which the program must have loaded; twice that in real time.
    load_seconds: float = 10.0
    memory_bytes: int = 1024 * _MIB
    # Processes and threads at one time. In the tier ``landlock`` a call may start threads only.
    processes: int = 16
    output_bytes: int = 65_536
    payload_bytes: int = 16 * _MIB

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value: float = getattr(self, name)
            if not 0 < value < 2**40:
                raise InputError(f"the limit {name} is {value!r}; it must be positive and finite")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one call.

    Whose fault: `error` and `bad_return` are the program's. `cpu_timeout`, `wall_timeout`,
    `memory`, `crash` and `recursion` belong to this call: it did so twice, the second time alone on
    a fresh worker.
    `late` is neither's: whoever waited for it gave it less than the limit. `sandbox_error` is ours.
    """

    # ``ok`` only if there is a score.
    status: OutcomeStatus
    # A finite float where the status is ``ok``, else None.
    score: float | None = None
    # What went wrong, for people; written by the program, so not to be trusted.
    message: str = ""
    output: str = ""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    retried: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """Whether a program can be loaded, and what it says to some payloads."""

    error: str = ""
    line: int | None = None
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    tier: str = ""
