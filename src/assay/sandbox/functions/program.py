"""A function that nobody trusts, what it may use, and what came of one call."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from assay.errors import InputError

__all__ = [
    "FunctionLimits",
    "Isolation",
    "LoadReport",
    "Outcome",
    "OutcomeStatus",
    "Program",
    "TierChoice",
]

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
    "sandbox_error",
]

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What a worker loads: untrusted source, and the modules that we give it.

    Attributes:
        source: Python source; untrusted.
        entry: The function of it that is called, ``async`` or not.
        modules: Further importable modules, ours, from full name to source. A name that is the
            beginning of another (``a`` of ``a.b``) is a package.
        argument: ``module:function`` of those modules: turns the decoded payload into the tuple of
            positional arguments. Empty: the payload itself is the one argument.
        provided: A module of `modules` whose public names are in the program's globals before it
            runs. Empty for none.
        as_written: Whether the entry must be the very ``async def`` that the source has: a program
            that puts something else in its place cannot be loaded.

    Raises:
        InputError: ``argument`` or ``provided`` names a module that is not in ``modules``.
    """

    source: str
    entry: str = "grade"
    modules: Mapping[str, str] = field(default_factory=dict[str, str])
    argument: str = ""
    provided: str = ""
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
    """How much one call may use. The same on every machine, so that scores are.

    Attributes:
        cpu_seconds: CPU time of the call's process. It is read from that process's own clock, so
            that a busy machine makes nobody time out.
        wall_seconds: Real time of the call, for those that sleep.
        load_seconds: CPU time in which the program must have loaded; twice that in real time.
        memory_bytes: Address space of each process.
        processes: Processes and threads at one time. In the tier ``landlock`` a call may start
            threads only.
        output_bytes: How much of what a call prints is kept, from its beginning.
        payload_bytes: The largest payload.
    """

    cpu_seconds: float = 2.0
    wall_seconds: float = 10.0
    load_seconds: float = 10.0
    memory_bytes: int = 1024 * _MIB
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

    Whose fault: `error` and `bad_return` are the program's. `cpu_timeout`, `wall_timeout`, `memory`
    and `crash` belong to this call: it did so twice, the second time alone on a fresh worker.
    `sandbox_error` is ours.

    Attributes:
        status: ``ok`` only if there is a score.
        score: A finite float where the status is ``ok``, else None.
        message: What went wrong, for people; written by the program, so not to be trusted.
        output: What the call printed to stdout and stderr, its head; likewise.
        cpu_seconds: CPU time of the call, 0 where it is not known.
        wall_seconds: Real time of the call.
        retried: Whether this is the outcome of a second try.
    """

    status: OutcomeStatus
    score: float | None = None
    message: str = ""
    output: str = ""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    retried: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """Whether a program can be loaded, and what it says to some payloads.

    Attributes:
        error: Why it cannot be loaded; empty if it can.
        line: 1-based line of the program's source where it failed, if known.
        outcomes: One for each payload; empty if it cannot be loaded.
        tier: What isolated it.
    """

    error: str = ""
    line: int | None = None
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    tier: str = ""
