"""What the judge makes of what the host tells: copies, stand-ins, mirrors of exceptions.

`JudgeSide` reads references; each must be one that it can have been given.
"""

from __future__ import annotations

import builtins
import collections.abc
import enum
import sys
import threading
from collections.abc import Callable
from types import CoroutineType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from assay.graders.testing.inside.boundary import contract, questions
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
    the_ref,
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
    IMMUTABLE,
    StandKind,
    a_loop_runs,
    plain_kind,
    stand_kind,
)
from assay.graders.testing.inside.boundary.wire import OPERATORS, WireError

_ABCS = "Mapping MutableMapping Sequence MutableSequence Set MutableSet".split()
_LIBRARY = "_collections _io _queue _thread array collections io itertools queue".split()
"""Where the objects are from whose public attributes lead to nothing else of the judge."""

_DENIED = {"code": False, "object": False, "back": False}
_PLAIN_TAGS = (["l"], ["t"], ["s"], ["f"], ["d"], ["D"], ["F"])
_OF_CONTAINERS = ("__iter__", "__next__", "__len__", "__getitem__")
"""What is asked of any container of objects: what it gives is under the contract again."""

_CODE = frozenset(
    "function method builtin_function_or_method method_descriptor wrapper_descriptor".split()
)
_FUNCTIONS = (FunctionType, MethodType, type(len), type("".join))


class JudgeSide(Talk):
    """A session of the judge's: it knows what the host's references mean."""

    def __init__(self) -> None:
        self._kinds: dict[int, Any] = {}
        self._unmade: dict[int, Any] = {}
        self._aliases: dict[Any, Any] = {}
        self._alike: dict[int, list[Any]] = {}
        self._inert: dict[int, Any] = {}
        self._read_last: dict[tuple[int, str], tuple[int, Any]] = {}
        self.known: dict[int, Any] = {}
        super().__init__()

    # -- to the host ---------------------------------------------------------------------------

    def other(self, value: Any, depth: int) -> list[Any]:
        """Tell of something that is not plain: a reference, or a handle."""
        value = contract.held_by(value)
        if getattr(self._local, "expresses", False) and (how := _unmade(value)) is not None:
            object.__getattribute__(value, "__dict__")["_assay_asked"] = True
            self._unmade[id(value)] = value
            return ["N", *how, id(value)]
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
        number = state.number(value)
        state.handed[number] = getattr(self._local, "giving", None) or ["?"]
        return ["H", number, _form(value)]

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

    def express(self, value: Any) -> Any:
        """Write a value for a fork: what is not made yet, is made there."""
        self._local.expresses = not state.learns
        try:
            return self.encode(value)
        finally:
            self._local.expresses = False

    def recipe(self, value: Any, node: Any) -> Any:
        """How a value was made, of which near misses can be; None where that is not known."""
        if not questions.is_stand(value):
            return node
        how = object.__getattribute__(value, "__dict__").get("_assay_how")
        return None if how is None else ["N", *how]

    def way_of(self, value: Any) -> Ref:
        """The way by which the tests came to an object, also to one that is not made yet."""
        return object.__getattribute__(value, "__dict__").get("_assay_way") or the_ref(value)

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
        found = self.reference(node)
        via = self._via
        if via is None or node[0] in ("J", "L"):
            return found
        if node[0] == "h" and self._permitted("back", via):
            if isinstance(found, FunctionType):  # a decorator may as well give one of its own
                self._permitted("code", via)
            return found
        if not (self._permitted("code" if _is_code(found) else "object", via)) and not (
            _is_callable(found) and self._permitted("code", via)
        ):
            return contract.as_value(found, via, self._inert)
        ref = ref_of(found)
        if ref is not None:
            contract.mark(ref, via)
        return found

    def _permitted(self, what: str, via: list[str]) -> bool:
        found = self._permits.get(what)
        if found is None:
            found = self._permits[what] = contract.may(what, via)
        return found

    def reference(self, node: list[Any]) -> Any:
        """Read a reference, whatever the contract says."""
        reader = _READERS.get(node[0])
        if reader is None:
            raise WireError("a value of an unknown kind")
        try:
            return reader(self, *node[1:])
        except (TypeError, IndexError, KeyError, ValueError, AttributeError) as error:
            raise WireError(f"a reference makes no sense: {error}") from None

    @property
    def _via(self) -> list[str] | None:
        """The trails of what is being read; None for what no test came to."""
        return getattr(self._local, "via", None)

    @property
    def _permits(self) -> dict[str, bool]:
        return self._local.permits

    def taken(self, node: Any, ref: Ref, name: str) -> Any:
        """Read what a test came to by a step from something."""
        return self._read(node, contract.step(contract.trails_of(ref), name), {})

    def values(self, node: Any, trails: list[str]) -> Any:
        """Read what has to be values."""
        return self._read(node, trails, dict(_DENIED))

    def content(self, ref: Ref) -> Any:
        """What an object holds that is of a built-in type, too."""
        node = self.request("base", ref.node())
        return self._read(node, contract.trails_of(ref), {}, looks=False)

    def _read(
        self, node: Any, trails: list[str], permits: dict[str, bool], *, looks: bool = True
    ) -> Any:
        local = self._local
        before = self._via, getattr(local, "permits", None)
        local.via, local.permits = trails, permits
        try:
            found = self.decode(node)
            is_plain = not any(permits.values()) and type(found) is not contract.Inert
        finally:
            local.via, local.permits = before
        if is_plain and looks:
            contract.look(found, trails)
        return found

    def _plainly(self, read: Callable[[], Any]) -> Any:
        """Read something that no test came to."""
        before, self._local.via = self._via, None
        try:
            return read()
        finally:
            self._local.via = before

    def unbounded(self, found: float) -> Any:
        return found if self._via is None else contract.number(found, self._via)

    def checked(self, found: Any) -> Any:
        """A value that cannot be marked: one with a NaN in it is permitted as a whole."""
        kind = getattr(getattr(found, "dtype", None), "kind", "f")
        odd: Any = False
        if kind in "fcmM":
            gone = found - found  # of a NaT, too, which equals nothing
            odd = gone != gone if kind in "mM" else gone != 0  # noqa: PLR0124
        if bool(getattr(odd, "any", lambda: odd)()) and self._via:
            contract.require("nan", self._via, "the submission", "it holds NaN or an infinity")
        return found

    def _raised(self, node: Any, mine: int) -> BaseException:
        return self._plainly(lambda: super(JudgeSide, self)._raised(node, mine))

    def kind(self, number: int, form: Any = None) -> Any:
        """What stands for a class."""
        if number not in self._kinds:
            form = form or self.request("kind", ["R", number])[2]
            name, module = word(form["name"]), word(form["module"])
            bases = [self.reference(base) for base in form["bases"]]
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
            cls: Any = self.reference(kind)
            held = self.known[number] = self._stand(
                number, cls if isinstance(cls, StandKind) else plain_kind(cls)
            )
            return held
        via = self._via
        if via is None or _is_code(held):
            return held
        # An object that the test has already, and comes to by another way: that two names mean one
        # object says nothing of what it holds.
        alike = [held, *self._alike.get(number, ())]
        same = next((one for one in alike if via[0] in the_ref(one).trails), None)
        if same is not None and not via[0].endswith(contract.CALL):
            return same
        if contract.may("known", via):
            return held
        other = self._stand(number, type(held))
        self._alike.setdefault(number, []).append(other)
        return other

    def _stand(self, number: int, cls: Any) -> Any:
        base: Any = cls._assay_base or object
        if base in (object, list, dict, set, bytearray):
            held = base.__new__(cls)
        else:
            content = self.decode(self.request("base", ["R", number]))
            held = base.__new__(cls, exactly(base, content))
        object.__setattr__(held, "_assay", Ref(self, number))
        return held

    def coroutine(self, number: int) -> Any:
        """A coroutine of the judge's that waits for one of the host's."""
        waiting: Any = object.__new__(plain_kind(CoroutineType))
        object.__setattr__(waiting, "_assay", Ref(self, number))
        contract.mark(ref_of(waiting), self._via or ["?"])

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
        found: Any = self.reference(kind) if kind[0] == "h" else _enumerations().get(tuple(kind))
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
        made._assay.trails = self._via or ["?"]
        return made

    def error(
        self, number: int, kind: list[Any], arguments: list[Any], told: dict[str, Any],
        text: str | None, inner: list[Any], cause: Any, context: Any,
    ) -> BaseException:  # fmt: skip
        """The mirror of an exception."""
        held = self.known.get(number)
        if held is not None:
            return held
        cls: Any = self._aliased(self.reference(kind))
        ref = Ref(self, number)
        ref.trails = [f"{one}{contract.RAISED}" for one in self.asking]
        values = [self.taken(one, ref, "args") for one in arguments]
        group: Any = getattr(builtins, "BaseExceptionGroup", None)
        if inner and group is not None and issubclass(cls, group):
            message = values[0] if values and type(values[0]) is str else ""
            error: Any = cls.__new__(cls, message, [self.reference(one) for one in inner])
        else:
            error = made_error(cls, values)
        for name, node in told.items():
            if name.isidentifier() and not name.startswith("_assay"):
                error.__dict__[name] = self.taken(node, ref, name)
        if cause is not None:
            error.__cause__ = self.reference(cause)
        if context is not None:
            error.__context__ = self.reference(context)
        error.__dict__.update(_assay=ref, _assay_text=text)
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
        trails = contract.step(contract.trails_of(ref), name)
        try:
            node = self.request("get", ref.node(), name, trails=trails)
        except AttributeError:
            # As an expected error, it would prove nothing.
            if not name.startswith("_") and not contract.may("missing", trails):
                fail(BoundaryError(f"{trails[0]} is not there"))
            raise
        except (StopIteration, StopAsyncIteration):
            contract.require("stops", trails, ref.label, "an iteration ends")
            raise
        self._compare_reads(ref, name, node, trails)
        found = self._read(node, trails, {})
        own = None if type(found) is contract.Inert else ref_of(found)
        if own is not None and own.path is None and ref.path is not None and len(ref.path) == 1:
            own.path = (*ref.path, name)
        elif own is not None and ref.path is None:
            own.steps = name in ("send", "throw", "asend", "athrow")
        if ref.path is None:
            return found
        if type(found) is tuple:
            return tuple(self._narrow(one, trails) for one in cast("tuple[Any, ...]", found))
        return self._narrow(found, trails)

    def _compare_reads(self, ref: Ref, name: str, node: Any, trails: list[str]) -> None:
        """An attribute that is read again, with no call in between, is what it was."""
        key = (ref.number, name)
        done, before = self._read_last.get(key, (-1, None))
        self._read_last[key] = (self.acts, node)
        is_plain = type(node) is not list or node[:1] in _PLAIN_TAGS
        if done == self.acts and is_plain and before != node and not contract.may("moves", trails):
            contract.refused(f"moves:{trails[0]}", f"{trails[0]} is another when it is read again")

    def _narrow(self, found: Any, trails: list[str]) -> Any:
        """A class that is the reference's own has to be one here, or a built-in as narrow.

        Under the name of a wider one every failure of the judge would be one that was expected.
        """
        if not isinstance(found, type):
            return found
        own = ref_of(found) is not None
        first = next(one for one in found.__mro__ if one.__module__ == "builtins")
        if state.learns:
            contract.may("class", [f"{one}:{first.__name__}" for one in trails])
        if own:
            return found
        widest = {
            entry.rpartition(":")[2]
            for entry in state.needs.get("", ())
            if entry.startswith(tuple(f"class:{one}:" for one in trails))
        }
        is_narrow = not widest or any(issubclass(found, BUILTINS[name]) for name in widest)
        if not issubclass(found, BaseException) or (not is_narrow and state.learns):
            return found
        if is_narrow and not widest and found not in (Exception, BaseException, AssertionError):
            return found
        name = trails[0].rpartition(".")[2]
        made = mirror_kind(
            Ref(self, 0, (trails[0],)), name, f"the submission's {trails[0]}", [found]
        )
        if is_narrow:
            self._aliases[found] = made
        return made

    def _aliased(self, cls: Any) -> Any:
        """A built-in exception, as what the submission calls it, too."""
        if ref_of(cls) is not None:
            return cls
        alias = next((made for one, made in self._aliases.items() if issubclass(cls, one)), None)
        if alias is None or alias.__mro__[1] is cls:
            return alias or cls
        return mirror_kind(
            Ref(self, 0, (cls.__name__,)), cls.__name__, alias.__module__, [cls, alias]
        )

    def set(self, ref: Ref, name: str, value: Any) -> None:
        """Set an attribute."""
        self.request("set", ref.node(), name, self.given(value, contract.trails_of(ref)))

    def call(self, ref: Ref, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Call something of the submission's."""
        trails = contract.step(contract.trails_of(ref), contract.CALL)
        how = self._call_of(ref, arguments, named, trails)
        try:
            answer = self.request("call", *how, *_where(), trails=trails)
        except (StopIteration, StopAsyncIteration):
            # Among the items of `map` or `zip` it would end a test before it has compared any.
            if not ref.steps:
                contract.require("stops", trails, ref.label, "an iteration ends")
            raise
        if type(answer) is list and answer and answer[0] == "X":
            self._change(arguments, answer[2], trails)
            answer = answer[1]
        made = self._read(answer, trails, {})
        if isinstance(type(made), StandKind) and not _has(how, _OF_TESTS):
            object.__getattribute__(made, "__dict__").setdefault("_assay_how", how)
        return made

    def _call_of(
        self, ref: Ref, arguments: tuple[Any, ...], named: dict[str, Any], trails: list[str]
    ) -> list[Any]:
        values = [self.given(one, trails) for one in arguments]
        return [ref.node(), values, {name: self.given(one, trails) for name, one in named.items()}]

    # -- what the test makes -------------------------------------------------------------------

    def construct(self, cls: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Make an object of plain values later, in the judge's good time.

        The object that a test expects would tell the submission what is expected. So nothing is
        made before it is used for more than a comparison; a fork makes it for each question.
        """
        ref = the_ref(cls)
        trails = contract.step(contract.trails_of(ref), contract.CALL)
        if state.learns:
            return self._learnt(cls, ref, arguments, named, trails)
        self._local.expresses = True
        try:
            how = self._call_of(ref, arguments, named, trails)
        finally:
            self._local.expresses = False
        is_of_tests = "_assay_tested" in vars(cls)  # its methods are the test's, and called at once
        is_plain = (arguments or named) and not _has(how, _OF_TESTS) and not is_of_tests
        if not is_plain or contract.may("eager", [""]) or contract.may("told", trails):
            return self.call(ref, arguments, named)
        content: Any = 0
        if contract.may("raises", trails) or cls._assay_base in IMMUTABLE:
            content = self.question("probe", *how)
            if content is None:  # it raises
                return self.call(ref, arguments, named)
        if cls._assay_base in IMMUTABLE:
            held = self._held(content, {**dict(enumerate(arguments)), **named}, trails)
            made = cls._assay_base.__new__(cls, exactly(cls._assay_base, held))
        else:
            made = (cls._assay_base or object).__new__(cls)
        way = Ref(self, 0)
        way.trails = trails
        space = object.__getattribute__(made, "__dict__")
        space.update(_assay_how=how, _assay_way=way, _assay_kept=self, _assay_line=_line())
        space["_assay_made"] = True
        if state.test:
            state.unmade.append(made)
        return made

    def _held(self, content: Any, given: dict[Any, Any], trails: list[str]) -> Any:
        """What an object holds, told by a fork; the numbers of its objects mean nothing here."""
        if type(content) is list and content[:1] == [
            "G"
        ]:  # a tuple of what it was given, and values
            return tuple(
                given[one[1]] if one[:1] == ["A"] else self._held(one[1], {}, trails)
                for one in content[1]
            )
        if _has(content, _OBJECTS):
            label = trails[0]
            raise contract.refused(f"told:{label}", f"{label} holds an object that it made itself")
        return self._read(content, trails, dict(_DENIED), looks=False)

    def _learnt(self, cls: Any, ref: Ref, arguments: Any, named: Any, trails: list[str]) -> Any:
        """Make an object of the reference's, and write down what that takes."""
        before = len(self.known)
        self._local.expresses = True  # the near misses are those that a submission is asked about
        try:
            how = self._call_of(ref, arguments, named, trails)
        finally:
            self._local.expresses = False
        try:
            made = self.call(ref, arguments, named)
        except BaseException:
            contract.may("raises", trails)
            raise
        if isinstance(type(made), StandKind):
            space = object.__getattribute__(made, "__dict__")
            space["_assay_made"] = True
            if not _has(how, _OF_TESTS):
                space["_assay_how"] = how
        if type(made) is not cls or len(self.known) == before:
            contract.may("told", trails)  # as an enumeration finds a member
        return made

    def make(self, value: Any) -> None:
        """Have the host make what the test uses now."""
        space = object.__getattribute__(value, "__dict__")
        way: Ref = space["_assay_way"]
        how = self._made(space["_assay_how"])
        space["_assay_asked"] = True
        try:
            answer = self.request("call", *how, *_where(), trails=way.trails)
        except BaseException as error:
            if space["_assay_line"] == _line():
                raise  # as if it had been made at once
            raise fail(BoundaryError(f"{way.trails[0]} raised {type(error).__name__}")) from error
        answer = answer[1] if type(answer) is list and answer[:1] == ["X"] else answer
        if type(answer) is not list or answer[0] != "o" or answer[1] in self.known:
            raise fail(BoundaryError(f"{way.trails[0]} did not make a new object"))
        self.reference(answer[2])
        self.known[answer[1]] = value
        way.number = answer[1]
        space["_assay"] = way

    def _made(self, node: Any) -> Any:
        """A call in which the objects that were not made yet are."""
        if type(node) is dict:
            return {name: self._made(one) for name, one in node.items()}
        if type(node) is not list:
            return node
        if node[:1] == ["N"]:
            return the_ref(self._unmade[node[4]]).node()
        return [self._made(one) for one in node]

    def _change(self, arguments: tuple[Any, ...], changed: Any, trails: list[str]) -> None:
        """Make the changes to its arguments that the reference makes, too."""
        for place, node in changed:
            value, after = arguments[place], self._read(node, [f"{one}#" for one in trails], {})
            if type(after) is not type(value):
                raise WireError("an argument became something else")
            if not contract.may("changes", trails):
                state.hint(f"changes:{trails[0]}", f"{trails[0]} changed its argument")
            elif isinstance(value, (list, bytearray)):
                value[:] = after
            else:
                value.clear()
                value.update(after)

    def operate(self, ref: Ref, name: str, *arguments: Any) -> Any:
        """Use an operator that the reference was asked for; what it gives is still encoded."""
        trails = contract.trails_of(ref)
        if name not in _OF_CONTAINERS or state.learns:
            contract.require(f"op:{name}", trails, ref.label, f"{name} is asked of {trails[0]}")
        values = [self.given(one, trails) for one in arguments]
        return self.request("operate", ref.node(), name, values, *_where(), trails=trails)

    # -- what the host asks --------------------------------------------------------------------

    def grant(self, op: str, parts: list[Any]) -> Any:
        """Do what the host asks for: nothing but with what the tests gave it."""
        if op == "warn":
            return _warn(*map(self.decode, parts))
        number = self.decode(parts[0])
        value = state.handles[number]
        trails = contract.step(state.handed.get(number, ["?"]), contract.HANDED)
        name, *rest = [self._read(one, trails, {}, looks=False) for one in parts[1:]]
        if op == "call":
            for one in (*name, *rest[0].values()):
                contract.look(one, trails)
            contract.may("called", trails)
            state.called.update(trails)
            return _run(value(*name, **rest[0]))
        if op == "operate" and name in OPERATORS and _offers(value, name):
            if name in ("__call__", "__iter__", "__next__", "__enter__", "__exit__"):
                contract.may("uses", trails)
            else:
                _ask_for(name, value, trails)
            return (
                next(value)
                if name == "__next__"
                else _run(getattr(type(value), name)(value, *rest[0]))
            )
        if op == "attribute" and _may_read(value, name):
            _ask_for(name, value, trails)
            return getattr(value, name)
        if op == "assign" and _may_read(value, name) and _may_write(value, name):
            if contract.may(f"sets:{name}", trails):
                setattr(value, name, rest[0])
            return None
        raise AttributeError(f"the test's {type(value).__name__} does not offer {name!r}")


def _line() -> tuple[str, int]:
    """The line of the tests that runs."""
    frame: Any = sys._getframe(1)
    while frame is not None and not state.is_test_code(frame.f_code.co_filename):
        frame = frame.f_back
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def check_unmade() -> None:
    """What a test made and did not use must be possible to make, too."""
    for made in state.unmade:
        space = object.__getattribute__(made, "__dict__")
        talk = space["_assay_kept"]
        is_used = "_assay" in space or "_assay_asked" in space or talk.dead
        if not is_used and talk.question("probe", *space["_assay_how"]) is None:
            fail(BoundaryError(f"{space['_assay_way'].trails[0]} could not be made"))
    state.unmade.clear()


def _ask_for(name: str, value: Any, trails: list[str]) -> None:
    """What a test's own object tells is what the reference asked it for."""
    if type(value).__module__.partition(".")[0] in _LIBRARY:
        return
    # Who is handed an object to work with may work with it otherwise than the reference does.
    is_method = is_authors(type(value)) and callable(getattr(type(value), name, None))
    if is_method and contract.may("uses", trails) and not state.learns:
        return
    why = f"{name} of what the test hands over is asked for"
    contract.require(f"reads:{name}", trails, "the submission", why)


def _unmade(value: Any) -> Any:
    """How an object is made that is not made yet; None for anything else."""
    if not questions.is_stand(value):
        return None
    space = object.__getattribute__(value, "__dict__")
    is_unmade = "_assay" not in space or (state.learns and "_assay_made" in space)
    return space.get("_assay_how") if is_unmade else None


def _has(node: Any, tags: frozenset[str]) -> bool:
    """Whether something written has a part of some kinds in it."""
    if type(node) is dict:
        return any(_has(one, tags) for one in node.values())
    if type(node) is not list or not node:
        return False
    return (type(node[0]) is str and node[0] in tags) or any(_has(one, tags) for one in node)


_OF_TESTS = frozenset(["H", "E"])
"""Objects of the tests, which may be asked; and errors of theirs."""

_OBJECTS = frozenset(["o", "k", "e", "co", "m", "L"])
"""References to objects of the submission."""


def _is_callable(found: Any) -> bool:
    """Whether it can stand for a function, as a partial one does."""
    return questions.is_stand(found) and "__call__" in type(found)._assay_form["operators"]


def _is_code(found: Any) -> bool:
    """Whether something is a function, a method, a class or a module."""
    if isinstance(found, (type, ModuleType)) or type(found) is CoroutineType:
        return True
    label = getattr(type(found), "_assay_label", "")
    module, _, name = label.rpartition(".")
    return module in ("builtins", "functools") and (name in _CODE or module == "functools")


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
        abcs = [one for one in _ABCS if isinstance(value, getattr(collections.abc, one))]
        return {"operators": operators, "async": _is_async(value), "abcs": abcs}
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
    is_mock = type(value).__module__.startswith(("unittest.mock", "mock"))
    return not (is_mock and name in _of_mocks())


def _of_mocks() -> list[str]:
    """What mocks have of their own: the assertions about them are the test's."""
    from unittest.mock import AsyncMock

    return dir(AsyncMock)


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
