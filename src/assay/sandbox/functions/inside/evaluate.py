"""One call of the program, in a process of its own. Nothing outside trusts what this says."""

from __future__ import annotations

import sys
from _json import make_scanner

from assay.sandbox.functions.inside.wire import MESSAGE_BYTES, REPLY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import (
        Awaitable,
        Callable,
        Coroutine,
        Generator,
        Iterator,
        Mapping,
        Sequence,
    )
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType, TracebackType
    from typing import Any, Protocol

    class Loop(Protocol):
        """As much of an event loop as is needed here."""

        def run_until_complete(self, future: Coroutine[object, object, object], /) -> object:
            """What comes of it."""
            ...


OK, ERROR, BAD_RETURN, CPU_TIMEOUT, WALL_TIMEOUT, MEMORY, CRASH, RECURSION = range(8)
NEEDS_LOOP = 8
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
_issubclass = issubclass
_tuple: type[tuple[object, ...]] = tuple


async def _sample() -> None: ...


_sampled = _sample()
_Coroutine = type(_sampled)
_sampled.close()


class _NeedsLoopError(Exception):
    """Something other than a coroutine has to be waited for, and no loop is running."""


_DONE = object()  # before what a coroutine returned; nobody else has it


def _driven(coroutine: Awaitable[object]) -> Generator[object, None, None]:
    """Run a coroutine to its end, if it gets there without waiting; yields a pair then.

    No exception is made at the end, as `send` would: it touches much memory, which costs a fork.
    """
    yield _DONE, (yield from coroutine)  # type: ignore[misc] - allowed by the flag below


# What `types.coroutine` does, without that module.
_driven.__code__ = _driven.__code__.replace(
    co_flags=_driven.__code__.co_flags | _ITERABLE_COROUTINE
)


def evaluate(  # noqa: PLR0911 - in one piece, see below
    loaded: Loaded, payload: bytes, loop: Loop | None = None
) -> tuple[int, float, str]:
    """Call the program. Runs untrusted code.

    Each memory page that this touches is copied for each call, so that it makes few objects and
    calls few functions.
    """
    end = -1
    try:
        text = _str(payload, "utf-8")
        value, end = _scan(text, 0)
        if end != _len(text):
            return ERROR, 0.0, "the payload goes on after its JSON"
        make = loaded.arguments
        result = loaded.function(value) if make is None else loaded.function(*make(value))
        kind = _type(result)
        if kind is _Coroutine and loop is None:
            try:
                done = _driven(result).send(None)  # type: ignore[arg-type] - it is one
            except MemoryError:
                raise
            except Exception:  # perhaps only because no loop is running
                return NEEDS_LOOP, 0.0, ""
            # Whatever else it yields, it waits for something.
            if _type(done) is not _tuple or _len(done) != 2 or done[0] is not _DONE:
                return NEEDS_LOOP, 0.0, ""
            result = done[1]
            kind = _type(result)
        elif kind is not _float and kind is not _int:
            result = _awaited(result, kind, loop)
            kind = _type(result)
        if kind is not _float and kind is not _int:
            return BAD_RETURN, 0.0, f"it returned {_name(kind)}, not a float"
        number = _float(result)  # type: ignore[arg-type] - it is one, or an int
    except BaseException as error:  # whatever the program raises, also SystemExit
        return _failure(error) if end >= 0 else (ERROR, 0.0, "the payload is not JSON")
    if -_LARGEST <= number <= _LARGEST:
        return OK, number, ""
    return BAD_RETURN, 0.0, f"it returned {number}, which is not a score"


def _awaited(result: object, kind: type, loop: Loop | None) -> object:
    """What came of it, if the program has to be waited for in a loop."""
    if kind is not _Coroutine and not hasattr(kind, "__await__"):
        return result
    if loop is None:
        raise _NeedsLoopError
    return loop.run_until_complete(_wait(result))  # type: ignore[arg-type]


async def _wait(awaitable: Awaitable[object]) -> object:
    return await awaitable


def _failure(error: BaseException) -> tuple[int, float, str]:
    kind = _type(error)
    if kind is _NeedsLoopError:
        return NEEDS_LOOP, 0.0, ""
    # Nested deeply or long enough, any answer brings these about.
    for limit, status in ((MemoryError, MEMORY), (RecursionError, RECURSION)):
        if _issubclass(kind, limit):
            return status, 0.0, ""
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


FILE = "<program>"
"""What a program's file is called in its tracebacks."""

_COROUTINE = 0x80  # CO_COROUTINE: an `async def` without a `yield`


def _plain() -> None: ...


_Function, _Code = type(_plain), type(_plain.__code__)


class LoadError(Exception):
    """The program could not be loaded: ``args`` are a message and a line, or 0."""


class Loaded:
    """A program, ready to be called.

    ``arguments``: Turns a decoded payload into positional arguments; None for the payload itself.
    """

    def __init__(
        self,
        function: Callable[..., object],
        arguments: Callable[[object], Sequence[object]] | None,
    ) -> None:
        self.function = function
        self.arguments = arguments


class _Given:
    """Imports the modules that came with the program; they exist as source only."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Part of Python's import protocol, as are the others."""
        is_package = any(other.startswith(f"{name}.") for other in self._sources)
        if name not in self._sources and not is_package:
            return None
        # Its class is `ModuleSpec`, which to import would be dear.
        return type(sys.__spec__)(name, self, origin="given", is_package=is_package)

    def create_module(self, spec: ModuleSpec) -> None:
        """Python's own kind of module will do."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's source."""
        source = self._sources.get(module.__name__, "")
        code = compile(source, f"<{module.__name__}>", "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 - that is what loading is


def load(parts: list[bytes]) -> Loaded:
    """Load a program. Runs untrusted code.

    ``parts``: Source, entry, argument, provided, whether the entry must be as it is written (empty
    for no), then name and source of each module. Emptied.
    """
    source, entry, argument, provided, as_written, *rest = (
        part.decode("utf-8", "surrogatepass") for part in parts
    )
    parts.clear()
    modules = dict(zip(rest[::2], rest[1::2], strict=True))
    try:
        loaded, code = _load(source, entry, argument, provided, modules)
    except BaseException as error:
        raise LoadError(*_explain(error)) from None
    if as_written:
        _check_written(loaded.function, code, entry)
    return loaded


def _load(
    source: str, entry: str, argument: str, provided: str, modules: Mapping[str, str]
) -> tuple[Loaded, CodeType]:
    if modules:
        sys.meta_path.insert(0, _Given(modules))
    arguments = None
    if argument:
        module, _, function = argument.partition(":")
        arguments = getattr(_imported(module), function)
    main = type(sys)("program")
    names = main.__dict__
    names["__file__"] = FILE
    if provided:
        given = _imported(provided)
        public = getattr(given, "__all__", None)
        if public is None:
            public = [name for name in vars(given) if not name.startswith("_")]
        names.update((name, getattr(given, name)) for name in public)
    sys.modules["program"] = main
    code: CodeType = compile(source, FILE, "exec", dont_inherit=True)
    exec(code, names)  # noqa: S102 - that is what loading is
    if entry not in names:
        raise NameError(f"it defines no function {entry!r}; write one at the top level of the file")
    function = names[entry]
    if not callable(function):
        raise TypeError(f"{entry!r} is not a function; give that another name")
    return Loaded(function, arguments), code


def _check_written(function: object, code: CodeType, entry: str) -> None:
    """See that what is called is what the source says: it may have been replaced meanwhile."""
    line = 0
    called = function.__code__ if _type(function) is _Function else None  # type: ignore[attr-defined] - a function has it
    for made in _codes(code):
        if made.co_qualname != entry:
            continue
        if made.co_flags & _COROUTINE:
            if made is called:
                return
            line = made.co_firstlineno
        elif made is called:
            why = f"{entry!r} must be 'async def'; write 'async' before 'def'"
            raise LoadError(why, made.co_firstlineno)
    replaced = "something in the file replaces it when it is loaded; take that out"
    raise LoadError(f"{entry!r} is not the 'async def' of the file: {replaced}", line)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of every function and class that code makes."""
    waiting = [code]
    while waiting:
        inner = [c for c in waiting.pop().co_consts if _type(c) is _Code]
        yield from inner
        waiting += inner


def _imported(name: str) -> ModuleType:
    __import__(name)
    return sys.modules[name]


def _explain(error: BaseException) -> tuple[str, int]:
    line = where(error)
    try:
        if isinstance(error, SyntaxError) and error.filename == FILE:
            return f"{type(error).__name__}: {error.msg}"[:MESSAGE_BYTES], error.lineno or 0
        return f"{type(error).__name__}: {error}"[:MESSAGE_BYTES], line
    except BaseException:
        return "an error that cannot be shown", line


def where(error: BaseException) -> int:
    """The last line of the program's own source that an error passed through, or 0."""
    line = 0
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILE:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
