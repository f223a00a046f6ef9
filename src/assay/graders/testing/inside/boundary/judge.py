"""The judge's side: stand-ins for what the submission has, and the rules of what decides.

An import of one of the submission's modules gives a `Module`. Plain values are copies; everything
else is a `Stand` that forwards what is done to it. What a stand-in cannot do is decide: where only
code of the submission could say whether two things are equal, or whether one is true, the test
fails with that reason, unless the case trusts the class (`allow_equality`).
"""

from __future__ import annotations

import builtins
import os
import random
import socket
import sys
import threading
import time
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING

from assay.graders.testing.inside.boundary.wire import (
    GoneError,
    Plain,
    WireError,
    receive,
    send,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_IMMUTABLE = {"str": str, "bytes": bytes, "int": int, "float": float, "complex": complex, "tuple": tuple, "frozenset": frozenset}
_MUTABLE = {"list": list, "dict": dict, "set": set, "bytearray": bytearray}
_NAMELESS = frozenset({"_pytestfixturefunction", "_pytestfixture", "__wrapped__", "__test__", "__pytest_wrapped__", "pytestmark", "__tracebackhide__", "_mock_name", "_mock_methods", "_spec_class", "__pytest_asyncio_scoped_event_loop__"})
_LIMIT = 5.0


class Undecided(AssertionError):
    """Only code of the submission could decide."""


class HostDied(AssertionError):
    """The process of the submission ended, or did not answer in time."""


class BoundaryError(AssertionError):
    """Something cannot cross the boundary."""


class _State:
    """What is the same for the whole run."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.current = ""
        self.waiting: dict[int, Any] = {}
        self.arrived = threading.Condition()
        self.control: socket.socket | None = None
        self.count = 0
        self.threads = 0
        self.seconds = 60.0
        self.allowed: frozenset[str] = frozenset()
        self.failures: list[BaseException] = []
        self.report: Callable[[str], None] = lambda _: None
        self.kinds: dict[tuple[str, str, str], StandKind] = {}
        self.errors: dict[tuple[str, str], type[BaseException]] = {}
        self.handles: dict[int, Any] = {}
        self.numbers: dict[int, int] = {}
        self.raised: dict[int, BaseException] = {}
        self.patches: list[tuple[str, list[str], str, object]] = []
        self.lock = threading.RLock()
        self.random = random.SystemRandom()
        self.initial = dict(os.environ)
        self.loop_of: dict[int, Any] = {}
        self.root = ""
        self.shared: tuple[str, ...] = ()
        self.fresh = "module"


state = _State()


def fail(error: BaseException) -> BaseException:
    """Note why the running test cannot pass, whatever catches the exception."""
    state.failures.append(error)
    return error


def undecided(kind: str, what: str, *, entry: str = "") -> BaseException:
    """What to raise where the submission would decide."""
    entry = entry or kind
    state.report(entry)
    return fail(Undecided(f"{what} is decided by code of {kind} alone; a case may trust it: allow_equality: [{entry}]"))


class Ref:
    """Which object of the host a stand-in stands for.

    What is reached by name from a module is looked up anew in every session, so that a test module
    may hold what it imported.
    """

    __slots__ = ("number", "path", "session")

    def __init__(self, session: Session, number: int, path: tuple[str, ...] | None = None) -> None:
        self.session = session
        self.number = number
        self.path = path

    def home(self) -> Session:
        return self.session if self.path is None else current()

    def node(self) -> list[Any]:
        session = self.home()
        if session is self.session:
            return ["R", self.number]
        assert self.path is not None
        return ["P", self.path[0], list(self.path[1:])]


def current() -> Session:
    """The session of the module that is being imported or tested."""
    session = state.sessions.get(state.current)
    if session is None:
        session = state.sessions[state.current] = Session()
    return session


class Session(Plain):
    """One fresh import of the submission."""

    def __init__(self) -> None:
        with state.lock:
            state.count += 1
            self.number = state.count
        self.local = threading.local()
        self.dead = ""
        self.kinds: dict[int, Any] = {}
        self.stands: dict[int, Any] = {}
        self.told: dict[str, Any] = {}
        self.lock = threading.RLock()
        self.changes = 0
        link = _await(("session", self.number), lambda: _control(["fork", self.number]))
        self.door = _await(("door", self.number))
        self.local.link = link
        with self.lock:
            for module, path, name, value in state.patches:
                self.request("patch", module, path, name, self.encode(value))

    # -- references ----------------------------------------------------------------------------

    def other(self, value: Any, depth: int) -> list[Any]:
        ref = ref_of(value)
        if ref is not None:
            if ref.path is None and ref.session is not self:
                raise fail(BoundaryError("an object of one session was given to another; see `fresh` in the case"))
            return ["R", ref.number] if ref.session is self else ref.node()
        if isinstance(value, (Linked, LinkedDict, LinkedSet)):
            return ["R", value._assay.number] if value._assay.session is self else self.encode(value.plain(), depth)
        if isinstance(value, type):
            if value.__module__ == "builtins":
                return ["C", value.__name__]
            if not _is_authors(value):
                return ["S", value.__module__, value.__qualname__]
        if isinstance(value, BaseException):
            return self.error(value)
        if isinstance(value, ModuleType):
            return ["P", value.__name__, []]
        if _is_enum(value):
            return self.handle(value)
        if isinstance(value, FunctionType) and not _is_authors(value) and "<" not in value.__qualname__:
            return ["S", value.__module__, value.__qualname__]
        return self.handle(value)

    def error(self, error: BaseException) -> list[Any]:
        number = _number(error)
        state.raised[number] = error
        arguments: list[Any] = []
        for argument in error.args:
            try:
                arguments.append(self.encode(argument))
            except (WireError, BoundaryError):
                arguments.append(str(argument))
        kind = type(error)
        bases = [one.__name__ for one in kind.__mro__ if one.__module__ == "builtins"]
        return ["E", number, kind.__module__, kind.__qualname__, arguments, bases]

    def handle(self, value: Any) -> list[Any]:
        number = _number(value)
        form: dict[str, Any] = {}
        if isinstance(value, (FunctionType, MethodType)) or type(value).__name__ in ("builtin_function_or_method", "method-wrapper"):
            form = _form(value)
        else:
            from assay.graders.testing.inside.boundary.wire import OPERATORS

            form = {"operators": sorted(name for name in OPERATORS if _offers(value, name))}
        return ["H", number, form]

    def others(self, node: list[Any]) -> Any:
        tag = node[0]
        try:
            if tag == "o":
                return self.stand(node[1], self.kind_of(node[2]))
            if tag in ("k", "C"):
                return self.kind_of(node)
            if tag == "m":
                return module_of(self, node[1], node[2])
            if tag == "h":
                return state.handles[node[1]]
            if tag == "e":
                return self.mirror(*node[1:])
            if tag == "J":
                return state.raised[node[1]]
            if tag == "L":
                return link_to(Ref(self, node[1]), self.decode(node[2]))
        except (TypeError, IndexError, KeyError, ValueError, AttributeError) as error:
            raise WireError(f"a reference makes no sense: {type(error).__name__}") from None
        raise WireError("a value of an unknown kind")

    def kind_of(self, node: Any) -> Any:
        if node[0] == "C":
            found = _BUILTINS.get(node[1])
            if found is None:
                raise WireError("a class of an unknown kind")
            return found
        number = node[1]
        if len(node) > 2 and number not in self.kinds:
            self.kinds[number] = self.make_kind(number, node[2])
        return self.kinds[number]

    def make_kind(self, number: int, form: dict[str, Any]) -> Any:
        name, module = _word(form["name"]), _word(form["module"])
        bases = [self.kind_of(base) for base in form["bases"]]
        ref = Ref(self, number, (module, *name.split(".")) if "<" not in name else None)
        if any(issubclass(base, BaseException) for base in bases):
            return _mirror_kind(ref, name, module, bases)
        known = _standard_kinds().get((module, name))
        if known is not None:
            return known
        key = (module, name, repr(sorted((k, repr(v)) for k, v in form.items() if k != "bases")))
        made = state.kinds.get(key) if ref.path is not None else None
        if made is None:
            made = make_stand_kind(ref, name, module, bases, form)
            if ref.path is not None:
                state.kinds[key] = made
        return made

    def stand(self, number: int, kind: Any) -> Any:
        held = self.stands.get(number)
        if held is not None:
            return held
        if not isinstance(kind, StandKind):
            kind = _plain_kind(kind)
        base = kind._assay_base
        if base is not None and base in _IMMUTABLE.values():
            content = self.decode(self.request("base", ["R", number]))
            if type(content) is not base:
                raise WireError("the content of a value is of another kind")
            made = base.__new__(kind, content)
        else:
            made = (base or object).__new__(kind)
        object.__setattr__(made, "_assay", Ref(self, number))
        self.stands[number] = made
        return made

    def mirror(self, number: int, kind: Any, arguments: list[Any], told: dict[str, Any], text: Any, inner: list[Any], reason: Any) -> BaseException:
        held = self.stands.get(number)
        if held is not None:
            return held
        cls = self.kind_of(kind)
        if not issubclass(cls, BaseException):
            raise WireError("an exception of an unknown kind")
        values = tuple(self.decode(one) for one in arguments)
        if inner and hasattr(builtins, "BaseExceptionGroup"):
            group = [self.others(one) for one in inner]
            error = cls.__new__(cls, str(values[0]) if values else "", group)
        elif cls.__module__ == "builtins":
            try:
                error = cls(*values)
            except Exception:
                error = cls.__new__(cls)
        else:
            error = cls.__new__(cls)
        if not inner:
            error.args = values
        for name, node in told.items():
            if type(name) is str and name.isidentifier() and not name.startswith("_assay"):
                error.__dict__[name] = self.decode(node)
        if type(text) is str:
            error.__dict__["_assay_text"] = text
        if reason is not None:
            error.__cause__ = self.others(reason)
        error.__dict__["_assay"] = Ref(self, number)
        self.stands[number] = error
        return error

    # -- talking -------------------------------------------------------------------------------

    def lane(self) -> socket.socket:
        link = getattr(self.local, "link", None)
        if link is None:
            with self.lock:
                state.threads += 1
                number = state.threads

                def ask() -> None:
                    send(self.door, ["thread", number])

                link = self.local.link = _await(("thread", self.number, number), ask)
        return link

    def request(self, op: str, *parts: Any) -> Any:
        """Ask the host, serve it until it answers, and give back what it said, still encoded.

        Raises:
            HostDied: If it ended, or does not answer in time.
        """
        if self.dead:
            raise fail(HostDied(self.dead))
        link = self.lane()
        deadline = time.monotonic() + state.seconds
        try:
            send(link, [op, self.news(), *parts])
            while True:
                link.settimeout(max(deadline - time.monotonic(), 0.01))
                message = receive(link)
                if message[0] == "ok":
                    self.changes += 1
                    self.take_environment(message[2:])
                    return message[1]
                if message[0] == "raise":
                    self.changes += 1
                    self.take_environment(message[2:])
                    raise self.raised(message[1])
                self.answer(link, message)
        except (TimeoutError, socket.timeout):
            self.end(f"the solution did not answer within {state.seconds:g} s")
        except GoneError:
            self.end("the process of the solution ended")
        except WireError as error:
            self.end(f"the solution's process sent what makes no sense: {error}")
        except (OSError, RecursionError) as error:
            self.end(f"the solution's process broke the connection: {type(error).__name__}")
        raise fail(HostDied(self.dead))

    def end(self, why: str) -> None:
        self.dead = self.dead or why
        for link in (getattr(self.local, "link", None), self.door):
            if link is not None:
                link.close()

    def raised(self, node: Any) -> BaseException:
        if type(node) is not list or not node or node[0] not in ("e", "J"):
            raise WireError("an exception makes no sense")
        error = self.others(node)
        if isinstance(error, _NEVER):
            return fail(BoundaryError(f"the solution raised {type(error).__name__}"))
        if error in state.failures:
            state.failures.remove(error)  # it comes back to the test that raised it
        return error.with_traceback(None)

    def news(self) -> dict[str, Any]:
        """What has changed around the tests since the host was told."""
        found: dict[str, Any] = {}
        environ = dict(os.environ)
        environ.pop("PYTEST_CURRENT_TEST", None)
        if self.told.get("environ") != environ:
            found["environ"] = environ
        try:
            place = os.getcwd()
        except OSError:
            place = None
        if place is not None and self.told.get("cwd") != place:
            found["cwd"] = place
        path = [entry for entry in sys.path if _in_workspace(entry or place or "")]
        path = [entry or place or "" for entry in path]
        if self.told.get("path") != path:
            found["path"] = path
        self.told.update(found)
        return found

    def take_environment(self, rest: list[Any]) -> None:
        if not rest or type(rest[0]) is not dict:
            return
        for name, text in rest[0].items():
            if name.startswith(_KEPT) or "\0" in name or "=" in name or not name:
                continue
            if text is None:
                os.environ.pop(name, None)
            elif type(text) is str and "\0" not in text:
                os.environ[name] = text
        environ = dict(os.environ)
        environ.pop("PYTEST_CURRENT_TEST", None)
        self.told["environ"] = environ

    def answer(self, link: socket.socket, message: list[Any]) -> None:
        """Do what the host asks while it works for us: write its output, call a handle."""
        if message[0] == "out":
            _write(message)
            return
        if message[0] == "log":
            _log(message)
            return
        if message[0] != "ask" or len(message) < 3:
            raise WireError("a message of an unknown kind")
        try:
            reply: list[Any] = ["ok", self.encode(self.grant(*[self.decode(part) if place else part for place, part in enumerate(message[1:])]))]
        except (WireError, GoneError):
            raise
        except BaseException as error:
            if isinstance(error, _FAILING) and error not in state.failures:
                fail(error)  # what the host makes of it does not matter
            reply = ["raise", self.other(error, 0)]
        send(link, reply)

    def grant(self, op: str, number: int, *rest: Any) -> Any:
        if op == "warn":
            return _warn(*rest)
        value = state.handles[number]
        if op == "call":
            arguments, named = rest
            result = value(*arguments, **named)
            return _finish(result)
        name = rest[0]
        if op == "operate":
            from assay.graders.testing.inside.boundary.wire import OPERATORS

            if name not in OPERATORS or not _offers(value, name):
                raise TypeError(f"the test's {type(value).__name__} has no {name}")
            if name == "__next__":
                return next(value)
            return _finish(getattr(type(value), name)(value, *rest[1]))
        if not _may_be_read(value, name):
            raise AttributeError(f"{type(value).__name__!r} object of the test does not offer {name!r}")
        if op == "attribute":
            return getattr(value, name)
        setattr(value, name, rest[1])
        return None

    # -- what is asked -------------------------------------------------------------------------

    def get(self, ref: Ref, name: str) -> Any:
        found = self.decode(self.request("get", ref.node(), name))
        if ref.path is not None and getattr(found, "__class__", None) is not None:
            own = ref_of(found)
            if own is not None and own.path is None and own.session is self and not isinstance(found, type):
                _remember(own, (*ref.path, name))
        return found

    def call(self, ref: Ref, arguments: tuple[Any, ...], named: dict[str, Any], label: str = "") -> Any:
        values = [self.encode(_unlinked(one)) if type(one) not in (Linked, LinkedDict, LinkedSet) else self.other(one, 0) for one in arguments]
        options = {name: self.encode(_unlinked(one)) for name, one in named.items()}
        parts: list[Any] = [ref.node(), values, options]
        if _loop_runs():
            parts.append("on loop")
        answer = self.request("call", *parts)
        if type(answer) is list and answer and answer[0] == "X":
            self.change(arguments, answer[2], label or _label(ref))
            answer = answer[1]
        return self.decode(answer)

    def change(self, arguments: tuple[Any, ...], changed: Any, label: str) -> None:
        """Make the changes to its arguments that a function is trusted with."""
        entry = f"changes:{label}"
        for place, node in changed:
            value = arguments[place]
            after = self.decode(node)
            if type(after) is not type(value):
                raise WireError("an argument became something else")
            if entry not in state.allowed:
                state.report(entry)
                continue
            if isinstance(value, (list, bytearray)):
                value[:] = after
            elif isinstance(value, (dict, set)):
                value.clear()
                value.update(after)

    def operate(self, ref: Ref, name: str, *arguments: Any) -> Any:
        values = [self.encode(_unlinked(one)) for one in arguments]
        parts: list[Any] = [ref.node(), name, values]
        if _loop_runs():
            parts.append("on loop")
        return self.request("operate", *parts)


_KEPT = ("PYTEST", "PYTHON", "LD_", "ASSAY", "HYPOTHESIS", "COVERAGE", "NUMPY", "HOME", "PATH", "TMP", "TEMP", "VIRTUAL_ENV", "XDG")
_FAILING: tuple[type[BaseException], ...] = (AssertionError,)
_NEVER: tuple[type[BaseException], ...] = ()
_BUILTINS: dict[str, type] = {
    name: one for name, one in vars(builtins).items() if isinstance(one, type)
}
_EMPTY = object()


def _word(text: object) -> str:
    if type(text) is not str or len(text) > 300:
        raise WireError("a name makes no sense")
    return text


def _finish(result: Any) -> Any:
    """A coroutine of the test's is run to its end where its event loop runs."""
    import inspect

    if not inspect.iscoroutine(result):
        return result
    import asyncio

    loop = next(iter(state.loop_of.values()), None)
    if loop is not None and loop.is_running() and threading.get_ident() not in state.loop_of:
        return asyncio.run_coroutine_threadsafe(result, loop).result()
    return asyncio.run(result)


def _loop_runs() -> bool:
    events = sys.modules.get("asyncio.events")
    loop = events and events._get_running_loop()
    if loop:
        state.loop_of = {threading.get_ident(): loop}
    return bool(loop)


def _write(message: list[Any]) -> None:
    stream = sys.stdout if message[1] == 1 else sys.stderr
    if type(message[2]) is str:
        stream.write(message[2])


def _log(message: list[Any]) -> None:
    import logging

    _, name, level, text = message
    if type(name) is str and type(level) is int and type(text) is str:
        logger = logging.getLogger(name)
        if logger.isEnabledFor(level):
            logger.handle(logger.makeRecord(name, level, "the solution", 0, text, (), None))


def _warn(message: Any, category: Any, place: Any, line: Any) -> None:
    import warnings

    if not (isinstance(category, type) and issubclass(category, Warning)):
        raise WireError("a warning of an unknown kind")
    if not isinstance(message, Warning):
        message = str(message)
    warnings.warn_explicit(message, category, str(place), int(line))


def _label(ref: Ref) -> str:
    return ".".join(ref.path) if ref.path else "a call"


def _in_workspace(path: str) -> bool:
    return path == state.root or path.startswith((state.root + os.sep, *state.shared))


def _number(value: Any) -> int:
    with state.lock:
        number = state.numbers.get(id(value))
        if number is None:
            number = state.numbers[id(value)] = len(state.handles) + 1
            state.handles[number] = value
        return number


def _unlinked(value: Any) -> Any:
    return value.plain() if type(value) in (Linked, LinkedDict, LinkedSet) else value


def _is_authors(value: Any) -> bool:
    """Whether a class or function was made by the tests."""
    module = sys.modules.get(value.__module__ or "")
    place = getattr(module, "__file__", None)
    return module is None or place is None or _in_workspace(os.path.abspath(place))


def _is_enum(value: Any) -> bool:
    enum = sys.modules.get("enum")
    return enum is not None and isinstance(value, enum.Enum)


def _form(value: Any) -> dict[str, Any]:
    import inspect

    form: dict[str, Any] = {"kind": "function", "name": getattr(value, "__name__", "function")}
    form["async"] = inspect.iscoroutinefunction(value)
    form["doc"] = value.__doc__ if type(value.__doc__) is str else None
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return form
    form["parameters"] = [[one.name, int(one.kind), one.default is not one.empty] for one in parameters]
    return form


def _offers(value: Any, name: str) -> bool:
    """Whether an object of the test's supports an operator beyond what every object does."""
    for one in type(value).__mro__:
        if one is object:
            return False
        if name in vars(one):
            return vars(one)[name] is not None and name not in ("__dir__", "__eq__", "__hash__") or one.__module__ != "builtins"
    return False


_MOCKS = frozenset(
    "assert_called assert_called_once assert_called_with assert_called_once_with assert_any_call "
    "assert_has_calls assert_not_called assert_awaited call_args call_args_list call_count called "
    "configure_mock mock_add_spec mock_calls method_calls reset_mock return_value side_effect "
    "attach_mock await_count await_args await_args_list".split()
)


def _may_be_read(value: Any, name: str) -> bool:
    """Which attributes of an object of the test's the solution may use: its public ones."""
    if name.startswith("_") or name in _MOCKS and type(value).__module__.startswith(("unittest.mock", "mock")):
        return False
    return not isinstance(value, (type, FunctionType, MethodType, ModuleType)) or isinstance(value, type) and _is_authors(value)


def ref_of(value: Any) -> Ref | None:
    """What a stand-in stands for; None for anything else."""
    kind = type(value)
    if isinstance(value, StandKind):
        return type.__getattribute__(value, "__dict__").get("_assay_kind")
    if isinstance(kind, StandKind) or kind is Module:
        return object.__getattribute__(value, "__dict__").get("_assay")
    if isinstance(value, BaseException):
        return value.__dict__.get("_assay")
    if isinstance(value, type) and issubclass(value, BaseException):
        return vars(value).get("_assay_kind")
    return None


# -- stand-ins -------------------------------------------------------------------------------------


def _quietly(name: str) -> bool:
    return name in _NAMELESS or name.startswith(("_pytest", "_assay", "__hypothesis", "__array_"))


class StandKind(type):
    """The class of the stand-ins for one class of the submission, and the stand-in for that class."""

    _assay_form: dict[str, Any]
    _assay_base: type | None
    _assay_label: str

    def __new__(mcs, name: str, bases: tuple[type, ...], space: dict[str, Any], **named: Any) -> Any:
        if "_assay_kind" in space or name == "Stand" and not any(isinstance(base, StandKind) for base in bases):
            return super().__new__(mcs, name, bases, space)
        return _subclass(mcs, name, bases, space, named)

    def __init__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any], **named: Any) -> None:
        super().__init__(name, bases, space)

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        ref = ref_of(cls)
        if ref is None:
            raise TypeError(f"{cls.__name__} cannot be made here")
        made = ref.home().call(ref, arguments, named, _label(ref))
        names = cls._assay_form.get("built")
        if names and isinstance(made, Stand):
            # A record that does not hold what it was made of cannot be compared by its fields.
            given = {**dict(zip(names, arguments)), **named}
            object.__getattribute__(made, "__dict__")["_assay_given"] = given
        return made

    def __getattr__(cls, name: str) -> Any:
        ref = type.__getattribute__(cls, "__dict__").get("_assay_kind")
        if ref is None or _quietly(name) or name in ("__set_name__", "__isabstractmethod__", "__abstractmethods__"):
            raise AttributeError(name)
        return ref.home().get(ref, name)

    def __setattr__(cls, name: str, value: Any) -> None:
        if name.startswith("__") or name.startswith("_assay"):
            type.__setattr__(cls, name, value)
            return
        ref = ref_of(cls)
        assert ref is not None
        if name in cls.__dict__:
            type.__delattr__(cls, name)
        ref.home().request("set", ref.node(), name, ref.home().encode(value))

    def __delattr__(cls, name: str) -> None:
        ref = ref_of(cls)
        assert ref is not None
        ref.home().request("delete", ref.node(), name)

    def __dir__(cls) -> list[str]:
        ref = ref_of(cls)
        return [] if ref is None else _names(ref)

    @property
    def __test__(cls) -> bool:  # a class of the submission is no test, one made of it may be
        return bool(type.__getattribute__(cls, "__dict__").get("_assay_tested"))

    @property
    def __signature__(cls) -> Any:
        ref = ref_of(cls)
        if ref is None:
            raise AttributeError("__signature__")
        return _signature(ref)

    def __iter__(cls) -> Iterator[Any]:
        return _iterate(cls, _meta(cls, "__iter__"))

    def __getitem__(cls, key: Any) -> Any:
        ref = ref_of(cls)
        assert ref is not None
        session = ref.home()
        if "__getitem__" not in cls._assay_form["meta"]:
            return session.get(ref, "__class_getitem__")(key)
        return session.decode(session.operate(ref, "__getitem__", key))

    def __len__(cls) -> int:
        return _count(_meta(cls, "__len__"))

    def __contains__(cls, item: Any) -> bool:
        if ref_of(item) is None:
            return any(item == one for one in cls)
        return isinstance(item, cls)

    def __bool__(cls) -> bool:
        return True

    def __hash__(cls) -> int:
        return type.__hash__(cls)

    def __eq__(cls, other: object) -> bool:
        return cls is other

    def __or__(cls, other: Any) -> Any:
        import typing

        return typing.Union[cls, other]


def _meta(cls: StandKind, name: str) -> Any:
    ref = ref_of(cls)
    if ref is None or name not in cls._assay_form["meta"]:
        raise TypeError(f"{cls.__name__!r} has no {name}")
    session = ref.home()
    return session.decode(session.operate(ref, name))


class Stand(metaclass=StandKind):
    """Stands for an object of the submission's."""

    _assay_form: dict[str, Any] = {"meta": [], "operators": [], "equal": "identity", "own": []}  # noqa: RUF012
    _assay_base = None
    _assay_label = "object"

    def __getattr__(self, name: str) -> Any:
        ref = ref_of(self)
        if ref is None or _quietly(name):
            raise AttributeError(name)
        return ref.home().get(ref, name)

    def __setattr__(self, name: str, value: Any) -> None:
        ref = ref_of(self)
        assert ref is not None
        session = ref.home()
        session.request("set", ref.node(), name, session.encode(value))

    def __delattr__(self, name: str) -> None:
        ref = ref_of(self)
        assert ref is not None
        ref.home().request("delete", ref.node(), name)

    def __dir__(self) -> list[str]:
        ref = ref_of(self)
        return [] if ref is None else _names(ref)

    def __eq__(self, other: object) -> Any:
        return equal(self, other)

    def __ne__(self, other: object) -> Any:
        found = equal(self, other)
        return found if found is NotImplemented else not found if type(found) is bool else _own(self, "__ne__", other)

    def __hash__(self) -> int:
        return hash_of(self)

    def __bool__(self) -> bool:
        return truth(self)

    def __reduce_ex__(self, protocol: object) -> Any:
        raise fail(BoundaryError("a stand-in cannot be pickled in the judge"))

    @property
    def __signature__(self) -> Any:
        ref = ref_of(self)
        if ref is None or not callable(self):
            raise AttributeError("__signature__")
        return _signature(ref)


def _names(ref: Ref) -> list[str]:
    found = ref.home().request("names", ref.node())
    return [one for one in found if type(one) is str and not _quietly(one)]


def _signature(ref: Ref) -> Any:
    import inspect

    session = ref.home()
    _, parameters = session.request("signature", ref.node())
    kinds = list(inspect._ParameterKind)  # type: ignore[attr-defined]
    return inspect.Signature(
        [
            inspect.Parameter(
                _word(name), kinds[kind],
                default=inspect.Parameter.empty if default is None else session.decode(default[0]),
            )
            for name, kind, default in parameters
        ]
    )


def _forwarder(name: str) -> Callable[..., Any]:
    def forward(self: Any, *arguments: Any) -> Any:
        ref = ref_of(self)
        assert ref is not None
        session = ref.home()
        return session.decode(session.operate(ref, name, *arguments))

    forward.__name__ = name
    return forward


def _call(self: Any, *arguments: Any, **named: Any) -> Any:
    ref = ref_of(self)
    assert ref is not None
    return ref.home().call(ref, arguments, named)


def _count(found: Any) -> int:
    if type(found) is not int:
        raise WireError("a length is no number")
    return found


def _length(self: Any) -> int:
    return _count(_forwarder("__len__")(self))


def _text(name: str) -> Callable[..., str]:
    forward = _forwarder(name)

    def text(self: Any, *arguments: Any) -> str:
        found = forward(self, *arguments)
        return str(found) if isinstance(found, str) else fail_text()

    return text


def fail_text() -> str:
    raise TypeError("a text is no text")


def _iterate(self: Any, iterator: Any) -> Iterator[Any]:
    """Take what an iterator of the host gives, one at a time."""
    if ref_of(iterator) is None:
        yield from iterator
        return
    while True:
        try:
            item = _next(iterator)
        except StopIteration:
            return
        yield item


def _iter(self: Any) -> Any:
    found = _forwarder("__iter__")(self)
    return found if ref_of(found) is not None and hasattr(type(found), "__next__") else _iterate(self, found)


def _next(self: Any) -> Any:
    ref = ref_of(self)
    assert ref is not None
    session = ref.home()
    kind, value = session.operate(ref, "__next__")
    if kind == "end":
        raise StopIteration(session.decode(value))
    return session.decode(value)


def _leave(self: Any, kind: Any, error: Any, trace: Any) -> bool:
    """Leave a context; an exception of the judge's is never swallowed."""
    ref = ref_of(self)
    assert ref is not None
    session = ref.home()
    swallowed = session.decode(session.operate(ref, "__exit__", kind, error, None))
    return bool(swallowed is True) and _is_theirs(error)


def _is_theirs(error: BaseException | None) -> bool:
    return error is not None and ref_of(error) is not None


async def _async_next(self: Any) -> Any:
    return await _awaited(_forwarder("__anext__")(self))


async def _async_enter(self: Any) -> Any:
    return await _awaited(_forwarder("__aenter__")(self))


async def _async_leave(self: Any, kind: Any, error: Any, trace: Any) -> bool:
    waiting = _forwarder("__aexit__")(self, kind, error, None)
    return (await _awaited(waiting)) is True and _is_theirs(error)


async def _awaited(value: Any) -> Any:
    return await value if hasattr(type(value), "__await__") else value


def _await_stand(self: Any) -> Any:
    """Wait for an awaitable of the host in a thread, so that the judge's event loop goes on."""
    ref = ref_of(self)
    assert ref is not None
    session = ref.home()
    if not _loop_runs():
        return session.decode(session.request("await", ref.node()))
        yield  # pragma: no cover - makes it a generator
    import asyncio

    loop = asyncio.get_running_loop()

    def wait() -> tuple[bool, Any]:
        try:
            return True, session.decode(session.request("await", ref.node()))
        except BaseException as error:
            return False, error

    done, found = yield from loop.run_in_executor(None, wait).__await__()
    if not done:
        raise found
    return found


_SPECIAL: dict[str, Any] = {
    "__call__": _call,
    "__len__": _length,
    "__str__": _text("__str__"),
    "__repr__": _text("__repr__"),
    "__format__": _text("__format__"),
    "__fspath__": _text("__fspath__"),
    "__iter__": _iter,
    "__next__": _next,
    "__exit__": _leave,
    "__aenter__": _async_enter,
    "__aexit__": _async_leave,
    "__anext__": _async_next,
    "__await__": _await_stand,
}
_DECIDING = {"__lt__": "order", "__le__": "order", "__gt__": "order", "__ge__": "order"}
_LEFT_OUT = frozenset({"__eq__", "__ne__", "__hash__", "__bool__", "__instancecheck__", "__array__", "__dir__", "__missing__", "__length_hint__"})


def make_stand_kind(ref: Ref, name: str, module: str, bases: list[Any], form: dict[str, Any]) -> StandKind:
    operators = [one for one in form["operators"] if one not in _LEFT_OUT]
    stands = [base for base in bases if isinstance(base, StandKind)]
    plain = next((base for base in bases if base in _IMMUTABLE.values() or base in _MUTABLE.values()), None)
    inherited = next((base._assay_base for base in stands if base._assay_base), None)
    base = plain or inherited
    space: dict[str, Any] = {
        "_assay_kind": ref,
        "_assay_form": form,
        "_assay_base": base,
        "_assay_label": f"{module}.{name}",
        "__module__": module,
        "__qualname__": name,
        "__doc__": form.get("doc") if type(form.get("doc")) is str else None,
    }
    is_content = base is not None
    own = set(form["own"])
    for one in operators:
        if is_content and base in _IMMUTABLE.values() and one in vars(base) and one not in own:
            continue  # decided on the copy
        if one in _DECIDING:
            space[one] = _ordering(one)
        elif one == "__contains__":
            space[one] = _contains
        else:
            space[one] = _SPECIAL.get(one) or _forwarder(one)
    for one in form["methods"]:
        if type(one) is str and one.isidentifier() and not one.startswith("_") and not one.startswith("test"):
            space[one] = _method(one)
    family: list[type] = stands or [Stand]
    if base is not None and not any(one._assay_base for one in stands):
        family = [*family, base]
    try:
        return StandKind(name.rpartition(".")[2], tuple(family), space)
    except TypeError:
        return StandKind(name.rpartition(".")[2], (Stand,), {**space, "_assay_base": None})


class _method:
    """A method or property of the submission's class, as an attribute of its stand-in class."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return type(owner).__getattr__(owner, self.name)
        ref = ref_of(instance)
        if ref is None:
            raise AttributeError(self.name)
        return ref.home().get(ref, self.name)

    def __set__(self, instance: Any, value: Any) -> None:
        Stand.__setattr__(instance, self.name, value)


_plain_kinds: dict[type, StandKind] = {}


def _plain_kind(kind: type) -> StandKind:
    """Stand-ins for what has no class of the submission's: functions, generators, files."""
    made = _plain_kinds.get(kind)
    if made is None:
        from assay.graders.testing.inside.boundary.wire import OPERATORS

        operators = [one for one in OPERATORS if any(one in vars(base) for base in kind.__mro__[:-1])]
        if kind.__name__ in ("function", "method", "builtin_function_or_method", "type"):
            operators.append("__call__")
        form = {"operators": operators, "meta": [], "own": [], "methods": [], "equal": "identity", "name": kind.__name__, "module": kind.__module__}
        space = {one: _SPECIAL.get(one) or _forwarder(one) for one in operators if one not in _LEFT_OUT and one not in _DECIDING}
        made = _plain_kinds[kind] = StandKind(kind.__name__, (Stand,), {**space, "_assay_kind": None, "_assay_form": form, "_assay_base": None, "_assay_label": kind.__name__, "__module__": kind.__module__})
    return made


def _standard_kinds() -> dict[tuple[str, str], type]:
    return _STANDARD


_STANDARD: dict[tuple[str, str], type] = {}


# -- what decides ------------------------------------------------------------------------------


def _trusted(value: Any) -> str:
    """How far a class's own decisions are trusted: not, with questions that check them, or wholly."""
    label = type(value)._assay_label
    if label in state.allowed:
        return "wholly"
    return "asked" if f"asked:{label}" in state.allowed else ""


def equal(one: Any, other: Any) -> Any:
    """Whether a stand-in equals something, decided here."""
    kind = type(one)
    how = kind._assay_form["equal"]
    theirs = type(other)._assay_form["equal"] if isinstance(other, Stand) else ""
    if "own" in (how, theirs):
        chosen = one if how == "own" else other
        return _own(chosen, "__eq__", other if chosen is one else one)
    if how == "identity":
        # Two names for one object say nothing about its content.
        if one is other and type(one)._assay_kind is not None and not _trusted(one):
            raise undecided(kind._assay_label, "whether an object equals itself")
        return True if one is other else NotImplemented
    if how == "enum":
        return True if one is other else _enum_value(one, other)
    if how == "fields":
        if one is other and not _trusted(one):
            _require_given(one)
        if type(one) is not type(other):
            return NotImplemented
        return _fields(one) == _fields(other)
    return _content(one) == (_content(other) if isinstance(other, Stand) else other)


def _enum_value(one: Any, other: Any) -> Any:
    base = type(one)._assay_base
    if base is None:
        return NotImplemented
    return _content(one) == (_content(other) if isinstance(other, Stand) else other)


def _fields(value: Any) -> list[Any]:
    _require_given(value)
    ref = ref_of(value)
    assert ref is not None
    session = ref.home()
    found = session.request("fields", ref.node())
    return [[_word(name), session.decode(node)] for name, node in found]


def _require_given(value: Any) -> None:
    given = object.__getattribute__(value, "__dict__").get("_assay_given")
    if not given or _trusted(value):
        return
    ref = ref_of(value)
    assert ref is not None
    session = ref.home()
    now = {name: session.decode(node) for name, node in session.request("fields", ref.node())}
    for name, was in given.items():
        if name in now and not _is_same(now[name], was):
            raise undecided(type(value)._assay_label, "a record that does not hold what it was made of")


def _is_same(now: Any, was: Any) -> bool:
    if type(now) is not type(was):
        return isinstance(now, (int, float)) and isinstance(was, (int, float)) and now == was
    return now is was or bool(now == was)


def _content(value: Any) -> Any:
    base = type(value)._assay_base
    if base in _IMMUTABLE.values():
        return base.__new__(base, value) if base is not tuple else tuple.__getitem__(value, slice(None))
    ref = ref_of(value)
    assert ref is not None
    session = ref.home()
    return session.decode(session.request("base", ref.node()))


def _own(value: Any, name: str, other: Any) -> Any:
    """Ask the submission's own method, where the case trusts its class."""
    label = type(value)._assay_label
    trust = _trusted(value)
    if not trust:
        raise undecided(label, "equality" if name in ("__eq__", "__ne__") else "an order", entry=f"asked:{label}")
    ref = ref_of(value)
    assert ref is not None
    session = ref.home()
    if trust == "wholly":
        return session.decode(session.operate(ref, name, other))
    questions = [other, *_unlike(value, other)]
    order = list(range(len(questions)))
    state.random.shuffle(order)
    answers: dict[int, Any] = {}
    for place in order:
        answers[place] = session.decode(session.operate(ref, name, questions[place]))
    said = answers[0]
    if type(said) is bool and name == "__eq__" and said and any(answers[place] is True for place in order if place):
        raise undecided(label, "what equals values unlike it, too,")
    return said


def _unlike(value: Any, other: Any) -> list[Any]:
    """Values that nothing honest equals beside `other`: to ask about among the real one."""
    draw = state.random.getrandbits
    found: list[Any] = []
    plain = _content(other) if isinstance(other, Stand) and type(other)._assay_base else other
    kind = type(plain)
    if kind is int:
        found = [plain + 1 + draw(40), -draw(50)]
    elif kind is float:
        found = [plain + 1e3 + draw(30), -float(draw(40))]
    elif kind is str:
        found = [f"{draw(64):x}", f"{plain}{draw(64):x}"]
    elif kind in (list, tuple):
        found = [kind([*plain, draw(60)]), kind([draw(60)])]
    elif kind is dict:
        found = [{**plain, f"{draw(64):x}": draw(60)}]
    elif kind in (bytes, set, frozenset):
        found = [kind([draw(7)] * 3 + list(plain))] if kind is bytes else [kind([draw(60)])]
    elif isinstance(other, Stand):
        found = _made_otherwise(other)
    return found


def _made_otherwise(value: Any) -> list[Any]:
    given = object.__getattribute__(value, "__dict__").get("_assay_made")
    if not given:
        return []
    kind, arguments, named = given
    changed = [_changed(one) for one in arguments], {k: _changed(v) for k, v in named.items()}
    if not any(c is not _EMPTY for c in (*changed[0], *changed[1].values())):
        return []
    values = [was if now is _EMPTY else now for was, now in zip(arguments, changed[0])]
    options = {k: named[k] if v is _EMPTY else v for k, v in changed[1].items()}
    ref = ref_of(kind)
    assert ref is not None
    failures = list(state.failures)
    try:
        return [ref.home().call(ref, tuple(values), options)]
    except Exception:
        state.failures[:] = failures
        return []


def _changed(value: Any) -> Any:
    draw = state.random.getrandbits
    if type(value) is int:
        return draw(30) + 1000
    if type(value) is float:
        return float(draw(30)) + 1000.5
    if type(value) is str:
        return f"{draw(64):x}"
    if type(value) in (list, tuple) and value and type(value[0]) in (int, float, str):
        return type(value)([*value, _changed(value[0])])
    return _EMPTY


def _ordering(name: str) -> Callable[[Any, Any], Any]:
    def order(self: Any, other: Any) -> Any:
        base = type(self)._assay_base
        if base is not None and "__lt__" not in type(self)._assay_form["own"]:
            mine, theirs = _content(self), _content(other) if isinstance(other, Stand) and type(other)._assay_base else other
            return getattr(base, name)(mine, theirs)
        found = _own(self, name, other)
        return found

    return order


def _contains(self: Any, item: Any) -> Any:
    kind = type(self)
    if kind._assay_base is not None and "__contains__" not in kind._assay_form["own"]:
        return item in _content(self)
    if not _trusted(self):
        raise undecided(kind._assay_label, "what it contains", entry=f"asked:{kind._assay_label}")
    session_ref = ref_of(self)
    assert session_ref is not None
    session = session_ref.home()
    if _trusted(self) == "wholly":
        return session.decode(session.operate(session_ref, "__contains__", item))
    questions = [item, *_unlike(self, item)]
    order = list(range(len(questions)))
    state.random.shuffle(order)
    answers = {place: session.decode(session.operate(session_ref, "__contains__", questions[place])) for place in order}
    if answers[0] is True and any(answers[place] is True for place in order if place):
        raise undecided(kind._assay_label, "what contains values unlike its own, too,")
    return answers[0]


def truth(value: Any) -> bool:
    """Whether a stand-in is true, decided here."""
    kind = type(value)
    form = kind._assay_form
    if "__bool__" in form["own"]:
        if not _trusted(value):
            raise undecided(kind._assay_label, "whether it is true")
        return _forwarder("__bool__")(value) is True
    if kind._assay_base is not None and "__len__" not in form["own"]:
        return bool(_content(value))
    if "__len__" in form["operators"]:
        return _length(value) > 0
    return True


def hash_of(value: Any) -> int:
    kind = type(value)
    form = kind._assay_form
    how = form["equal"]
    if "__hash__" not in form["operators"] and how in ("own", "fields"):
        raise TypeError(f"unhashable type: {kind.__name__!r}")
    if how == "own" or "__hash__" in form["own"] and how != "fields":
        return hash(_forwarder("__hash__")(value))
    if how == "fields":
        return hash(tuple(_hashable(node) for _, node in _fields(value)))
    if kind._assay_base is not None:
        return hash(_content(value))
    return object.__hash__(value)


def _hashable(value: Any) -> Any:
    return value


# -- exceptions ------------------------------------------------------------------------------------


def _mirror_kind(ref: Ref, name: str, module: str, bases: list[Any]) -> type[BaseException]:
    known = _known_errors().get((module, name))
    if known is not None:
        return known
    key = (module, name)
    made = state.errors.get(key)
    if made is None:
        parents = [base for base in bases if issubclass(base, BaseException)] or [Exception]
        made = MirrorKind(name.rpartition(".")[2], tuple(parents), {"__module__": module, "__qualname__": name, "_assay_kind": ref, "__str__": _mirror_text, "__getattr__": _mirror_attribute})
        state.errors[key] = made
    return made


class MirrorKind(type):
    """The class of exceptions that stand for one class of the submission's."""

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        ref = vars(cls).get("_assay_kind")
        if ref is None:
            return super().__call__(*arguments, **named)
        return ref.home().call(ref, arguments, named)

    def __getattr__(cls, name: str) -> Any:
        ref = vars(cls).get("_assay_kind")
        if ref is None or name.startswith("__") or _quietly(name):
            raise AttributeError(name)
        return ref.home().get(ref, name)


def _mirror_text(self: Any) -> str:
    text = self.__dict__.get("_assay_text")
    if text is not None:
        return text
    base = next(one for one in type(self).__mro__ if not isinstance(one, MirrorKind))
    return base.__str__(self)


def _mirror_attribute(self: Any, name: str) -> Any:
    ref = self.__dict__.get("_assay")
    if ref is None or name.startswith("__") or _quietly(name):
        raise AttributeError(name)
    return ref.home().get(ref, name)


def _known_errors() -> dict[tuple[str, str], type[BaseException]]:
    """Exceptions of Python and of installed packages: by name, but from a table of our own."""
    found: dict[tuple[str, str], type[BaseException]] = {}
    pending: list[type[BaseException]] = [BaseException]
    while pending:
        kind = pending.pop()
        for one in type.__subclasses__(kind):
            if not isinstance(one, MirrorKind):
                pending.append(one)
        if kind.__module__ not in _ENDING and not _is_authors_error(kind):
            found[(kind.__module__, kind.__qualname__)] = kind
    return found


_ENDING = frozenset({"_pytest.outcomes", "pytest", "unittest.case", "_pytest.config.exceptions", "_pytest.runner"})


def _is_authors_error(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    place = getattr(module, "__file__", None)
    return place is not None and _in_workspace(os.path.abspath(place))


# -- containers that live in the host --------------------------------------------------------------


def link_to(ref: Ref, content: Any) -> Any:
    """A copy of a container in the host which follows it, and writes through to it."""
    if type(content) is list:
        made: Any = Linked(content)
    elif type(content) is dict:
        made = LinkedDict(content)
    elif type(content) is set:
        made = LinkedSet(content)
    else:
        return content
    made._assay = ref
    made._assay_seen = ref.session.changes
    return made


def _refresh(value: Any) -> None:
    ref = value._assay
    if value._assay_seen == ref.session.changes:
        return
    content = ref.session.decode(ref.session.request("base", ref.node()))
    kind = type(value).__mro__[1]
    kind.clear(value)
    (kind.extend if kind is list else kind.update)(value, content)
    value._assay_seen = ref.session.changes


def _reading(kind: type, name: str) -> Callable[..., Any]:
    original = getattr(kind, name)

    def read(self: Any, *arguments: Any) -> Any:
        _refresh(self)
        return original(self, *arguments)

    read.__name__ = name
    return read


def _writing(kind: type, name: str) -> Callable[..., Any]:
    def write(self: Any, *arguments: Any, **named: Any) -> Any:
        ref = self._assay
        session = ref.session
        if name.startswith("__"):
            found = session.decode(session.operate(ref, name, *arguments))
            result = self if name.startswith("__i") else found
        else:
            bound = session.request("get", ref.node(), name)
            result = session.call(ref_of(session.decode(bound)) or ref, arguments, named)
        self._assay_seen = -1
        return result

    write.__name__ = name
    return write


def _linked(kind: type, reading: str, writing: str) -> type:
    space: dict[str, Any] = {name: _reading(kind, name) for name in reading.split()}
    space.update({name: _writing(kind, name) for name in writing.split()})
    space["__hash__"] = None
    space["plain"] = lambda self: (_refresh(self), kind(kind.__iter__(self)) if kind is not dict else dict(dict.items(self)))[1]
    space["__reduce_ex__"] = lambda self, protocol: (kind, (self.plain(),))
    return type(kind.__name__, (kind,), space)


Linked: Any = _linked(
    list,
    "__len__ __iter__ __getitem__ __contains__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __add__ __mul__ __repr__ __reversed__ count index copy",
    "__setitem__ __delitem__ __iadd__ __imul__ append extend insert pop remove reverse sort clear",
)
LinkedDict: Any = _linked(
    dict,
    "__len__ __iter__ __getitem__ __contains__ __eq__ __ne__ __or__ __repr__ __reversed__ get items keys values copy",
    "__setitem__ __delitem__ __ior__ clear pop popitem setdefault update",
)
LinkedSet: Any = _linked(
    set,
    "__len__ __iter__ __contains__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __and__ __or__ __sub__ __xor__ __repr__ copy union difference intersection issubset issuperset isdisjoint symmetric_difference",
    "__iand__ __ior__ __isub__ __ixor__ add clear discard pop remove update difference_update intersection_update",
)


# -- modules ---------------------------------------------------------------------------------------


class Module(ModuleType):
    """Stands for a module of the submission's."""

    def __getattr__(self, name: str) -> Any:
        ref = ref_of(self)
        if ref is None or _quietly(name) or name.startswith("__") and name not in _MODULE_NAMES:
            raise AttributeError(name)
        if name == "__all__":
            return _all_names(ref)
        child = sys.modules.get(f"{self.__name__}.{name}")
        found = ref.home().get(ref, name)
        return child if isinstance(found, Module) and child is not None else found

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__") and name not in _MODULE_NAMES or _is_author_module(value):
            ModuleType.__setattr__(self, name, value)
            return
        if isinstance(value, Module) and value.__name__ == f"{self.__name__}.{name}":
            return  # the import system binds a submodule
        ref = ref_of(self)
        assert ref is not None
        session = ref.home()
        session.request("set", ref.node(), name, session.encode(value))

    def __delattr__(self, name: str) -> None:
        ref = ref_of(self)
        assert ref is not None
        ref.home().request("delete", ref.node(), name)

    def __dir__(self) -> list[str]:
        ref = ref_of(self)
        return [] if ref is None else _names(ref)


_MODULE_NAMES = frozenset({"__version__", "__all__", "__author__", "__doc__", "__title__", "__version_info__"})


def _is_author_module(value: Any) -> bool:
    return type(value) is ModuleType


def _all_names(ref: Ref) -> list[str]:
    """What ``from module import *`` brings: never a name of Python's, or one that the test has."""
    session = ref.home()
    try:
        named = session.get(ref, "__all__")
    except AttributeError:
        named = [name for name in _names(ref) if not name.startswith("_")]
    frame = sys._getframe(2)
    taken = set(frame.f_globals) | set(vars(builtins))
    return [name for name in named if type(name) is str and name not in taken]


def module_of(session: Session, number: int, name: str) -> Any:
    held = session.stands.get(number)
    if held is None:
        held = sys.modules.get(_word(name))
        if not isinstance(held, Module):
            held = Module(name)
            held.__dict__["_assay"] = Ref(session, number, (name,))
        session.stands[number] = held
    return held


def _remember(ref: Ref, path: tuple[str, ...]) -> None:
    """A function or an instance reached by name is looked up by it in other sessions."""
    if len(path) == 2:
        ref.path = path


class Finder:
    """Gives stand-ins for what the submission has, and leaves the author's files alone.

    Args:
        authors: Real paths of the hidden files.
    """

    def __init__(self, root: str, authors: frozenset[str]) -> None:
        self._root = root
        self._authors = authors
        self._seen: set[str] = set()
        self._busy = False

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """The spec of a stand-in; None for every module that is not the submission's."""
        from importlib.machinery import ModuleSpec, PathFinder

        top, _, rest = fullname.partition(".")
        if top in sys.builtin_module_names or top in _STDLIB:
            return None
        parent = sys.modules.get(fullname.rpartition(".")[0]) if rest else None
        spec = PathFinder.find_spec(fullname, path if rest else None)
        if rest and not isinstance(parent, Module) and spec is not None and not self._is_solution(spec):
            return None
        if spec is not None and not self._is_solution(spec):
            if _in_workspace(os.path.abspath(spec.origin or "")) or rest or not self._in_source(top):
                return None
        if rest and not isinstance(parent, Module) and spec is None:
            return None
        found = ModuleSpec(fullname, self, origin="the submission", is_package=True)
        found.submodule_search_locations = [os.path.join(self._root, *fullname.split("."))]
        return found

    def _is_solution(self, spec: Any) -> bool:
        """Whether what Python would load is the source's own version of the submission."""
        if spec.origin is None or not spec.has_location:  # a directory without __init__.py
            places = list(spec.submodule_search_locations or ())
            return any(_in_workspace(os.path.abspath(one)) for one in places) and not any(
                self._holds_tests(one) for one in places
            )
        place = os.path.realpath(spec.origin)
        if any(place.startswith(one) for one in state.shared):
            raise fail(BoundaryError(f"{spec.name} was written while the tests ran: it is not imported in the judge"))
        return _in_workspace(place) and not self.is_authors(place)

    def _holds_tests(self, directory: str) -> bool:
        name = os.path.basename(directory)
        return name in ("tests", "test") or any(one.startswith(directory + os.sep) for one in self._authors)

    def is_authors(self, place: str) -> bool:
        """Whether a file of the judge's tree is a test, or helps tests."""
        if place in self._authors:
            return True
        parts = os.path.relpath(place, self._root).split(os.sep)
        name = parts[-1]
        if name in ("conftest.py", "setup.py") or name.startswith("test_") or name.endswith("_test.py"):
            return True
        if any(part in ("tests", "test", "testing_utils") for part in parts[:-1]):
            return True
        try:
            with open(place, "rb") as file:
                text = file.read(1 << 20)
        except OSError:
            return False
        import re

        return re.search(rb"^\s*(?:import|from)\s+(?:unittest|pytest|_pytest)\b", text, re.MULTILINE) is not None

    def _in_source(self, top: str) -> bool:
        for base in ("", "src", "lib", "python"):
            place = os.path.join(self._root, base, top)
            if os.path.isfile(place + ".py") or os.path.isdir(place) and not self._holds_tests(place):
                return True
        return False

    def create_module(self, spec: Any) -> Any:
        """Have the host import it."""
        session = current()
        name = spec.name
        key = f"{session.number}:{name}"
        fresh = key in self._seen
        node = session.request("import", name, fresh)
        self._seen.add(key)
        if type(node) is not list or node[0] != "m":
            raise WireError("an import makes no sense")
        made = Module(name)
        made.__dict__["_assay"] = Ref(session, node[1], (name,))
        session.stands[node[1]] = made
        return made

    def exec_module(self, module: Any) -> None:
        """Nothing: it was run in the host."""


_STDLIB = frozenset(getattr(sys, "stdlib_module_names", ())) - {"test", "this", "antigravity"}


# -- connections -----------------------------------------------------------------------------------


def _control(message: list[Any]) -> None:
    deadline = time.monotonic() + 30
    with state.arrived:
        while state.control is None:
            if not state.arrived.wait(max(deadline - time.monotonic(), 0.01)):
                raise fail(HostDied("the process of the solution did not start"))
    try:
        send(state.control, message)
    except GoneError:
        raise fail(HostDied("the process of the solution ended")) from None


def _await(key: tuple[Any, ...], ask: Callable[[], None] | None = None) -> socket.socket:
    """Wait for a connection of the host, after asking for it."""
    if ask is not None:
        ask()
    deadline = time.monotonic() + 30
    with state.arrived:
        while key not in state.waiting:
            if not state.arrived.wait(max(deadline - time.monotonic(), 0.0)):
                raise fail(HostDied("the process of the solution did not connect"))
        return state.waiting.pop(key)


def _accept(listener: socket.socket) -> None:
    """Sort the connections of the host; each says first what it is for."""
    most = 2_000
    while most:
        most -= 1
        try:
            link, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_greet, args=(link,), daemon=True).start()


def _greet(link: socket.socket) -> None:
    link.settimeout(_LIMIT)
    try:
        message = receive(link)
    except (WireError, OSError):
        link.close()
        return
    link.settimeout(None)
    if not all(type(part) is int for part in message[1:]):
        link.close()
        return
    if message[0] == "lane":
        session = next((one for one in list(state.sessions.values()) if one.number == message[1]), None)
        if session is not None:
            _serve_lane(session, link)
        return
    with state.arrived:
        if message == ["hello"]:
            state.control = state.control or link
        else:
            state.waiting.setdefault(tuple(message), link)
        state.arrived.notify_all()


def _serve_lane(session: Session, link: socket.socket) -> None:
    """Answer a thread of the host's."""
    session.local.link = link
    while True:
        try:
            session.answer(link, receive(link))
        except (WireError, OSError):
            link.close()
            return


# -- subclasses ------------------------------------------------------------------------------------


def _subclass(mcs: type, name: str, bases: tuple[type, ...], space: dict[str, Any], named: dict[str, Any]) -> Any:
    """A class of the test's made of one of the submission's: the host makes one that calls back."""
    first = next(base for base in bases if isinstance(base, StandKind) and ref_of(base) is not None)
    ref = ref_of(first)
    assert ref is not None
    session = ref.home()
    members: dict[str, Any] = {}
    for key, value in space.items():
        if key in ("__module__", "__qualname__", "__classcell__", "__firstlineno__", "__static_attributes__"):
            if key == "__module__":
                members[key] = ["plain", value]
            continue
        kind = {staticmethod: "static", classmethod: "class", property: "property"}.get(type(value), "plain")
        inner = value.__func__ if kind in ("static", "class") else value.fget if kind == "property" else value
        members[key] = [kind, session.encode(inner)]
    options = {key: session.encode(value) for key, value in named.items()}
    encoded = [session.encode(base) for base in bases if base is not object]
    node = session.request("subclass", name, encoded, members, options)
    if type(node) is not list or node[0] != "k":
        raise WireError("a class makes no sense")
    number, form = node[1], node[2]
    made_ref = Ref(session, number)
    own = {key: value for key, value in space.items() if key not in ("__slots__",)}
    kinds = tuple(base for base in bases)
    made = type.__new__(
        mcs, name, kinds,
        {**own, "_assay_kind": made_ref, "_assay_form": form, "_assay_base": first._assay_base, "_assay_label": f"{space.get('__module__')}.{name}", "_assay_tested": True},
    )
    session.kinds[number] = made
    return made


# -- what tests patch ------------------------------------------------------------------------------


def _place_of(target: Any) -> tuple[str, list[str]] | None:
    """The name of a module or class that both sides have; None for anything else."""
    if isinstance(target, Module) or ref_of(target) is not None:
        return None
    if isinstance(target, ModuleType):
        place = getattr(target, "__file__", None)
        if place is not None and _in_workspace(os.path.abspath(place)):
            return None
        return target.__name__, []
    if isinstance(target, type) and target.__module__ and not _is_authors(target):
        return target.__module__, target.__qualname__.split(".")
    return None


def patch(target: Any, name: str, value: Any) -> None:
    """Make a patch of the tests hold in the host, too."""
    place = _place_of(target)
    if place is None or not isinstance(name, str):
        return
    state.patches.append((*place, name, value))
    for session in list(state.sessions.values()):
        if not session.dead:
            session.request("patch", *place, name, session.encode(value))


def unpatch(target: Any, name: str) -> None:
    """Take a patch back."""
    place = _place_of(target)
    if place is None:
        return
    for number in range(len(state.patches) - 1, -1, -1):
        if state.patches[number][:3] == (*place, name):
            del state.patches[number]
            break
    else:
        return
    for session in list(state.sessions.values()):
        if not session.dead:
            session.request("unpatch", *place, name)


def _mirror_monkeypatch() -> None:
    from _pytest.monkeypatch import MonkeyPatch

    set_attribute, undo = MonkeyPatch.setattr, MonkeyPatch.undo

    def setattr_(self: Any, *arguments: Any, **named: Any) -> None:
        before = len(self._setattr)
        set_attribute(self, *arguments, **named)
        for target, name, _ in self._setattr[before:]:
            patch(target, name, getattr(target, name))
            self.__dict__.setdefault("_assay_patched", []).append((target, name))

    def undo_(self: Any) -> None:
        undo(self)
        for target, name in reversed(self.__dict__.pop("_assay_patched", [])):
            unpatch(target, name)

    MonkeyPatch.setattr = setattr_  # type: ignore[method-assign]
    MonkeyPatch.undo = undo_  # type: ignore[method-assign]


def _mirror_mock() -> None:
    from unittest import mock

    kind: Any = mock._patch  # type: ignore[attr-defined]
    enter, leave = kind.__enter__, kind.__exit__

    def enter_(self: Any) -> Any:
        found = enter(self)
        patch(self.target, self.attribute, getattr(self.target, self.attribute))
        return found

    def leave_(self: Any, *error: Any) -> Any:
        target = self.target
        found = leave(self, *error)
        unpatch(target, self.attribute)
        return found

    kind.__enter__, kind.__exit__ = enter_, leave_


_IN_HOST = {
    "subprocess": ("Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"),
    "os": ("system", "popen"),
    "runpy": ("run_module", "run_path"),
    "pickle": ("loads", "load"),
}
"""What would run or unpickle code of the submission: it happens in the host."""


def _send_to_host() -> None:
    import importlib

    for module, names in _IN_HOST.items():
        place = importlib.import_module(module)
        for name in names:
            setattr(place, name, _elsewhere(module, name, getattr(place, name)))
    reload = importlib.reload

    def reload_(module: Any) -> Any:
        ref = ref_of(module)
        if ref is None:
            return reload(module)
        session = ref.home()
        session.decode(session.request("reload", ref.node()))
        return module

    importlib.reload = reload_
    import pickle

    dumps = pickle.dumps

    def dumps_(value: Any, *rest: Any, **named: Any) -> Any:
        if ref_of(value) is None:
            return dumps(value, *rest, **named)
        session = current()
        return session.decode(session.request("standard", "pickle", "dumps"))(value, *rest, **named)

    pickle.dumps = dumps_


def _elsewhere(module: str, name: str, original: Any) -> Any:
    """A function that runs in the host when a test calls it, and here for everybody else."""

    def run(*arguments: Any, **named: Any) -> Any:
        if not _is_test_code(sys._getframe(1).f_code.co_filename):
            return original(*arguments, **named)
        session = current()
        return session.decode(session.request("standard", module, name))(*arguments, **named)

    if isinstance(original, type):
        return _Elsewhere(module, name, original)
    run.__name__ = name
    run.__doc__ = original.__doc__
    return run


class _Elsewhere(type):
    """A class of the standard library whose instances for tests are made in the host."""

    def __new__(mcs, module: str, name: str, original: Any) -> Any:
        made = super().__new__(mcs, name, (original,), {"_assay_module": module, "_assay_original": original})
        return made

    def __init__(cls, module: str, name: str, original: Any) -> None:
        super().__init__(name, (original,), {})

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        depth = 1
        frame = sys._getframe(depth)
        while frame is not None and frame.f_code.co_filename.endswith(("subprocess.py", "asyncio/base_events.py")):
            frame = frame.f_back
        if frame is None or not _is_test_code(frame.f_code.co_filename):
            return cls._assay_original(*arguments, **named)
        session = current()
        return session.decode(session.request("standard", cls._assay_module, cls.__name__))(*arguments, **named)


def _watch_code() -> None:
    """Refuse to run text or files in the judge that the submission can have written."""
    compiling = {"compile", "exec", "marshal.loads"}

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in compiling:
            return
        if event == "marshal.loads":
            if _is_test_code(sys._getframe(1).f_code.co_filename):
                raise fail(BoundaryError("a test unmarshals in the judge"))
        elif event == "compile":
            source, name = arguments[0], arguments[1]
            if type(source) is bytes or type(source) is str:
                caller = sys._getframe(1).f_code.co_filename
                if _is_test_code(caller):
                    raise fail(BoundaryError("a test runs text as code: that cannot happen in the judge"))
            if type(name) is str and _is_shared(name):
                raise fail(BoundaryError("a file that was written while the tests ran is not run in the judge"))
        else:
            place = getattr(arguments[0], "co_filename", "")
            if _is_shared(place):
                raise fail(BoundaryError("a file that was written while the tests ran is not run in the judge"))

    sys.addaudithook(hear)


def _is_shared(path: str) -> bool:
    return path.startswith(state.shared)


def _is_test_code(path: str) -> bool:
    return path.startswith(state.root + os.sep)


def install(link: socket.socket, brief: dict[str, Any], root: str, report: Callable[[str], None]) -> Finder:
    """Set up the boundary, before the first test is imported.

    Args:
        link: The listening socket to which the host connects.
        brief: What the host of assay told.
        root: The judge's tree.
        report: Takes the classes that would have had to be trusted.
    """
    global _FAILING, _NEVER
    state.root, state.shared = root, tuple(brief["shared"])
    state.seconds = float(brief["seconds"])
    state.allowed = frozenset(brief["allow"])
    state.report, state.fresh = report, str(brief["fresh"])
    threading.Thread(target=_accept, args=(link,), daemon=True).start()
    outcomes = sys.modules.get("_pytest.outcomes")
    import unittest

    if outcomes is not None:
        _FAILING = (AssertionError, outcomes.Failed)
        _NEVER = (outcomes.OutcomeException, unittest.SkipTest)
        _mirror_monkeypatch()
        _refuse_plugins()
    else:
        _NEVER = (unittest.SkipTest,)
    _mirror_mock()
    _send_to_host()
    _watch_code()
    with state.arrived:
        state.arrived.wait_for(lambda: state.control is not None, 30)
    if state.control is None:
        sys.stderr.write("the process of the solution did not start\n")
        os._exit(70)
    return Finder(root, frozenset(os.path.join(root, one) for one in brief["hidden"]))


def _refuse_plugins() -> None:
    """Let no module of the submission be a plug-in of the judge's pytest."""
    import pluggy

    register = pluggy.PluginManager.register

    def register_(self: Any, plugin: Any, name: Any = None) -> Any:
        if ref_of(plugin) is not None:
            raise ImportError(f"{getattr(plugin, '__name__', name)} is of the submission: it is no plug-in of the judge")
        return register(self, plugin, name)

    pluggy.PluginManager.register = register_  # type: ignore[method-assign]


def enter(module: str) -> None:
    """Say which test module is imported or tested now."""
    state.current = module


def begin(module: str) -> None:
    """Start a test of a module: forget what made an earlier one fail."""
    if state.fresh == "test":
        renew(module)
    state.current = module
    del state.failures[:]


def verdict() -> str:
    """Why the test that ended cannot have passed; empty if it can."""
    return str(state.failures[0]) if state.failures else ""


def renew(module: str) -> None:
    """Give a test module a fresh import of the submission."""
    old = state.sessions.pop(module, None)
    if old is not None:
        old.end("the session has ended")
