"""What the judge makes of what the host tells: copies, stand-ins, mirrors of exceptions.

`JudgeSide` reads references; each must be one that it can have been given.
"""

from __future__ import annotations

import builtins
import enum
import io
import os
import sys
import threading
from collections.abc import Callable
from types import CoroutineType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from assay.graders.testing.inside.boundary import questions
from assay.graders.testing.inside.boundary.judge_state import (
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
from assay.graders.testing.inside.boundary.mirrors import (
    LINKED,
    LinkedDict,
    LinkedList,
    LinkedSet,
    exactly,
    made_error,
    mirror_kind,
)
from assay.graders.testing.inside.boundary.modules import Module
from assay.graders.testing.inside.boundary.stands import (
    BUILTINS,
    StandKind,
    a_loop_runs,
    plain_kind,
    stand_kind,
)
from assay.graders.testing.inside.boundary.wire import OPERATORS, WireError

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


class JudgeSide(Talk):
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
        if isinstance(value, LINKED):
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
            WireError: If it is malformed.
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
        return found.view(questions.vacuous_kind())

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
            return mirror_kind(ref, name, module, bases)
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
                    cls, exactly(base, self.decode(self.request("base", ["R", number])))
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
            error = made_error(cls, values)
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
            return mirror_kind(Ref(self, 0, path), path[-1], "the submission", [found])
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


_kinds: dict[tuple[str, str, str], Any] = {}
_coroutines: dict[int, tuple[Any, Ref]] = {}
_READERS: dict[str, Callable[..., Any]] = {
    "o": JudgeSide.stand,
    "co": JudgeSide.coroutine,
    "k": JudgeSide.kind,
    "C": JudgeSide.class_of_python,
    "m": JudgeSide.module,
    "h": JudgeSide.handle,
    "J": JudgeSide.own_error,
    "em": JudgeSide.member,
    "L": JudgeSide.linked,
    "e": JudgeSide.error,
}
