"""Turn a program's source into something that can be called."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType, TracebackType

__all__ = ["FILE", "LoadError", "Loaded", "load", "where"]

FILE = "<program>"
"""What a program's file is called in its tracebacks."""

_MESSAGE = 2000
_COROUTINE = 0x80  # CO_COROUTINE: an `async def` without a `yield`
# The program may replace any builtin.
_type = type


def _sample() -> None: ...


_Function, _Code = type(_sample), type(_sample.__code__)


class LoadError(Exception):
    """The program could not be loaded: ``args`` are a message and a line, or 0."""


class Loaded:
    """A program, ready to be called.

    Attributes:
        function: Its entry.
        arguments: Turns a decoded payload into positional arguments; None for the payload itself.
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

    Args:
        parts: Source, entry, argument, provided, whether the entry must be as it is written (empty
            for no), then name and source of each module. Emptied.

    Raises:
        LoadError: It cannot be loaded, whatever the reason.
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
    """See that what is called is what the source says: it may have been replaced meanwhile.

    Raises:
        LoadError: It is something else than the ``async def`` of that name.
    """
    line = 0
    called = function.__code__ if _type(function) is _Function else None  # type: ignore[attr-defined] - a function has it
    for made in _codes(code):
        if made.co_qualname == entry and made.co_flags & _COROUTINE:
            if made is called:
                return
            line = made.co_firstlineno
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
            return f"{type(error).__name__}: {error.msg}"[:_MESSAGE], error.lineno or 0
        return f"{type(error).__name__}: {error}"[:_MESSAGE], line
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
