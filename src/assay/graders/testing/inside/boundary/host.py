"""The solution's side: imports the submission and answers what the judge asks.

One process waits, and forks for each session, so that what a session imports and changes is its
own. Nothing here is trusted: it shares its process with the submission, and the judge believes of
what it says only what it can decide on itself.
"""

from __future__ import annotations

import builtins
import dataclasses
import enum
import functools
import importlib
import io
import os
import signal
import socket
import sys
import threading
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = "assay.graders.testing.inside.boundary"
if __name__ == "__main__":
    # The files beside this one are found by their names, and no other way into assay is there.
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    for _end in [at for at, letter in enumerate(f"{_PACKAGE}.") if letter == "."]:
        sys.modules[_PACKAGE[:_end]] = types.ModuleType(_PACKAGE[:_end])
        sys.modules[_PACKAGE[:_end]].__path__ = [_HERE] if _end == len(_PACKAGE) else []

from assay.graders.testing.inside.boundary.wire import (  # noqa: E402
    ARITHMETIC,
    OPERATORS,
    GoneError,
    Plain,
    WireError,
    receive,
    send,
)

_LINK = os.environ.get("ASSAY_LINK", "/opt/assay/link")
_MOST_OUTPUT = 4 * 1024 * 1024

_BASES = (str, bytes, bytearray, int, float, complex, tuple, list, dict, set, frozenset)
_MUTABLE = (list, dict, set, bytearray)
_DECIDING = ("__bool__", "__contains__", "__lt__", "__hash__", "__len__")
_STANDARD = frozenset(getattr(sys, "stdlib_module_names", ())) | {"builtins"}


class Handle:
    """An object of the judge's, of which this side has only a number."""

    def __init__(self, number: int) -> None:
        object.__setattr__(self, "_assay_handle", number)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _session().ask("attribute", self._assay_handle, name)

    def __setattr__(self, name: str, value: object) -> None:
        _session().ask("assign", self._assay_handle, name, value)


def _handle_operator(name: str) -> Callable[..., Any]:
    def operate(self: Handle, *arguments: object) -> Any:
        return _session().ask("operate", self._assay_handle, name, list(arguments))

    return operate


@functools.cache
def _handle_kind(operators: tuple[str, ...], is_async: object) -> type[Handle]:
    space = {name: _handle_operator(name) for name in operators if name in OPERATORS}
    if "__call__" in space:
        space["__call__"] = _await_handle if is_async else _call_handle
    if "__eq__" in space and "__hash__" not in space:
        space["__hash__"] = object.__hash__
    return type("Handle", (Handle,), space)


def _opener(file: Any, place: str) -> Callable[[], int]:
    """What gives this process a descriptor for a file that a test has opened: a copy to read."""
    import tempfile

    @functools.cache
    def fileno() -> int:
        if not file.readable():
            return os.open(place, os.O_WRONLY)
        bytes_of = getattr(file, "buffer", file)
        at = file.tell()
        bytes_of.seek(0)
        with tempfile.TemporaryFile() as made:
            made.write(bytes_of.read())
            made.flush()
            copy = os.dup(made.fileno())
        file.seek(at)
        os.lseek(copy, at, os.SEEK_SET)
        return copy

    return fileno


def _call_handle(self: Handle, *arguments: object, **named: object) -> Any:
    return _session().ask("call", self._assay_handle, list(arguments), named)


async def _await_handle(self: Handle, *arguments: object, **named: object) -> Any:
    import asyncio

    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(None, lambda: _call_handle(self, *arguments, **named))


class Output:
    """What the process writes to a descriptor, kept until it is told to the judge."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._reader, writer = os.pipe()
        try:
            import fcntl

            fcntl.fcntl(writer, 1031, 1 << 20)  # F_SETPIPE_SZ
        except OSError:
            pass
        os.dup2(writer, descriptor)
        os.close(writer)
        os.set_blocking(self._reader, False)
        self._lock = threading.Lock()
        self._kept = bytearray()
        self._room = _MOST_OUTPUT

    def watch(self) -> None:
        """Keep the pipe from filling up."""
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        import select

        while True:
            select.select([self._reader], [], [])
            if not self._pull():
                return

    def _pull(self) -> bool:
        with self._lock:
            while True:
                try:
                    chunk = os.read(self._reader, 1 << 16)
                except BlockingIOError:
                    return True
                except OSError:
                    return False
                if not chunk:
                    return False
                self._kept += chunk[: max(self._room, 0)]
                self._room -= len(chunk)

    def take(self) -> str:
        """What was written since the last time."""
        self._pull()
        with self._lock:
            text = self._kept.decode("utf-8", "replace")
            self._kept.clear()
        return text


class Session(Plain):
    """One import of the submission, and everything that the judge holds of it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.objects: dict[int, Any] = {}
        self.numbers: dict[int, int] = {}
        self.told: set[int] = set()
        self.handles: dict[int, Any] = {}
        self.before: dict[tuple[int, str], Any] = {}
        self.patched: list[tuple[Any, str, Any]] = []
        self.local = threading.local()
        self.lock = threading.RLock()
        self.loop: Any = None
        self.imported: set[str] = set()
        self.outputs: tuple[Output, ...] = ()
        self.environment = dict(os.environ)
        self.judges_path: list[str] = []
        self.place = os.getcwd()

    # -- references ----------------------------------------------------------------------------

    def number_of(self, value: object) -> int:
        with self.lock:
            key = id(value)
            number = self.numbers.get(key)
            if number is None:
                number = self.numbers[key] = len(self.objects) + 1
                self.objects[number] = value
            return number

    def other(self, value: Any, depth: int) -> list[Any]:
        kind = type(value)
        if issubclass(kind, Handle):
            return ["h", object.__getattribute__(value, "_assay_handle")]
        number = getattr(value, "_assay_handle", None) if callable(value) else None
        if type(number) is int and self.handles.get(number) is value:  # no wrapper, no method
            return ["h", number]
        if isinstance(value, type):
            return self.class_of(value)
        if isinstance(value, enum.Enum) and (known := self.of_both(kind)):
            name = value.name if value.name in kind.__members__ else None
            return ["em", known, name, self.encode(value.value, depth + 1)]
        if kind is types.ModuleType or isinstance(value, types.ModuleType):
            doc = value.__doc__ if type(value.__doc__) is str else None
            return ["m", self.number_of(value), str(value.__name__), doc]
        if isinstance(value, BaseException):
            return self.error(value, depth)
        if kind is types.CoroutineType:
            return ["co", self.number_of(value)]
        return ["o", self.number_of(value), self.class_of(kind)]

    def of_both(self, kind: Any) -> list[Any]:
        """How the judge knows an enumeration that is not the submission's; empty for others."""
        number = getattr(kind, "_assay_handle", None)
        if type(number) is int and self.handles.get(number) is kind:
            return ["h", number]
        place = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
        is_standard = kind.__module__.partition(".")[0] in _STANDARD
        return [kind.__module__, kind.__qualname__] if is_standard or _is_installed(place) else []

    def class_of(self, kind: type) -> list[Any]:
        module, name = str(kind.__module__), str(kind.__qualname__)
        if module == "builtins" and getattr(builtins, name, None) is kind:
            return ["C", name]
        number = self.number_of(kind)
        if number in self.told:
            return ["k", number]
        self.told.add(number)
        return ["k", number, self.describe(kind, module, name)]

    def describe(self, kind: type, module: str, name: str) -> dict[str, Any]:
        operators: set[str] = set()
        for one in kind.__mro__:
            if one is not object:
                operators |= OPERATORS & set(vars(one))
        if getattr(kind, "__hash__", None) is None:
            operators.discard("__hash__")
        members: Any = list(vars(kind).items())
        described: dict[str, Any] = {
            "name": name,
            "module": module,
            "bases": [self.class_of(base) for base in kind.__bases__],
            "operators": sorted(operators),
            "equal": _equality(kind),
            "own": sorted(one for one in (*_DECIDING, *ARITHMETIC) if _is_own(kind, one)),
            "methods": [
                one
                for one, member in members
                if isinstance(member, (types.FunctionType, property, classmethod, staticmethod))
                and type(one) is str
                and (not one.startswith("__") or one == "__init__")
            ],
            "meta": sorted(OPERATORS & _beyond_type(type(kind))),
            "doc": kind.__doc__ if type(kind.__doc__) is str else None,
        }
        if _equality(kind) == "fields" and _is_written(vars(kind).get("__lt__")):
            described["ordered"] = True
        if _is_record(kind):
            described["built"] = [
                [one.name, _is_compared(one), self.default_of(one)] for one in _fields_of(kind)
            ]
        return described

    def default_of(self, field: Any) -> Any:
        """The default of a field, in a list; None where it has none, or one made by its code."""
        make = getattr(field, "default_factory", getattr(field.default, "factory", None))
        if make in (list, dict, set, tuple, str, int):
            return [self.encode(make())]
        is_plain = type(field.default) in (type(None), bool, int, float, str, tuple)
        return [self.encode(field.default)] if is_plain else None

    def error(self, value: BaseException, depth: int) -> list[Any]:
        mine = getattr(value, "_assay_judges", None)
        if type(mine) is int:
            return ["J", mine]
        kind = type(value)
        described = self.class_of(kind)  # the judge reads it first, so it is told first
        arguments, told = [], {}
        for argument in value.args:
            try:
                arguments.append(self.encode(argument, depth + 1))
            except WireError:
                arguments.append(repr(argument))
        for name, held in list(vars(value).items()):
            is_told = type(name) is str and (not name.startswith("__") or name == "__notes__")
            if is_told and len(told) < 50:
                try:
                    told[name] = self.encode(held, depth + 1)
                except WireError:
                    continue
        text = None
        if not _is_builtin(getattr(kind, "__str__", None)):
            text = str(value)
        inner = []
        if depth < 10 and isinstance(parts := getattr(value, "exceptions", None), tuple):
            inner = [self.error(one, depth + 1) for one in parts]
        reasons = [
            None if one is None or depth >= 10 else self.error(one, depth + 5)
            for one in (value.__cause__, value.__context__)
        ]
        return [
            "e",
            self.number_of(value),
            described,
            arguments,
            told,
            text,
            inner,
            *reasons,
        ]

    def others(self, node: list[Any]) -> Any:
        tag = node[0]
        if tag == "R":
            return self.objects[node[1]]
        if tag == "P":
            return self.find(node[1], node[2])
        if tag == "H":
            return self.handle(*node[1:])
        if tag == "C":
            return getattr(builtins, node[1])
        if tag == "S":
            return _by_name(node[1], node[2])
        if tag == "EC":
            return self.enumeration(*node[1:])
        if tag == "EM":
            found = self.decode(node[1])
            return found[node[2]] if node[2] is not None else found(self.decode(node[3]))
        if tag == "E":
            return self.judges_error(*node[1:])
        raise WireError(f"a value of the unknown kind {tag!r}")

    def find(self, module: str, path: list[str]) -> Any:
        found: Any = sys.modules.get(module) or importlib.import_module(module)
        for step in path:
            found = getattr(found, step)
        return found

    def handle(self, number: int, form: dict[str, Any]) -> Any:
        with self.lock:
            if number in self.handles:
                return self.handles[number]
            if form.get("kind") == "function":
                made: Any = _function(number, form)
            else:
                made = _handle_kind(tuple(form.get("operators", ())), form.get("async"))(number)
                if "file" in form:
                    object.__setattr__(made, "fileno", _opener(made, form["file"]))
            self.handles[number] = made
            return made

    def enumeration(
        self, number: int, name: str = "", bases: Any = (), space: list[Any] | None = None
    ) -> Any:
        """An enumeration of the tests, made again."""
        if space is not None:

            def fill(made: Any) -> None:
                for key, member in space:
                    made[key] = self.decode(member)

            made: Any = types.new_class(name, tuple(map(self.decode, bases)), {}, fill)
            made._assay_handle = number
            made.__module__ = "__judge__"
            self.handles[number] = made
        return self.handles[number]

    def judges_error(
        self, number: int, module: str, name: str, arguments: list[Any], bases: list[str]
    ) -> BaseException:
        kind = _by_name(module, name, missing=None)
        values = self.decode(["l", arguments])
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            base = next(
                (getattr(builtins, one) for one in bases if hasattr(builtins, one)), Exception
            )
            kind = type(name, (base,), {"__module__": module})
        try:
            error = kind(*values)
        except Exception:
            error = kind.__new__(kind, *values)
        error.__dict__["_assay_judges"] = number
        return error

    # -- talking -------------------------------------------------------------------------------

    def lane(self) -> socket.socket:
        """The connection of this thread; one is opened where it has none."""
        link = getattr(self.local, "link", None)
        if link is None:
            link = self.local.link = _connect(["lane", self.number])
        return link

    def ask(self, *question: Any) -> Any:
        """Ask the judge for something, and serve it until it answers."""
        link = self.lane()
        self.tell_output(link)
        send(link, ["ask", question[0], *[self.encode(part) for part in question[1:]]])
        while True:
            message, _ = receive(link)
            if message[0] == "ok":
                return self.decode(message[1])
            if message[0] == "raise":
                raise self.decode(message[1])
            self.serve(link, message)

    def tell_output(self, link: socket.socket) -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                continue
        for output in self.outputs:
            text = output.take()
            if text:
                send(link, ["out", output.descriptor, text])

    def serve_all(self, link: socket.socket) -> None:
        """Serve one connection to its end."""
        self.local.link = link
        while True:
            try:
                message, _ = receive(link)
                self.serve(link, message)
            except (GoneError, OSError):
                return

    def serve(self, link: socket.socket, message: list[Any]) -> None:
        """Do what is asked, and answer."""
        try:
            reply: list[Any] = ["ok", self.do(message)]
        except GoneError:
            raise
        except BaseException as error:
            # A traceback would keep what the frames hold, and nobody reads it.
            reply = ["raise", self.error(error.with_traceback(None), 0)]
        self.tell_output(link)
        around = [self.changed_environment(), self.changed_place()]
        try:
            send(link, [*reply, *around] if any(around) else reply)
        except (WireError, ValueError) as error:
            if isinstance(error, GoneError):
                raise
            send(link, ["raise", self.error(TypeError(str(error)), 0)])

    def changed_place(self) -> str:
        """The working directory, if it is another than the judge knows."""
        try:
            place, before, self.place = os.getcwd(), self.place, os.getcwd()
        except OSError:
            return ""
        return place if place != before else ""

    def changed_environment(self) -> dict[str, Any]:
        now = dict(os.environ)
        if now == self.environment:
            return {}
        gone = {name: None for name in self.environment if name not in now}
        new = {name: text for name, text in now.items() if self.environment.get(name) != text}
        self.environment = now
        return {**new, **gone}

    def take_state(self, state: dict[str, Any]) -> None:
        if "environ" in state:
            for name, text in state["environ"].items():
                if text is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = text
            self.environment = dict(os.environ)
        if "cwd" in state:
            try:
                os.chdir(state["cwd"])
                self.place = os.getcwd()
            except OSError:
                pass
        if "path" in state:
            ours = [entry for entry in sys.path if entry not in self.judges_path]
            self.judges_path = list(state["path"])
            layouts = [os.path.join(one, "src") for one in self.judges_path]
            sys.path[:] = [*self.judges_path, *ours, *filter(os.path.isdir, layouts)]
            importlib.invalidate_caches()

    def do(self, message: list[Any]) -> Any:
        op, state, *rest = message
        if state:
            self.take_state(state)
        action = getattr(self, f"do_{op}")
        # What has to run where the submission's event loop is, runs there.
        if rest and rest[-1] == "on loop":
            return self.on_loop(lambda: action(*rest[:-1]))
        return action(*rest)

    def linked(self, value: Any) -> Any:
        """A container that the judge shall see change is told with its number."""
        if type(value) in _MUTABLE:
            return ["L", self.number_of(value), self.encode(value)]
        return self.encode(value)

    # -- what can be asked ---------------------------------------------------------------------

    def do_import(self, name: str, fresh: object) -> Any:
        if fresh:
            sys.modules.pop(name, None)
        return self.encode(importlib.import_module(name))

    def do_kind(self, target: Any) -> Any:
        """Tell again of a class that was told of in something that did not arrive."""
        kind = self.decode(target)
        self.told.discard(self.number_of(kind))
        return self.class_of(kind)

    def do_reload(self, target: Any) -> Any:
        return self.encode(importlib.reload(self.decode(target)))

    def do_get(self, target: Any, name: str) -> Any:
        return self.linked(getattr(self.decode(target), name))

    def do_names(self, target: Any) -> Any:
        return [str(name) for name in dir(self.decode(target))]

    def do_set(self, target: Any, name: str, value: Any) -> Any:
        owner = self.decode(target)
        # A tool that patches a class does not see what the class itself has, and deletes to undo.
        if isinstance(owner, type) and name in vars(owner):
            self.before.setdefault((id(owner), name), vars(owner)[name])
        setattr(owner, name, self.decode(value))

    def do_delete(self, target: Any, name: str) -> Any:
        owner = self.decode(target)
        first = self.before.pop((id(owner), name), _NOTHING)
        if first is _NOTHING:
            delattr(owner, name)
        else:
            setattr(owner, name, first)

    def do_call(self, target: Any, arguments: list[Any], named: dict[str, Any]) -> Any:
        function = self.decode(target)
        values = [self.decode(one) for one in arguments]
        options = {name: self.decode(one) for name, one in named.items()}
        written = [_MUTABLE.__contains__(type(one)) and self.encode(one) for one in values]
        result = self.encode(function(*values, **options))
        changed = []
        for place, (value, before) in enumerate(zip(values, written)):
            if before:
                after = self.encode(value)
                if after != before:
                    changed.append([place, after])
        return ["X", result, changed] if changed else result

    def do_operate(self, target: Any, name: str, arguments: list[Any]) -> Any:
        value = self.decode(target)
        operands = [self.decode(one) for one in arguments]
        if name == "__next__":
            try:
                return ["v", self.encode(next(value))]
            except StopIteration as end:
                return ["end", self.encode(end.value)]
        if name in ("__exit__", "__aexit__") and operands[1] is not None:
            operands[0] = type(operands[1])
        plain = _PLAIN.get(name)
        if plain is not None:
            return self.encode(plain(value, *operands))
        return self.encode(getattr(type(value), name)(value, *operands))

    def do_await(self, target: Any) -> Any:
        value = self.decode(target)

        async def wait() -> Any:
            return await value

        import asyncio

        return self.encode(asyncio.run_coroutine_threadsafe(wait(), self.running_loop()).result())

    def do_base(self, target: Any) -> Any:
        """The content of an instance of a subclass of a built-in type."""
        value = self.decode(target)
        return self.encode(_content(value))

    def do_fields(self, target: Any) -> Any:
        """The fields of a record, and whether they decide on equality."""
        value = self.decode(target)
        return [
            [one.name, _is_compared(one), self.encode(getattr(value, one.name))]
            for one in _fields_of(type(value))
        ]

    def do_signature(self, target: Any) -> Any:
        import inspect

        function = self.decode(target)
        found = inspect.signature(function)
        return [
            inspect.iscoroutinefunction(function),
            [
                [
                    one.name,
                    int(one.kind),
                    None if one.default is one.empty else [self.encode(one.default)],
                ]
                for one in found.parameters.values()
            ],
        ]

    def do_standard(self, module: str, name: str) -> Any:
        return self.encode(getattr(importlib.import_module(module), name))

    def do_patch(self, module: str, path: list[str], name: str, value: Any) -> Any:
        owner = self.find(module, path)
        self.patched.append((owner, name, vars(owner).get(name, _NOTHING)))
        setattr(owner, name, self.decode(value))

    def do_unpatch(self, module: str, path: list[str], name: str) -> Any:
        owner = self.find(module, path)
        for place in range(len(self.patched) - 1, -1, -1):
            if self.patched[place][0] is owner and self.patched[place][1] == name:
                first = self.patched.pop(place)[2]
                if first is _NOTHING:
                    delattr(owner, name)
                else:
                    setattr(owner, name, first)
                return

    def do_subclass(
        self, name: str, bases: list[Any], space: dict[str, Any], named: dict[str, Any]
    ) -> Any:
        members: dict[str, Any] = {}
        for key, member in space.items():
            kind, value = member
            found = self.decode(value)
            wrap = {"static": staticmethod, "class": classmethod, "property": property}.get(kind)
            members[key] = wrap(found) if wrap else found
        kinds = tuple(self.decode(base) for base in bases)
        options = {key: self.decode(value) for key, value in named.items()}
        made = types.new_class(name, kinds, options, lambda space: space.update(members))
        return self.encode(made)

    def do_member(self, kind: Any, target: Any, name: str) -> Any:
        """What `super()` of a class of the tests finds in one of the submission's."""
        value = self.decode(target)
        member = vars(_owner(self.decode(kind), name))[name]
        return self.linked(member.__get__(value, type(value)))

    # -- event loops ---------------------------------------------------------------------------

    def running_loop(self) -> Any:
        import asyncio

        with self.lock:
            if self.loop is None:
                self.loop = asyncio.new_event_loop()
                threading.Thread(target=self._run_loop, daemon=True).start()
        return self.loop

    def _run_loop(self) -> None:
        import asyncio

        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def on_loop(self, action: Callable[[], Any]) -> Any:
        import asyncio

        async def run() -> Any:
            return action()

        return asyncio.run_coroutine_threadsafe(run(), self.running_loop()).result()


_NOTHING = object()
_PLAIN: dict[str, Callable[..., Any]] = {
    "__len__": len,
    "__iter__": iter,
    "__str__": str,
    "__repr__": repr,
    "__bool__": bool,
    "__hash__": hash,
    "__int__": int,
    "__float__": float,
    "__bytes__": bytes,
    "__fspath__": os.fspath,
    "__format__": format,
    "__reversed__": reversed,
    "__contains__": lambda value, item: item in value,
    "__getitem__": lambda value, key: value[key],
    "__copy__": lambda value, *_: importlib.import_module("copy").copy(value),
    "__deepcopy__": lambda value, *_: importlib.import_module("copy").deepcopy(value),
    "__dir__": dir,
    "__call__": lambda value, *arguments: value(*arguments),
}


def _session() -> Session:
    return _CURRENT[0]


_CURRENT: list[Session] = []


def _function(number: int, form: dict[str, Any]) -> Any:
    def call(*arguments: Any, **named: Any) -> Any:
        return _session().ask("call", number, list(arguments), named)

    async def wait(*arguments: Any, **named: Any) -> Any:
        import asyncio

        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, lambda: call(*arguments, **named))

    def generate(*arguments: Any, **named: Any) -> Any:
        return (yield from call(*arguments, **named))

    function: Any = generate if form.get("generator") else wait if form.get("async") else call
    function.__name__ = function.__qualname__ = str(form.get("name", "function"))
    function.__module__ = str(form.get("module", "__judge__"))
    function.__doc__ = form.get("doc")
    function._assay_handle = number
    parameters = form.get("parameters")
    if parameters is not None:
        import inspect

        kinds = list(inspect._ParameterKind)
        function.__signature__ = inspect.Signature(
            [
                inspect.Parameter(
                    name, kinds[kind], default=_DEFAULT if has else inspect.Parameter.empty
                )
                for name, kind, has in parameters
            ]
        )
    return function


_DEFAULT = None


def _by_name(module: str, name: str, missing: Any = ...) -> Any:
    try:
        found: Any = sys.modules.get(module) or importlib.import_module(module)
        for step in name.split("."):
            found = getattr(found, step)
    except (ImportError, AttributeError):
        if missing is ...:
            raise
        return missing
    return found


def _is_installed(place: str) -> bool:
    return "site-packages" in place or "dist-packages" in place


def _is_builtin(method: object) -> bool:
    return isinstance(method, (types.WrapperDescriptorType, types.MethodDescriptorType, type(None)))


def _beyond_type(meta: Any) -> set[str]:
    """What a metaclass has beyond `type`."""
    return {name for one in meta.__mro__ if one not in (object, type) for name in vars(one)}


def _is_record(kind: Any) -> bool:
    """Whether an instance holds what it was made of, because `dataclasses` wrote how."""
    if _equality(kind) != "fields" or kind.__new__ is not object.__new__:
        return False
    own = ("__post_init__", "__attrs_post_init__", "__attrs_pre_init__")
    if not _is_written(vars(kind).get("__init__")) or any(hasattr(kind, one) for one in own):
        return False
    return all(
        one.init
        and not one.name.startswith("_")
        and not getattr(one, "kw_only", False)
        and getattr(one, "converter", None) is None
        and getattr(one, "validator", None) is None
        for one in _fields_of(kind)
    )


def _fields_of(kind: Any) -> Any:
    """The fields of a class of `dataclasses` or attrs."""
    made = getattr(kind, "__attrs_attrs__", None)
    return dataclasses.fields(kind) if made is None else made


def _is_compared(field: Any) -> bool:
    return bool(field.compare if isinstance(field, dataclasses.Field) else field.eq)


def _is_written(method: object) -> bool:
    """Whether `dataclasses` or attrs wrote a method."""
    place = getattr(getattr(method, "__code__", None), "co_filename", "")
    return place == "<string>" or place.startswith("<attrs generated")


def _owner(kind: type, name: str) -> type:
    return next((one for one in kind.__mro__ if name in vars(one)), object)


def _is_own(kind: type, name: str) -> bool:
    """Whether code of its own, not of a built-in type, decides."""
    owner = _owner(kind, name)
    return owner is not object and owner.__module__ != "builtins" and vars(owner)[name] is not None


def _equality(kind: type) -> str:
    """What decides on equality: identity, the content, the fields, or code of its own."""
    if issubclass(kind, enum.Enum):
        return "enum" if _owner(kind, "__eq__") in (object, *_BASES, enum.Enum) else "own"
    owner = _owner(kind, "__eq__")
    if owner is object:
        return "identity"
    if owner.__module__ == "builtins":
        return "base" if owner in _BASES else "identity"
    method = vars(owner)["__eq__"]
    place = getattr(getattr(method, "__code__", None), "co_filename", "")
    if (place == "<string>" and dataclasses.is_dataclass(kind)) or place.startswith(
        "<attrs generated"
    ):
        return "fields"
    return "own"


def _content(value: Any) -> Any:
    kind = next((base for base in _BASES if base in type(value).__mro__), None)
    read = _CONTENTS.get(kind)
    if read is None:
        raise TypeError(f"{type(value).__name__} has no content")
    return read(value)


_CONTENTS: dict[Any, Callable[[Any], Any]] = {
    dict: lambda value: dict(dict.items(value)),
    list: lambda value: [*list.__iter__(value)],
    tuple: lambda value: (*tuple.__iter__(value),),
    set: lambda value: {*set.__iter__(value)},
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
    str: str.__str__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    bytearray: lambda value: bytearray.__getitem__(value, slice(None)),
    int: int.__int__,
    float: float.__float__,
    complex: lambda value: complex.__add__(value, 0j),
}


def _connect(greeting: list[Any]) -> socket.socket:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.connect(_LINK)
    send(link, greeting)
    return link


def _door(session: Session) -> None:
    """Open a further lane whenever the judge wants to speak from another thread."""
    door = _connect(["door", session.number])
    while True:
        try:
            message, _ = receive(door)
        except (GoneError, OSError):
            return
        link = _connect(["thread", session.number, message[1]])
        threading.Thread(target=session.serve_all, args=(link,), daemon=True).start()


def _forward_warnings(session: Session) -> None:
    """Let the filters of the judge decide on the warnings of the solution."""
    import warnings

    def show(message: Any, category: Any, filename: Any, lineno: Any, *_: Any) -> None:
        text = (
            message
            if isinstance(message, category) and category.__module__ != "builtins"
            else str(message)
        )
        session.ask("warn", 0, text, category, str(filename), int(lineno))

    warnings.simplefilter("always")
    warnings.showwarning = show


def _forward_logs(session: Session) -> None:
    import logging

    class Forward(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            link = getattr(session.local, "link", None)
            if link is not None:
                text = record.getMessage()
                if record.exc_info:
                    text += "\n" + logging.Formatter().formatException(record.exc_info)
                send(link, ["log", record.name, record.levelno, text])

    logging.getLogger().addHandler(Forward())
    logging.getLogger().setLevel(1)


def _serve(number: int) -> None:
    """Be one session."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    session = Session(number)
    _CURRENT[:] = [session]
    session.outputs = (Output(1), Output(2))
    sys.stdout = io.TextIOWrapper(
        io.FileIO(1, "w", closefd=False), "utf-8", "replace", write_through=True
    )
    sys.stderr = io.TextIOWrapper(
        io.FileIO(2, "w", closefd=False), "utf-8", "replace", write_through=True
    )
    sys.modules["__main__"] = types.ModuleType("__main__")
    _forward_warnings(session)
    _forward_logs(session)
    for output in session.outputs:
        output.watch()
    link = _connect(["session", number])
    threading.Thread(target=_door, args=(session,), daemon=True).start()
    session.serve_all(link)
    os._exit(0)


def main() -> None:
    """Wait for the judge, and fork for each session that it asks for."""
    for name in ("asyncio", "inspect", "copy", "json", "logging", "warnings"):
        importlib.import_module(name)
    os.environ.pop("ASSAY_LINK", None)
    for name in [name for name in sys.modules if f"{_PACKAGE}.".startswith(f"{name}.")]:
        del sys.modules[name]  # the submission may have a package of our name
    sys.modules.pop(f"{_PACKAGE}.wire", None)
    sys.dont_write_bytecode = True
    control = _connect(["hello"])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        try:
            message, _ = receive(control)
        except (GoneError, OSError):
            os._exit(0)
        if os.fork() == 0:
            control.close()
            os.setsid()
            _serve(int(message[1]))
            os._exit(0)


if __name__ == "__main__":
    main()
