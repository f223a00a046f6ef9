"""A session of the solution's side: what it knows of the judge, and what it answers."""

from __future__ import annotations

import _socket
import builtins
import enum
import importlib
import itertools
import operator
import os
import resource
import sys
import threading
import types

from assay.graders.testing.inside.boundary import host_objects, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_LINK = os.environ.get("ASSAY_LINK", "/opt/assay/link")


def connect(greeting: list[Any]) -> Any:
    """A connection to the judge, which begins by saying what it is for."""
    link: Any = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    link.connect(_LINK)
    wire.send(link, greeting)
    return link


def _of_values(function: Callable[..., Any], *, is_linked: bool = False) -> Callable[..., Any]:
    """Something that can be asked, of values alone and for one."""

    def do(host: HostSide, *parts: Any) -> Any:
        found = function(*map(host.decode, parts))
        return (host.linked if is_linked else host.encode)(found)

    return do


class HostSide(wire.Plain):
    """One import of the submission, and everything that the judge holds of it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.objects: dict[int, Any] = {}
        self.handles: dict[int, Any] = {}
        self.replaced: dict[tuple[int, str], list[Any]] = {}
        self.local = threading.local()
        self.lock = threading.RLock()
        self.loop: Any = None
        self.outputs: tuple[Any, ...] = ()
        self.judges_path: list[str] = []
        self.forks: list[int] = []
        self.shares = False  # whether a test runs that would see who has which container
        self.lent: dict[int, Any] = {}  # of the test's, by number
        self.lent_as: dict[int, int] = {}  # their numbers, by where they lie here
        self.shown: dict[int, Any] = {}  # what was in them when the judge was told last

    # -- references ----------------------------------------------------------------------------

    def linked(self, value: Any) -> Any:
        """A container that the judge shall see change is told with its number."""
        if self.shares or type(value) not in wire.MUTABLE:
            return self.encode(value)
        return ["L", self.number_of(value), self.written(value, 0)]

    def shared(self, value: Any, node: list[Any]) -> list[Any]:
        if not self.shares:
            return node
        number = self.lent_as.get(id(value))
        return ["L", self.number_of(value), node] if number is None else ["K", number]

    def bare(self, value: Any) -> Any:
        """Write a value without saying which containers are in it."""
        before, self.shares = self.shares, False
        try:
            return self.encode(value)
        finally:
            self.shares = before

    def lend(self, number: int, node: Any) -> Any:
        """Take a container of the test's."""
        if number not in self.lent:
            held = self.lent[number] = self.decode(node)
            self.lent_as[id(held)] = number
            self.shown[number] = self.bare(self.lent[number])
        return self.lent[number]

    def news_of_lent(self) -> list[Any]:
        """How the submission has changed what the test has lent."""
        now = {at: self.bare(one) for at, one in self.lent.items()} if self.shares else {}
        before, self.shown = self.shown, {**self.shown, **now}
        return [[at, node] for at, node in now.items() if wire.differ(node, before[at])]

    def number_of(self, value: object) -> int:
        self.objects.setdefault(id(value), value)  # it is held, so that no other has its number
        return id(value)

    def other(self, value: Any, depth: int) -> list[Any]:
        kind = type(value)
        if issubclass(kind, host_objects.Handle):
            return ["h", object.__getattribute__(value, "_assay_handle")]
        if callable(value) and (handle := self.handle_of(value)):
            return handle
        if isinstance(value, type):
            return self.class_of(value)
        if isinstance(value, enum.Enum):
            known = self.handle_of(kind) or [kind.__module__, kind.__qualname__]
            if known[0] == "h" or host_objects.is_of_both(known[0]):
                name = value.name if value.name in kind.__members__ else None
                return ["em", known, name, self.encode(value.value, depth + 1)]
        if isinstance(value, types.ModuleType):
            doc = value.__doc__ if type(value.__doc__) is str else None
            return ["m", self.number_of(value), str(value.__name__), doc]
        if isinstance(value, BaseException):
            return self.error(value, depth)
        if kind is types.CoroutineType:
            return ["co", self.number_of(value)]
        own = host_objects.shadowing(value)
        return ["o", self.number_of(value), self.class_of(kind), *([own] if own else [])]

    def handle_of(self, value: Any) -> list[Any]:
        """How the judge knows its own function or class; empty for others, wrappers and methods."""
        number = getattr(value, "_assay_handle", None)
        return ["h", number] if type(number) is int and self.handles.get(number) is value else []

    def class_of(self, kind: type) -> list[Any]:
        module, name = str(kind.__module__), str(kind.__qualname__)
        if module == "builtins" and getattr(builtins, name, None) is kind:
            return ["C", name]
        is_told, number = id(kind) in self.objects, self.number_of(kind)
        if is_told:
            return ["k", number]
        bases = [self.class_of(base) for base in kind.__bases__]
        form = {"name": name, "module": module, "bases": bases, **host_objects.described(kind)}
        return ["k", number, form]

    def error(self, value: BaseException, depth: int) -> list[Any]:
        if type(mine := getattr(value, "_assay_judges", None)) is int:
            return ["J", mine]
        kind = type(value)
        described = self.class_of(kind)  # the judge reads it first, so it is told first
        names = [*vars(value)]
        told = [one for one in names if one == "__notes__" or host_objects.is_plain_name(one)]
        inner: Any = getattr(value, "exceptions", None) if depth < 10 else None
        causes = (value.__cause__, value.__context__) if depth < 10 else (None, None)
        return [
            "e",
            self.number_of(value),
            described,
            [self.held(one, depth + 1) for one in value.args],
            {name: self.held(vars(value)[name], depth + 1) for name in told[:50]},
            str(value) if host_objects.is_own(kind, "__str__") else None,
            [self.error(one, depth + 1) for one in inner] if isinstance(inner, tuple) else [],
            *[None if one is None else self.error(one, depth + 5) for one in causes],
        ]

    def others(self, node: list[Any]) -> Any:
        return _READERS[node[0]](self, *node[1:])

    def handle(self, number: int, form: dict[str, Any]) -> Any:
        if number not in self.handles:
            self.handles.setdefault(number, host_objects.handle(number, form))
        return self.handles[number]

    def member(self, kind: list[Any], name: str | None, value: Any) -> Any:
        found = self.decode(kind)
        return found[name] if name is not None else found(self.decode(value))

    def judges_error(
        self, number: int, module: str, name: str, arguments: list[Any], bases: list[str]
    ) -> BaseException:
        try:
            kind = host_objects.by_name(module, name.split("."))
        except (ImportError, AttributeError):
            kind = None
        values = self.decode(["l", arguments])
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            kind = type(name, (getattr(builtins, bases[0]),), {"__module__": module})
        try:
            error = kind(*values)
        except Exception:
            error = kind.__new__(kind, *values)
        error.__dict__["_assay_judges"] = number
        return error

    # -- talking -------------------------------------------------------------------------------

    def ask(self, *question: Any) -> Any:
        """Ask the judge for something, and serve it until it answers."""
        # A thread of the submission's own has no connection yet.
        link = getattr(self.local, "link", None) or connect(["lane", self.number])
        self.local.link = link
        self.tell_output(link)
        wire.send(link, ["ask", question[0], *[self.written(part, 0) for part in question[1:]]])
        while True:
            message, _ = wire.receive(link)
            if message[0] == "ok":
                return self.decode(message[1])
            if message[0] == "raise":
                raise self.decode(message[1])
            self.serve(link, message)

    def tell_output(self, link: Any) -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                if not isinstance(stream, host_objects.Handle):  # that would ask the judge
                    stream.flush()
            except (AttributeError, OSError, ValueError):
                continue
        for output in self.outputs:
            while text := output.take():
                wire.send(link, ["out", output.descriptor, text])

    def serve_all(self, link: Any) -> None:
        """Serve one connection to its end."""
        self.local.link = link
        while True:
            try:
                message, _ = wire.receive(link)
                self.serve(link, message)
            except (wire.GoneError, OSError):
                return

    def serve(self, link: Any, message: list[Any]) -> None:
        """Do what is asked, and answer."""
        try:
            reply: list[Any] = ["ok", self.do(message)]
            reply += [changed] if (changed := self.news_of_lent()) else []
        except wire.GoneError:
            raise
        except BaseException as error:
            # A traceback would keep what the frames hold, and nobody reads it.
            reply = ["raise", self.error(error.with_traceback(None), 0)]
        self.tell_output(link)
        try:
            wire.send(link, reply)
        except wire.WireError as error:  # too large; or nobody is there, as this finds, too
            wire.send(link, ["raise", self.error(TypeError(str(error)), 0)])

    def take_state(self, state: dict[str, Any]) -> None:
        for name, text in state.items():
            if name.startswith("$") and text is None:
                os.environ.pop(name[1:], None)
            elif name.startswith("$"):
                os.environ[name[1:]] = text
        if "cwd" in state:
            try:
                os.chdir(state["cwd"])
            except OSError:
                pass
        self.shares = state.get("shares", self.shares)
        if "path" in state:
            ours = [entry for entry in sys.path if entry not in self.judges_path]
            self.judges_path = list(state["path"])
            layouts = [os.path.join(one, "src") for one in self.judges_path]
            sys.path[:] = [*self.judges_path, *ours, *filter(os.path.isdir, layouts)]
            importlib.invalidate_caches()

    def do(self, message: list[Any]) -> Any:
        op, state, *parts = message
        if state:
            self.take_state(state)
        action = getattr(self, f"do_{op}")
        if parts[3:] != ["on loop"]:
            return action(*parts)

        async def act() -> Any:
            return action(*parts[:3])

        return self.on_loop(act())

    # -- what can be asked ---------------------------------------------------------------------

    def do_import(self, name: str, fresh: object) -> Any:
        if fresh:
            sys.modules.pop(name, None)
        return self.encode(importlib.import_module(name))

    do_reload = _of_values(importlib.reload)
    do_get = _of_values(getattr, is_linked=True)
    do_names = _of_values(lambda target: (*map(str, dir(target)),))
    # A question as Python asks it, whichever of the two answers.
    do_compare = _of_values(lambda name, one, other: getattr(operator, name)(one, other))
    # The same of objects of which the other is made first.
    do_turned = _of_values(lambda name, other, one: getattr(operator, name)(one, other))
    do_member = _of_values(host_objects.of_super, is_linked=True)

    def do_base(self, target: Any) -> Any:
        """The content of an instance of a subclass of a built-in type."""
        return self.bare(wire.content_of(self.decode(target)))

    def do_items(self, target: Any) -> Any:
        """What one of its own classes holds, by the protocols of Python's containers."""
        value = self.decode(target)
        items = [*itertools.islice(iter(value), len(value) + 1)]
        if len(items) != len(value):
            raise TypeError("its length is not the number of its items")
        if hasattr(type(value), "keys") and [*value.keys()] == items:
            return self.bare({key: value[key] for key in items})
        is_set = isinstance(value, sys.modules["_collections_abc"].Set)
        return self.bare(frozenset(items) if is_set else items)

    def do_kind(self, target: Any) -> Any:
        """Tell again of a class that was told of in something that did not arrive."""
        kind = self.decode(target)
        del self.objects[id(kind)]
        return self.class_of(kind)

    def do_set(self, target: Any, name: str, value: Any, *how: str) -> None:
        owner = self.decode(target)
        if how == ("patch",):
            wire.library(target[1])  # values of it go on to be copied
        replaced = self.replaced.setdefault((id(owner), name), [])
        # A tool that patches a class does not see what the class itself has, and deletes to undo.
        if how or (isinstance(owner, type) and name in vars(owner) and not replaced):
            replaced.append(vars(owner).get(name, _NOTHING))
        setattr(owner, name, self.decode(value))

    def do_delete(self, target: Any, name: str) -> None:
        owner = self.decode(target)
        replaced = self.replaced.get((id(owner), name))
        before = replaced.pop() if replaced else _NOTHING
        if before is _NOTHING:
            delattr(owner, name)
        else:
            setattr(owner, name, before)

    def do_call(self, *call: Any) -> Any:
        function, values, options = self.call_of(*call)
        kinds = () if self.shares else wire.MUTABLE
        before = {at: self.encode(one) for at, one in enumerate(values) if type(one) in kinds}
        result = self.encode(function(*values, **options))
        changed = [
            [at, now] for at in before if wire.differ(now := self.encode(values[at]), before[at])
        ]
        return ["X", result, changed] if changed else result

    def do_refill(self, target: Any, node: Any) -> None:
        """What the test has done to its copy of an object of a subclass of a built-in type."""
        held, now = self.decode(target), self.decode(node)
        kind: Any = next(one for one in type(held).__mro__ if one in wire.MUTABLE)
        kind.clear(held)
        (kind.update if kind in (dict, set) else kind.extend)(held, now)

    def do_renew(self, number: int, node: Any) -> None:
        """What the test has done to a container that it had lent."""
        held = self.lent[number]
        wire.refill(held, self.decode(node))
        self.shown[number] = self.bare(held)

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
        by_function = _BY_FUNCTION.get(name) or getattr(type(value), name)
        return self.encode(by_function(value, *operands))

    def call_of(self, target: Any, arguments: list[Any], named: dict[str, Any]) -> Any:
        values = [self.decode(one) for one in arguments]
        return self.decode(target), values, {name: self.decode(one) for name, one in named.items()}

    def made(self, *call: Any) -> Any:
        function, values, options = self.call_of(*call[:3])
        return function(*values, **options)

    def do_take(self, target: Any, many: int, begins: object) -> Any:
        """The next items of an iterator, and whether it has ended."""
        iterator, found = self.decode(target), []
        if begins:
            iter(iterator)  # by which some begin anew
        while len(found) < many:
            try:
                found.append(self.encode(next(iterator)))
            except StopIteration:
                return [found, True]
        return [found, False]

    # -- forks, each for one question ----------------------------------------------------------

    def do_fork(self, numbers: list[int]) -> None:
        """Have each of some forks answer one question, which this process is not told."""
        self.forks = [one for one in self.forks if not _has_ended(one)]
        for number in numbers:
            child = os.fork()
            if not child:
                self.answer_one(number)
            self.forks.append(child)

    def answer_one(self, number: int) -> None:
        try:
            self.lock = threading.RLock()
            self.outputs, self.shares = (), False
            for descriptor in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
            link = self.local.link = connect(["fork", self.number, number])
            self.serve(link, wire.receive(link)[0])
        finally:
            os._exit(0)

    def do_probe(self, recipe: list[Any]) -> Any:
        """Whether something can be made, and what it then holds."""
        function, values, options = self.call_of(*recipe[1:4])
        made = function(*values, **options)
        try:
            held = wire.content_of(made)
        except TypeError:
            return 0
        if type(held) is not tuple:
            return self.encode(held)
        # What it was given is told by its place: the judge has it.
        given = {id(one): place for place, one in [*enumerate(values), *options.items()]}
        parts = [
            ["A", given[id(one)]] if id(one) in given else ["V", self.encode(one)] for one in held
        ]
        return ["G", parts]

    def do_await(self, target: Any) -> Any:
        async def wait() -> Any:
            return self.encode(await self.decode(target))

        return self.on_loop(wait())

    def do_signature(self, target: Any) -> Any:
        import inspect

        found = inspect.signature(self.decode(target)).parameters.values()
        defaults = [
            None if one.default is one.empty else [self.encode(one.default)] for one in found
        ]
        return [[one.name, int(one.kind), default] for one, default in zip(found, defaults)]

    def do_subclass(
        self, name: str, bases: list[Any], space: dict[str, Any], named: dict[str, Any]
    ) -> Any:
        members = {
            key: _WRAPPERS.get(kind, lambda found: found)(self.decode(value))
            for key, (kind, value) in space.items()
        }
        kinds = tuple(self.decode(base) for base in bases)
        options = {key: self.decode(value) for key, value in named.items()}
        return self.encode(types.new_class(name, kinds, options, lambda one: one.update(members)))

    def on_loop(self, doing: Any) -> Any:
        """Do something where the submission's event loop is, and wait for what it gives."""
        import asyncio

        with self.lock:
            if self.loop is None:
                self.loop = asyncio.new_event_loop()
                threading.Thread(target=self.loop.run_forever, daemon=True).start()
        return asyncio.run_coroutine_threadsafe(doing, self.loop).result()


def _has_ended(child: int) -> bool:
    try:
        return os.waitpid(child, os.WNOHANG)[0] != 0
    except OSError:
        return True


_NOTHING = object()
_WRAPPERS: dict[str, Any] = {"static": staticmethod, "class": classmethod, "property": property}
_READERS: dict[str, Callable[..., Any]] = {
    "R": lambda host, number: host.objects[number],
    "V": lambda host, of, _: host.decode(of),
    "P": lambda _, module, path: host_objects.by_name(module, path),
    "S": lambda _, module, name: host_objects.by_name(module, name.split(".")),
    "C": lambda _, name: getattr(builtins, name),
    "H": HostSide.handle,
    "N": HostSide.made,
    "EM": HostSide.member,
    "K": HostSide.lend,
    "A": lambda host, of, kind, name: vars(getattr(builtins, kind))[name].__get__(host.decode(of)),
    "E": HostSide.judges_error,
}
_FUNCTIONS: Any = (bool, bytes, dir, float, hash, int, iter, len, operator.contains, reversed)
_BY_FUNCTION: dict[str, Callable[..., Any]] = {
    **{f"__{one.__name__}__": one for one in _FUNCTIONS},
    "__getitem__": operator.getitem,
    "__copy__": lambda value, *_: importlib.import_module("copy").copy(value),
    "__deepcopy__": lambda value, *_: importlib.import_module("copy").deepcopy(value),
}
"""The operators that Python has functions for, which know what to do without a method."""
