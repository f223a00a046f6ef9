"""What the judge makes of what the host tells: copies, stand-ins, mirrors of exceptions.

`Session` reads references; each must be one that it can have been given. An exception of the
submission arrives as an instance of a mirror class with the same built-in bases, so that
``pytest.raises(kit.Error)`` holds. A list, dict or set that an attribute holds is a copy that
follows the one in the host and writes through to it, for tests that change settings and caches.
"""

from __future__ import annotations

import builtins
import dis
import enum
import io
import os
import sys
import threading
from collections.abc import Callable
from types import CoroutineType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from assay.graders.testing.inside.boundary import decisions
from assay.graders.testing.inside.boundary.session import (
    BoundaryError,
    HostDiedError,
    Ref,
    Talk,
    fail,
    is_authors,
    is_module_of_both,
    ref_of,
    state,
    undecided,
)
from assay.graders.testing.inside.boundary.stands import (
    BUILTINS,
    StandKind,
    a_loop_runs,
    is_quiet,
    plain_kind,
    stand_kind,
)
from assay.graders.testing.inside.boundary.wire import OPERATORS, WireError

_ENDING = ("_pytest", "pytest", "unittest", "pluggy", "hypothesis")
"""Where the exceptions are from that end or skip a test: the submission has none of them."""

_NEW = frozenset(["__new_member__", "__init__"])
"""What an enumeration has that cannot be made again from its members and methods."""

_FILES = (io.TextIOWrapper, io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.FileIO)
_MOCKS = frozenset(
    "assert_any_call assert_awaited assert_called assert_called_once assert_called_once_with "
    "assert_called_with assert_has_calls assert_not_called attach_mock await_args "
    "await_args_list await_count call_args call_args_list call_count called configure_mock "
    "method_calls mock_add_spec mock_calls reset_mock return_value side_effect".split()
)
_FUNCTIONS = (FunctionType, MethodType, type(len), type("".join))


class Session(Talk):
    """A session of the judge's: it knows what the host's references mean."""

    def __init__(self) -> None:
        self._kinds: dict[int, Any] = {}
        self._enumerations: set[int] = set()
        self.known: dict[int, Any] = {}
        super().__init__()

    # -- to the host ---------------------------------------------------------------------------

    def other(self, value: Any, depth: int) -> list[Any]:
        """Tell of something that is not plain: a reference, or a handle."""
        ref = ref_of(value) or _coroutines.get(id(value), (None, None))[1]
        if ref is not None:
            if ref.path is None and ref.talk is not self:
                raise fail(BoundaryError("an object of one import was given to another: see fresh"))
            return ref.node()
        if isinstance(value, _LINKED):
            linked: Any = value
            own = linked._assay.talk is self
            return ["R", linked._assay.number] if own else self.encode(linked.plain(), depth)
        if isinstance(value, BaseException):
            return self._error(value)
        if isinstance(value, enum.Enum):
            name = value.name if value.name in type(value).__members__ else None
            return ["EM", self.encode(type(value)), name, self.encode(value.value, depth + 1)]
        if is_module_of_both(value):
            return ["P", value.__name__, []]
        named = isinstance(value, (type, FunctionType)) and "<" not in value.__qualname__
        if named and not is_authors(value):
            return ["S", value.__module__, value.__qualname__]
        if isinstance(value, memoryview):
            return self.encode(bytes(value), depth)
        if isinstance(value, enum.EnumMeta) and not _NEW.intersection(vars(value)):
            return self._enumeration(value)
        return ["H", state.number(value), _form(value)]

    def _error(self, error: BaseException) -> list[Any]:
        number = state.number(error)
        state.raised[number] = error
        arguments: list[Any] = []
        for argument in error.args:
            try:
                arguments.append(self.encode(argument))
            except WireError:
                arguments.append(str(argument))
        kind = type(error)
        bases = [one.__name__ for one in kind.__mro__ if one.__module__ == "builtins"]
        return ["E", number, kind.__module__, kind.__qualname__, arguments, bases]

    def _enumeration(self, kind: Any) -> list[Any]:
        """An enumeration of the tests, which the host makes again; its methods stay here."""
        number = state.number(kind)
        if number in self._enumerations:
            return ["EC", number]
        self._enumerations.add(number)
        members = {name: one.value for name, one in kind.__members__.items()}
        methods = {
            name: one
            for name, one in vars(kind).items()
            if isinstance(one, FunctionType) and is_authors(one)
        }
        bases = [self.encode(base) for base in kind.__bases__]
        space = [[name, self.encode(one)] for name, one in {**members, **methods}.items()]
        return ["EC", number, kind.__name__, bases, space]

    # -- from the host -------------------------------------------------------------------------

    def decode(self, node: Any, depth: int = 0) -> Any:
        """Read what the host said; what makes no sense ends the session."""
        if depth:
            return super().decode(node, depth)
        try:
            return super().decode(node)
        except WireError as error:
            self.end(f"the process of the solution sent what makes no sense: {error}")
            raise fail(HostDiedError(self.dead)) from None

    def others(self, node: list[Any]) -> Any:
        """Read a reference.

        Raises:
            WireError: If it is none.
        """
        reader = _READERS.get(node[0])
        if reader is None:
            raise WireError("a value of an unknown kind")
        try:
            return reader(self, *node[1:])
        except (TypeError, IndexError, KeyError, ValueError, AttributeError) as error:
            raise WireError(f"a reference makes no sense: {error}") from None

    def array(self, found: Any) -> Any:
        """An array; an empty one is watched, because it would satisfy every comparison."""
        if found.size or "empty:numpy.ndarray" in state.allowed:
            return found
        return found.view(decisions.vacuous_kind())

    def kind(self, number: int, form: Any = None) -> Any:
        """What stands for a class."""
        if number not in self._kinds:
            form = form or self.request("kind", ["R", number])[2]
            name, module = word(form["name"]), word(form["module"])
            bases = [self.others(base) for base in form["bases"]]
            path = None if "<" in name else (module, *name.split("."))
            self._kinds[number] = self._make_kind(Ref(self, number, path), name, bases, form)
        return self._kinds[number]

    def _make_kind(self, ref: Ref, name: str, bases: list[Any], form: Any) -> Any:
        module = word(form["module"])
        if any(issubclass(base, BaseException) for base in bases):
            return _mirror_kind(ref, name, module, bases)
        key = (module, name, repr([form[one] for one in ("operators", "equal", "own", "methods")]))
        made = _kinds.get(key) if ref.path is not None else None
        if made is None:
            made = stand_kind(ref, name, module, bases, form)
            if ref.path is not None:
                _kinds[key] = made
        else:
            type.__setattr__(made, "_assay_kind", ref)  # the module may have been loaded anew
        return made

    def stand(self, number: int, kind: list[Any]) -> Any:
        """What stands for an object."""
        held = self.known.get(number)
        if held is None:
            cls: Any = self.others(kind)
            if not isinstance(cls, StandKind):
                cls = plain_kind(cls)
            base: Any = cls._assay_base or object
            if base in (object, list, dict, set, bytearray):
                held = base.__new__(cast("Any", cls))
            else:
                held = base.__new__(
                    cls, _exactly(base, self.decode(self.request("base", ["R", number])))
                )
            object.__setattr__(held, "_assay", Ref(self, number))
            object.__setattr__(held, "_assay_born", state.tick())
            self.known[number] = held
        return held

    def coroutine(self, number: int) -> Any:
        """A coroutine of the judge's that waits for one of the host's."""
        waiting: Any = object.__new__(plain_kind(CoroutineType))
        object.__setattr__(waiting, "_assay", Ref(self, number))

        async def wait() -> Any:
            return await waiting

        made = wait()
        _coroutines[id(made)] = (made, Ref(self, number))
        return made

    def class_of_python(self, name: str) -> Any:
        """A built-in class."""
        return BUILTINS[name]

    def module(self, number: int, name: str, doc: Any = None) -> Any:
        """What stands for a module."""
        held = self.known.get(number)
        if held is None:
            held = sys.modules.get(word(name))
            if not isinstance(held, Module):
                held = Module(name, doc if type(doc) is str else None)
                ModuleType.__setattr__(held, "_assay", Ref(self, number, (name,)))
            self.known[number] = held
        return held

    def handle(self, number: int) -> Any:
        """An object of the tests that comes back."""
        return state.handles[number]

    def member(self, kind: list[Any], name: Any, value: Any) -> Any:
        """A member of an enumeration that is not the submission's."""
        found: Any = self.others(kind) if kind[0] == "h" else _enumerations().get(tuple(kind))
        if not isinstance(found, enum.EnumMeta):
            raise WireError("an enumeration is not known")
        return found[name] if name is not None else found(self.decode(value))

    def own_error(self, number: int) -> BaseException:
        """An exception of the tests that comes back."""
        return state.raised[number]

    def linked(self, number: int, content: Any) -> Any:
        """A container that an attribute holds."""
        found = self.decode(content)
        kind: Any = {list: LinkedList, dict: LinkedDict, set: LinkedSet}.get(type(found))
        if kind is None:
            return found
        made = kind(found)
        made._assay, made._assay_seen = Ref(self, number), self.changes
        return made

    def error(
        self, number: int, kind: list[Any], arguments: list[Any], told: dict[str, Any],
        text: str | None, inner: list[Any], cause: Any, context: Any,
    ) -> BaseException:  # fmt: skip
        """The mirror of an exception."""
        held = self.known.get(number)
        if held is not None:
            return held
        cls: Any = self.others(kind)
        values = [self.decode(one) for one in arguments]
        group: Any = getattr(builtins, "BaseExceptionGroup", None)
        if inner and group is not None and issubclass(cls, group):
            message = values[0] if values and type(values[0]) is str else ""
            error: Any = cls.__new__(cls, message, [self.others(one) for one in inner])
        else:
            error = _made(cls, values)
        for name, node in told.items():
            if name.isidentifier() and not name.startswith("_assay"):
                error.__dict__[name] = self.decode(node)
        if cause is not None:
            error.__cause__ = self.others(cause)
        if context is not None:
            error.__context__ = self.others(context)
        error.__dict__.update(_assay=Ref(self, number), _assay_text=text)
        self.known[number] = error
        return error

    def adopt(self, node: list[Any], mcs: Any, name: str, bases: Any, space: dict[str, Any]) -> Any:
        """Take the class that the host made for a class of the tests."""
        number, form = node[1], node[2]
        own = {
            "_assay_kind": Ref(self, number),
            "_assay_form": form,
            "_assay_label": f"{space.get('__module__')}.{name}",
            "_assay_tested": True,
        }
        made = self._kinds[number] = type.__new__(mcs, name, bases, {**space, **own})
        return made

    # -- what is asked -------------------------------------------------------------------------

    def get(self, ref: Ref, name: str) -> Any:
        """An attribute. What a module has is found again in other sessions by its name."""
        found = self.decode(self.request("get", ref.node(), name))
        own = ref_of(found)
        if own is not None and own.path is None and ref.path is not None and len(ref.path) == 1:
            own.path = (*ref.path, name)
        elif own is not None and ref.path is None:
            own.steps = name in ("send", "throw", "asend", "athrow")
        # Under such a name every failure of the judge would be one that was expected.
        path = (*(ref.path or ()), name)
        if type(found) is tuple:
            return tuple(self._narrow(one, path) for one in cast("tuple[Any, ...]", found))
        return self._narrow(found, path)

    def _narrow(self, found: Any, path: tuple[str, ...]) -> Any:
        if isinstance(found, type) and found in (Exception, BaseException, AssertionError):
            return _mirror_kind(Ref(self, 0, path), path[-1], "the submission", [found])
        return found

    def set(self, ref: Ref, name: str, value: Any) -> None:
        """Set an attribute."""
        self.request("set", ref.node(), name, self.encode(value))

    def call(self, ref: Ref, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Call something of the submission's."""
        values = [self.encode(one) for one in arguments]
        options = {name: self.encode(one) for name, one in named.items()}
        try:
            answer = self.request("call", ref.node(), values, options, *_where())
        except (StopIteration, StopAsyncIteration):
            entry = f"stops:{ref.label}"
            if ref.steps or entry in state.allowed:
                raise
            # Among the items of `map` or `zip` it would end a test before it has compared any.
            raise undecided(ref.label, "where an iteration ends", entry) from None
        if type(answer) is list and answer and answer[0] == "X":
            self._change(arguments, answer[2], f"changes:{ref.label}")
            answer = answer[1]
        return self.decode(answer)

    def build(self, held: Any, ref: Ref, arguments: Any, named: dict[str, Any]) -> None:
        """Have the host make what a record of the tests stands for."""
        values = [self.encode(one) for one in arguments]
        options = {name: self.encode(one) for name, one in named.items()}
        answer = self.request("call", ref.node(), values, options)
        answer = answer[1] if type(answer) is list and answer[0] == "X" else answer
        if type(answer) is not list or answer[0] != "o" or answer[1] in self.known:
            raise fail(BoundaryError(f"{ref.label} did not make a new record"))
        self.others(answer[2])
        self.known[answer[1]] = held
        object.__setattr__(held, "_assay", Ref(self, answer[1]))

    def _change(self, arguments: tuple[Any, ...], changed: Any, entry: str) -> None:
        """Make the changes to its arguments that a function is trusted with."""
        for place, node in changed:
            value, after = arguments[place], self.decode(node)
            if type(after) is not type(value):
                raise WireError("an argument became something else")
            if entry not in state.allowed:
                state.report(entry)
            elif isinstance(value, (list, bytearray)):
                value[:] = after
            else:
                value.clear()
                value.update(after)

    def operate(self, ref: Ref, name: str, *arguments: Any) -> Any:
        """Use an operator; what it gives is still encoded."""
        values = [self.encode(one) for one in arguments]
        return self.request("operate", ref.node(), name, values, *_where())

    # -- what the host asks --------------------------------------------------------------------

    def grant(self, op: str, values: list[Any]) -> Any:
        """Do what the host asks for: nothing but with what the tests gave it."""
        if op == "warn":
            return _warn(*values)
        value, name, *rest = state.handles[values[0]], *values[1:]
        if op == "call":
            return _run(value(*name, **rest[0]))
        if op == "operate" and name in OPERATORS and _offers(value, name):
            return (
                next(value)
                if name == "__next__"
                else _run(getattr(type(value), name)(value, *rest[0]))
            )
        if op == "attribute" and _may_read(value, name):
            return getattr(value, name)
        if op == "assign" and _may_read(value, name) and _may_write(value, name):
            entry = f"changes:{type(value).__module__}.{type(value).__qualname__}.{name}"
            if entry in state.allowed or type(value).__module__.startswith("unittest.mock"):
                setattr(value, name, rest[0])
            else:
                state.report(entry)
            return None
        raise AttributeError(f"the test's {type(value).__name__} does not offer {name!r}")


def _exactly(base: type, content: Any) -> Any:
    if type(content) is not base:
        raise WireError("the content of a value is of another kind")
    return content


def word(text: object) -> str:
    """A name that the host told."""
    if type(text) is not str or len(text) > 300:
        raise WireError("a name makes no sense")
    return text


def _where() -> list[str]:
    return ["on loop"] if a_loop_runs() else []


def _run(result: Any) -> Any:
    """A coroutine of the tests' is run to its end, where their event loop runs."""
    import inspect

    if not inspect.iscoroutine(result):
        return result
    import asyncio

    for thread, loop in list(state.loops.items()):
        if loop.is_running() and thread != threading.get_ident():
            return asyncio.run_coroutine_threadsafe(result, loop).result()
    return asyncio.run(result)


def _warn(_: Any, message: Any, category: Any, place: Any, line: Any) -> None:
    """Let the filters of the tests decide on a warning of the submission's."""
    import warnings

    if not (isinstance(category, type) and issubclass(category, Warning)):
        raise WireError("a warning of an unknown kind")
    text = message if isinstance(message, Warning) else str(message)
    warnings.warn_explicit(text, category, str(place), int(line))


def _form(value: Any) -> dict[str, Any]:
    """What the host is told of an object of the tests."""
    if not isinstance(value, _FUNCTIONS):
        operators = sorted(name for name in OPERATORS if _offers(value, name))
        place = getattr(value, "name", None) if type(value) in _FILES else None
        file = {"file": os.path.abspath(place)} if type(place) is str else {}
        return {"operators": operators, "async": _is_async(value), **file}
    import inspect

    form: dict[str, Any] = {"kind": "function", "name": getattr(value, "__name__", "function")}
    form["async"] = inspect.iscoroutinefunction(value)
    form["generator"] = inspect.isgeneratorfunction(value)
    form["doc"] = value.__doc__ if type(value.__doc__) is str else None
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return form
    form["parameters"] = [
        [one.name, int(one.kind), one.default is not one.empty] for one in parameters
    ]
    return form


def _is_async(value: Any) -> bool:
    """Whether a call of an object gives a coroutine; `AsyncMock` says so in a way of its own."""
    import inspect

    call = getattr(type(value), "__call__", None)  # noqa: B004 - its code is looked at
    is_mock = type(value).__module__ == "unittest.mock" and hasattr(type(value), "assert_awaited")
    return is_mock or inspect.iscoroutinefunction(call)


def _offers(value: Any, name: str) -> bool:
    """Whether an object of the tests' has an operator beyond those that every object has."""
    owner = next((one for one in type(value).__mro__ if name in vars(one)), object)
    return owner is not object and vars(owner)[name] is not None and name != "__dir__"


def _may_read(value: Any, name: Any) -> bool:
    """Whether the host may use an attribute of an object that it was given."""
    if type(name) is not str or isinstance(value, (*_FUNCTIONS, ModuleType)):
        return False
    if name.startswith("_"):  # what a class of the tests defines for it, as hooks are
        kinds = [one for one in type(value).__mro__ if is_authors(one) and name in vars(one)]
        return bool(kinds) and not name.startswith("__") and not hasattr(value, "assertEqual")
    if isinstance(value, type):
        return is_authors(value)
    return not (name in _MOCKS and type(value).__module__.startswith(("unittest.mock", "mock")))


def _may_write(value: Any, name: str) -> bool:
    """Whether it may set it: data of an instance, nothing that its class defines."""
    if isinstance(value, type) or type(value).__module__.startswith(
        ("_pytest", "pytest", "unittest")
    ):
        return type(value).__module__.startswith("unittest.mock")
    member = getattr(type(value), name, None)
    return not callable(member) and not hasattr(value, "assertEqual")


# -- exceptions ------------------------------------------------------------------------------------


class MirrorKind(type):
    """The class of the exceptions that stand for one class of the submission's."""

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        ref: Ref | None = vars(cls).get("_assay_kind")
        if ref is None:
            return super().__call__(*arguments, **named)
        return ref.home().call(ref, arguments, named)

    def __getattr__(cls, name: str) -> Any:
        ref: Ref | None = vars(cls).get("_assay_kind")
        if ref is None or name.startswith("__") or is_quiet(name):
            raise AttributeError(name)
        return ref.home().get(ref, name)


def _mirror_kind(ref: Ref, name: str, module: str, bases: list[Any]) -> Any:
    known = libraries().get((module, name)) if module != "the submission" else None
    if known is not None and issubclass(known, BaseException):
        return known
    made = _errors.get((module, name))
    if made is None or not isinstance(made, type):
        family = tuple(base for base in bases if issubclass(base, BaseException))
        space = {
            "__module__": module,
            "__qualname__": name,
            "__str__": _mirror_text,
            "__getattr__": _mirror_attribute,
            "_assay_kind": ref,
        }
        made = _errors[module, name] = MirrorKind(name.rpartition(".")[2], family, space)
    return made


def _made(cls: Any, values: list[Any]) -> Any:
    """An exception, made as the built-in one that it is derived from would be."""
    if cls.__module__ == "builtins":
        try:
            return cls(*values)
        except Exception:
            return cls.__new__(cls)
    error = cls.__new__(cls, *values)
    error.args = tuple(values)
    return error


def _mirror_text(self: Any) -> str:
    text = self.__dict__.get("_assay_text")
    if type(text) is str:
        return text
    base: Any = next(one for one in type(self).__mro__ if not isinstance(one, MirrorKind))
    return base.__str__(self)


def _mirror_attribute(self: Any, name: str) -> Any:
    ref = self.__dict__.get("_assay")
    if ref is None or name.startswith("__") or is_quiet(name):
        raise AttributeError(name)
    return ref.home().get(ref, name)


def libraries() -> dict[tuple[str, str], type]:
    """Exceptions of Python and of installed packages, in a table of our own."""
    found: dict[tuple[str, str], type] = {}
    pending: list[Any] = [BaseException]
    while pending:
        kind = pending.pop()
        if isinstance(kind, MirrorKind):
            continue
        pending += type.__subclasses__(kind)
        place = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
        if not kind.__module__.startswith(_ENDING) and not state.is_test_code(place):
            found[kind.__module__, kind.__qualname__] = kind
    return found


def _enumerations() -> dict[tuple[str, str], Any]:
    """Enumerations of Python and of installed packages."""
    found: dict[tuple[str, str], Any] = {}
    pending: list[Any] = [enum.Enum]
    while pending:
        kind = pending.pop()
        pending += type.__subclasses__(kind)
        if not is_authors(kind):
            found[kind.__module__, kind.__qualname__] = kind
    return found


# -- modules ---------------------------------------------------------------------------------------


class _Space(dict[str, Any]):
    """What a stand-in of a module has as its ``__dict__``: tools that patch look there first."""

    def __init__(self, module: Module) -> None:
        super().__init__(_own_space(module))
        self._module = module

    def __missing__(self, name: str) -> Any:
        try:
            return getattr(self._module, name)
        except AttributeError:
            raise KeyError(name) from None

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (type(name) is str and hasattr(self._module, name))

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default


class Module(ModuleType):
    """Stands for a module of the submission's."""

    @property
    def __dict__(self) -> Any:
        return _Space(self)

    def __getattr__(self, name: str) -> Any:
        ref: Ref | None = _own_space(self).get("_assay")
        if ref is None or is_quiet(name) or (name.startswith("__") and name not in _MODULE_NAMES):
            raise AttributeError(name)
        if name == "__all__":
            return self._all(ref)
        child = sys.modules.get(f"{self.__name__}.{name}")
        found = ref.home().get(ref, name)
        return child if isinstance(found, Module) and child is not None else found

    def _all(self, ref: Ref) -> list[str]:
        """What it lists; for ``import *`` without names of Python's and those the test has."""
        try:
            named: Any = ref.home().get(ref, "__all__")
        except AttributeError:
            named = [name for name in dir(self) if not name.startswith("_")]
        frame = sys._getframe(2)
        is_star = dis.opname[frame.f_code.co_code[max(frame.f_lasti, 0)]] in _STAR
        if not is_star and not frame.f_code.co_filename.startswith("<frozen importlib"):
            return [name for name in named if type(name) is str]
        taken = {*frame.f_globals, *vars(builtins)}
        return [one for one in named if type(one) is str and one not in taken and not _is_hook(one)]

    def __setattr__(self, name: str, value: Any) -> None:
        if (name.startswith("__") and name not in _MODULE_NAMES) or type(value) is ModuleType:
            ModuleType.__setattr__(self, name, value)
        elif not (isinstance(value, Module) and value.__name__ == f"{self.__name__}.{name}"):
            ref: Ref = _own_space(self)["_assay"]
            ref.home().set(ref, name, value)

    def __delattr__(self, name: str) -> None:
        ref: Ref = _own_space(self)["_assay"]
        ref.home().request("delete", ref.node(), name)

    def __dir__(self) -> list[str]:
        ref: Ref | None = _own_space(self).get("_assay")
        found: Any = [] if ref is None else ref.home().request("names", ref.node())
        return [name for name in found if type(name) is str and not is_quiet(name)]


_own_space: Callable[[ModuleType], dict[str, Any]] = vars(ModuleType)["__dict__"].__get__


def _is_hook(name: str) -> bool:
    """Whether a test module that has the name has it for its runner."""
    return name.startswith("pytest") or name in _HOOKS


_HOOKS = frozenset(
    "setup_module teardown_module setup_function teardown_function setup_method teardown_method "
    "setup teardown setUpModule tearDownModule load_tests".split()
)
_STAR = ("IMPORT_STAR", "CALL_INTRINSIC_1")
_MODULE_NAMES = ("__version__", "__all__", "__author__", "__doc__", "__title__")


# -- containers ------------------------------------------------------------------------------------


def _refresh(value: Any) -> None:
    ref: Ref = value._assay
    if value._assay_seen != ref.talk.changes:
        content = ref.talk.decode(ref.talk.request("base", ref.node()))
        kind = type(value).__mro__[1]
        kind.clear(value)
        (kind.extend if kind is list else kind.update)(value, _exactly(kind, content))
        value._assay_seen = ref.talk.changes


def _reading(kind: Any, name: str) -> Callable[..., Any]:
    original = getattr(kind, name)

    def read(self: Any, *arguments: Any) -> Any:
        _refresh(self)
        return original(self, *arguments)

    return read


def _writing(name: str) -> Callable[..., Any]:
    def write(self: Any, *arguments: Any, **named: Any) -> Any:
        ref: Ref = self._assay
        talk = cast("Session", ref.talk)
        if name.startswith("__"):
            found = talk.decode(talk.operate(ref, name, *arguments))
        else:
            method = talk.decode(talk.request("get", ref.node(), name))
            found = method(*arguments, **named)
        self._assay_seen = -1
        return self if name.startswith("__i") else found

    return write


def _plain(self: Any) -> Any:
    _refresh(self)
    return type(self).__mro__[1](self)


def _linked(kind: type, reading: str, writing: str) -> Any:
    names = [name for name in reading.split() if hasattr(kind, name)]
    space: dict[str, Any] = {name: _reading(kind, name) for name in names}
    space.update({name: _writing(name) for name in writing.split() if hasattr(kind, name)})
    space.update(__hash__=None, plain=_plain)
    space["__reduce_ex__"] = lambda self, _: (kind, (_plain(self),))
    return type(kind.__name__, (kind,), space)


_COMPARED = "__len__ __iter__ __contains__ __eq__ __ne__ __repr__ copy"
LinkedList = _linked(
    list,
    f"{_COMPARED} __getitem__ __lt__ __le__ __gt__ __ge__ __add__ __mul__ __reversed__ count index",
    "__setitem__ __delitem__ __iadd__ append extend insert pop remove reverse sort clear",
)
LinkedDict = _linked(
    dict,
    f"{_COMPARED} __getitem__ __or__ get items keys values",
    "__setitem__ __delitem__ __ior__ clear pop popitem setdefault update",
)
LinkedSet = _linked(
    set,
    f"{_COMPARED} __lt__ __le__ __gt__ __ge__ __and__ __or__ __sub__ __xor__ union difference "
    "intersection issubset issuperset isdisjoint",
    "__iand__ __ior__ __isub__ add clear discard pop remove update difference_update",
)
_LINKED = (LinkedList, LinkedDict, LinkedSet)
_kinds: dict[tuple[str, str, str], Any] = {}
_errors: dict[tuple[str, str], Any] = {}
_coroutines: dict[int, tuple[Any, Ref]] = {}
_READERS: dict[str, Callable[..., Any]] = {
    "o": Session.stand,
    "co": Session.coroutine,
    "k": Session.kind,
    "C": Session.class_of_python,
    "m": Session.module,
    "h": Session.handle,
    "J": Session.own_error,
    "em": Session.member,
    "L": Session.linked,
    "e": Session.error,
}
