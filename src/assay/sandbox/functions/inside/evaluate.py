"""One call of the program, in a process of its own. Nothing outside trusts what this says."""

from __future__ import annotations

from _json import make_scanner

from assay.sandbox.functions.inside.loading import where
from assay.sandbox.functions.inside.wire import MESSAGE_BYTES, REPLY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator
    from typing import Any, Protocol

    from assay.sandbox.functions.inside.loading import Loaded

    class Loop(Protocol):
        """As much of an event loop as is needed here."""

        def run_until_complete(self, future: Coroutine[object, object, object], /) -> object: ...


__all__ = [
    "BAD_RETURN",
    "CPU_TIMEOUT",
    "CRASH",
    "ERROR",
    "MEMORY",
    "NEEDS_LOOP",
    "OK",
    "WALL_TIMEOUT",
    "evaluate",
    "light_loop",
    "packed",
]

OK, ERROR, BAD_RETURN, CPU_TIMEOUT, WALL_TIMEOUT, MEMORY, CRASH = range(7)
NEEDS_LOOP = 7
"""Never leaves the worker: the call is to be made again, under an event loop."""

_ITERABLE_COROUTINE = 0x100
_LARGEST = 1.7976931348623157e308


class _Settings:
    """What the C part of `json` asks its decoder; the defaults of `json.loads`."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = {
        "-Infinity": float("-inf"),
        "Infinity": float("inf"),
        "NaN": float("nan"),
    }.__getitem__


_scan: Callable[[str, int], tuple[object, int]] = make_scanner(_Settings)  # pyright: ignore[reportArgumentType] - its attributes do
# The program may replace any builtin; what it replaces is its own.
_type, _float, _int, _str, _len, _pack = type, float, int, str, len, REPLY.pack


async def _sample() -> None: ...


_sampled = _sample()
_Coroutine = type(_sampled)
_sampled.close()


class _NeedsLoopError(Exception):
    """A coroutine waits for something, or has failed, perhaps only because no loop is running."""


class _Done:
    """What a coroutine returned; nobody else has this class."""

    def __init__(self, result: object) -> None:
        self.result = result


def _driven(coroutine: Awaitable[object]) -> Generator[object, None, None]:
    """Run a coroutine to its end, if it gets there without waiting; yields `_Done` then.

    No exception is made at the end, as `send` would: it touches much memory, which costs a fork.
    """
    yield _Done((yield from coroutine))  # type: ignore[misc] - allowed by the flag below


# What `types.coroutine` does, without that module.
_driven.__code__ = _driven.__code__.replace(
    co_flags=_driven.__code__.co_flags | _ITERABLE_COROUTINE
)


def evaluate(loaded: Loaded, payload: bytes, loop: Loop | None = None) -> tuple[int, float, str]:
    """Call the program. Runs untrusted code.

    Each memory page that this touches is copied for each call, so that it makes few objects and
    calls few functions.

    Args:
        loaded: The program.
        payload: JSON.
        loop: An event loop for it to wait in, or None: then a call that seems to want one is
            answered with `NEEDS_LOOP`.

    Returns:
        Status, score and message.
    """
    end = -1
    try:
        text = _str(payload, "utf-8").strip(" \n\r\t")
        value, end = _scan(text, 0)
        if end != _len(text):
            return ERROR, 0.0, "the payload goes on after its JSON"
        make = loaded.arguments
        result = loaded.function(value) if make is None else loaded.function(*make(value))
        kind = _type(result)
        if kind is not _float and kind is not _int:
            result = _awaited(result, kind, loop)
            kind = _type(result)
            if kind is not _float and kind is not _int:
                return BAD_RETURN, 0.0, f"it returned {_name(kind)}, not a float"
        number = _float(result)  # type: ignore[arg-type] - it is one, or an int
    except BaseException as error:  # whatever the program raises, also SystemExit
        return _failure(error) if end >= 0 else (ERROR, 0.0, "the payload is not JSON")
    if -_LARGEST <= number <= _LARGEST:
        return OK, number, ""
    return BAD_RETURN, 0.0, f"it returned {number}, which is no score"


def _awaited(result: object, kind: type, loop: Loop | None) -> object:
    """What came of it, if the program has to be waited for."""
    if kind is not _Coroutine and not hasattr(kind, "__await__"):
        return result
    if loop is not None:
        return loop.run_until_complete(_wait(result))  # type: ignore[arg-type]
    if kind is not _Coroutine:
        raise _NeedsLoopError
    try:
        done = _driven(result).send(None)  # type: ignore[arg-type]
    except MemoryError:
        raise
    except Exception:
        raise _NeedsLoopError from None
    if _type(done) is not _Done:
        raise _NeedsLoopError
    return done.result


async def _wait(awaitable: Awaitable[object]) -> object:
    return await awaitable


def _failure(error: BaseException) -> tuple[int, float, str]:
    kind = _type(error)
    if kind is _NeedsLoopError:
        return NEEDS_LOOP, 0.0, ""
    if kind is MemoryError:
        return MEMORY, 0.0, ""
    line = where(error)
    place = f", line {line}" if line else ""
    try:
        text = _str(error)[:MESSAGE_BYTES]
        if kind is OverflowError and "int too large to convert" in text:
            return BAD_RETURN, 0.0, "it returned an int too large for a float"
        return ERROR, 0.0, f"{kind.__name__}: {text}"[: MESSAGE_BYTES - 20] + place
    except BaseException:  # its __str__ is the program's, too
        return ERROR, 0.0, f"an error that cannot be shown{place}"


def packed(
    status: int, score: float, message: str, *, cpu: float = 0.0, output: bytes = b""
) -> bytes:
    """A reply as it crosses the pipe."""
    if not message and not output:
        return _pack(status, score, cpu, 0, 0)
    said = message.encode("utf-8", "replace")[:MESSAGE_BYTES]
    return _pack(status, score, cpu, _len(said), _len(output)) + said + output


def _name(kind: type) -> str:
    try:
        return _str(kind.__name__)[:100]
    except BaseException:
        return "something"


def light_loop() -> Loop:
    """An event loop that owns no descriptor until it needs one: cheap to make, free to fork.

    asyncio's own makes a pair of sockets at once. It has no switch for that, so that the methods
    which make, use and close them are replaced.
    """
    import asyncio
    import selectors

    plain: Any = asyncio.SelectorEventLoop  # what is changed has no types

    class Light(plain):
        def _make_self_pipe(self) -> None:
            self._ssock = self._csock = None

        def _close_self_pipe(self) -> None:
            if self._ssock is not None:
                plain._close_self_pipe(self)  # noqa: SLF001 - see the docstring

        def _write_to_self(self) -> None:
            if self._csock is not None:
                plain._write_to_self(self)  # noqa: SLF001 - see the docstring

        def _be_woken(self) -> None:
            if self._ssock is None:
                plain._make_self_pipe(self)  # noqa: SLF001 - see the docstring

        def run_in_executor(self, *arguments: object) -> object:
            self._be_woken()
            return plain.run_in_executor(self, *arguments)

        def add_signal_handler(self, *arguments: object) -> None:
            self._be_woken()
            plain.add_signal_handler(self, *arguments)

    loop = Light(selectors.SelectSelector())
    asyncio.set_event_loop(loop)
    return loop
