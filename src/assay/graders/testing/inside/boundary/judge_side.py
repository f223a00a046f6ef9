"""What the judge makes of what the host tells: copies, stand-ins, mirrors of exceptions.

`JudgeSide` reads references; each must be one that it can have been given.
"""

from __future__ import annotations

import builtins
import enum
import sys
from collections.abc import Callable
from types import CoroutineType, FunctionType, ModuleType
from typing import Any, cast

from assay.graders.testing.inside.boundary import (
    aliasing,
    contract,
    mirrors,
    offered,
    questions,
    recipes,
    stands,
)
from assay.graders.testing.inside.boundary.judge_state import (
    Ref,
    Talk,
    barred,
    is_authors,
    is_module_of_both,
    ref_of,
    space_of,
    state,
    the_ref,
)
from assay.graders.testing.inside.boundary.modules import Module, make_module
from assay.graders.testing.inside.boundary.wire import WireError

_PLAIN_TAGS = (["l"], ["t"], ["s"], ["f"], ["d"], ["D"], ["F"])
_OF_CONTAINERS = ("__iter__", "__next__", "__len__", "__getitem__")
"""What is asked of any container of objects: what it gives is under the contract again."""

_CODE = frozenset(
    "function method builtin_function_or_method method_descriptor wrapper_descriptor".split()
)


class Reading:
    """What is read that a test came to: by which trails, and whether it is values alone."""

    def __init__(self, trails: list[str], *, only_values: bool) -> None:
        self.trails, self._only_values = trails, only_values
        self.is_plain = True

    def permits(self, what: str) -> bool:
        """Whether the reference has something of this kind here."""
        found = not self._only_values and contract.may(what, self.trails)
        self.is_plain = self.is_plain and not found
        return found


class JudgeSide(Talk):
    """A session of the judge's: it knows what the host's references mean."""

    def __init__(self) -> None:
        self.kinds: dict[int, Any] = {}
        self._aliases: dict[Any, Any] = {}
        self._alike: dict[int, list[Any]] = {}
        self._inert: dict[int, Any] = {}
        self._read_last: dict[tuple[int, str], tuple[int, Any]] = {}
        self._lent: dict[int, Any] = {}
        self.known: dict[int, Any] = {}
        self.unmade: dict[int, Any] = {}
        super().__init__()

    # -- to the host ---------------------------------------------------------------------------

    def other(self, value: Any, depth: int) -> list[Any]:
        """Tell of something that is not plain: a reference, or a handle."""
        value = contract.held_by(value)
        if self.doing.expresses and (recipe := recipes.unmade(value)) is not None:
            recipe.is_asked = True
            self.unmade[id(value)] = value
            return ["N", *cast("list[Any]", recipe.how), id(value)]
        ref = ref_of(value) or _coroutines.get(id(value), (None, None))[1]
        if ref is not None:
            if ref.path is None and ref.talk is not self:
                raise barred("an object of one import was given to another: see fresh")
            return ref.node()
        if type(value) in mirrors.LINKED.values():
            own: Ref = value._assay
            return own.node() if own.talk is self else self.encode(value.copy(), depth)
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
        number = state.number(value)
        state.handed[number] = (list(self.doing.giving), state.test)
        return ["H", number, offered.form_of(value)]

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
        with self.doing.but(expresses=not state.learns):
            return self.encode(value)

    def recipe(self, value: Any, node: Any) -> Any:
        """How a value was made, of which near misses can be; None where that is not known."""
        if not questions.is_stand(value):
            return node
        recipe = recipes.recipe_of(value)
        return None if recipe is None or recipe.how is None else ["N", *recipe.how]

    def way_of(self, value: Any) -> Ref:
        """The way by which the tests came to an object, also to one that is not made yet."""
        recipe = None if "_assay" in space_of(value) else recipes.recipe_of(value)
        return recipe.way if recipe and recipe.way else the_ref(value)

    # -- from the host -------------------------------------------------------------------------

    def decode(self, node: Any, depth: int = 0) -> Any:
        """Read what the host said; what makes no sense ends the session."""
        if depth:
            return super().decode(node, depth)
        try:
            return super().decode(node)
        except WireError as error:
            why = f"the process of the solution sent what makes no sense: {error}"
            raise self.died(why) from None

    def others(self, node: list[Any]) -> Any:
        """Read a reference.

        Raises:
            WireError: If it is malformed.
        """
        found = self.reference(node)
        reading: Reading | None = self.doing.reading
        if reading is None or node[0] in ("J", "L", "K"):
            return found
        if node[0] == "h" and reading.permits("back"):
            if isinstance(found, FunctionType):  # a decorator may as well give one of its own
                reading.permits("code")
            return found
        if not reading.permits("code" if _is_code(found) else "object") and not (
            _is_callable(found) and reading.permits("code")
        ):
            if isinstance(found, ModuleType):
                return contract.Inert(found, reading.trails[0])
            return contract.as_value(found, reading.trails, self._inert)
        ref = ref_of(found)
        if ref is not None and not isinstance(found, ModuleType):  # it has a name of its own
            contract.mark(ref, reading.trails)
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

    def read(
        self, node: Any, trails: list[str], *, only_values: bool = False, looks: bool = True
    ) -> Any:
        """Read what a test came to.

        Args:
            node: What the host said.
            trails: The ways by which the test came to it.
            only_values: Whether an object is none that the contract may permit.
            looks: Whether it counts as something that the submission gave.
        """
        reading = Reading(trails, only_values=only_values)
        with self.doing.but(reading=reading):
            found = self.decode(node)
        if looks and reading.is_plain and type(found) is not contract.Inert:
            contract.look(found, trails)
        return found

    def taken(self, node: Any, ref: Ref, name: str) -> Any:
        """Read what a test came to by a step from something."""
        return self.read(node, contract.step(contract.trails_of(ref), name))

    def values(self, node: Any, trails: list[str]) -> Any:
        """Read what has to be values."""
        return self.read(node, trails, only_values=True)

    def content(self, ref: Ref) -> Any:
        """What an object holds that is of a built-in type, too."""
        return self.read(self.request("base", ref.node()), contract.trails_of(ref), looks=False)

    def unbounded(self, found: float) -> Any:
        reading = self.doing.reading
        return found if reading is None else contract.number(found, reading.trails)

    def checked(self, found: Any) -> Any:
        """A value that cannot be marked: one with a NaN in it is permitted as a whole."""
        kind = getattr(getattr(found, "dtype", None), "kind", "f")
        odd: Any = False
        if kind in "fcmM":
            gone = found - found  # of a NaT, too, which equals nothing
            odd = gone != gone if kind in "mM" else gone != 0  # noqa: PLR0124
        if bool(getattr(odd, "any", lambda: odd)()) and (reading := self.doing.reading):
            why = "it holds NaN or an infinity"
            contract.require("nan", reading.trails, "the submission", why)
        return found

    def kind(self, number: int, form: Any = None) -> Any:
        """What stands for a class."""
        if number not in self.kinds:
            form = form or self.request("kind", ["R", number])[2]
            name, module = word(form["name"]), word(form["module"])
            bases = [self.reference(base) for base in form["bases"]]
            ref = Ref(self, number, None if "<" in name else (module, *name.split(".")))
            is_error = any(issubclass(base, BaseException) for base in bases)
            self.kinds[number] = (
                mirrors.mirror_kind(ref, name, module, bases)
                if is_error
                else stands.stand_kind(ref, name, module, bases, form)
            )
        return self.kinds[number]

    def stand(self, number: int, kind: list[Any]) -> Any:
        """What stands for an object."""
        held = self.known.get(number)
        if held is None:
            cls: Any = self.reference(kind)
            held = self.known[number] = self._stand(
                number, cls if isinstance(cls, stands.StandKind) else stands.plain_kind(cls)
            )
            return held
        reading: Reading | None = self.doing.reading
        if reading is None or _is_code(held):
            return held
        via = reading.trails
        # An object that the test has already, and comes to by another way: that two names mean one
        # object says nothing of what it holds.
        alike = [held, *self._alike.get(number, ())]
        same = next((one for one in alike if via[0] in the_ref(one).trails), None)
        if same is not None and not via[0].endswith(contract.CALL):
            return same
        if contract.may("known", via):
            return held
        aliasing.meet(via[0])
        other = self._stand(number, type(held))
        space_of(other)["_assay_first"] = held
        self._alike.setdefault(number, []).append(other)
        return other

    def _stand(self, number: int, cls: Any) -> Any:
        base: Any = cls._assay_base or object
        if base in (object, list, dict, set, bytearray):
            held = base.__new__(cls)
        else:
            content = self.decode(self.request("base", ["R", number]))
            held = base.__new__(cls, mirrors.exactly(base, content))
        space_of(held)["_assay"] = Ref(self, number)
        return held

    def coroutine(self, number: int) -> Any:
        """A coroutine of the judge's that waits for one of the host's."""
        waiting: Any = object.__new__(stands.plain_kind(CoroutineType))
        space_of(waiting)["_assay"] = ref = Ref(self, number)
        contract.mark(ref, self._trails)

        async def wait() -> Any:
            return await waiting

        made = wait()
        _coroutines[id(made)] = (made, Ref(self, number))
        return made

    def module(self, number: int, name: str, doc: Any = None) -> Any:
        """What stands for a module."""
        if number not in self.known:
            made = sys.modules.get(word(name))
            if not isinstance(made, Module):
                return make_module(self, number, name, doc)
            self.known[number] = made
        return self.known[number]

    def member(self, kind: list[Any], name: Any, value: Any) -> Any:
        """A member of an enumeration that is not the submission's."""
        known = mirrors.known_classes(enum.Enum)
        found: Any = self.reference(kind) if kind[0] == "h" else known.get(tuple(kind))
        if not isinstance(found, enum.EnumMeta):
            raise WireError("an enumeration is not known")
        return found[name] if name is not None else found(self.decode(value))

    def linked(self, number: int, content: Any) -> Any:
        """A container that an attribute holds."""
        found = self.decode(content)
        kind = mirrors.LINKED.get(type(found))
        if kind is None:
            return found
        made = kind(found)
        made._assay, made._assay_seen = Ref(self, number), self.changes
        made._assay.trails = self._trails
        return made

    @property
    def _trails(self) -> list[str]:
        """The trails of what is being read."""
        return self.doing.reading.trails if self.doing.reading else ["?"]

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
        ref.trails = [f"{one}{contract.RAISED}" for one in self.doing.asking]
        if ref_of(cls) is not None and len(_kinds_of(cls)) > 1:
            contract.require("kinds", ref.trails, cls.__name__, "it is errors of several kinds")
        values = [self.taken(one, ref, "args") for one in arguments]
        group: Any = getattr(builtins, "BaseExceptionGroup", None)
        if inner and group is not None and issubclass(cls, group):
            message = values[0] if values and type(values[0]) is str else ""
            error: Any = cls.__new__(cls, message, [self.reference(one) for one in inner])
        else:
            error = mirrors.made_error(cls, values)
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

    # -- what is asked -------------------------------------------------------------------------

    def get(self, ref: Ref, name: str) -> Any:
        """An attribute. What a module has is found again in other sessions by its name."""
        trails = contract.step(contract.trails_of(ref), name)
        try:
            node = self._asked("get", ref, [name], trails)
        except AttributeError:
            # As an expected error, it would prove nothing.
            if not name.startswith("_") and not contract.may("missing", trails):
                barred(f"{trails[0]} is not there")
            raise
        self._compare_reads(ref, name, node, trails)
        found = self.read(node, trails)
        own = ref_of(found)
        if ref.path is None:
            if own is not None:
                own.steps = name in ("send", "throw", "asend", "athrow")
            return found
        if own is not None and own.path is None and len(ref.path) == 1:
            own.path = (*ref.path, name)
        if type(found) is tuple:
            return tuple(self._narrow(one, trails) for one in cast("tuple[Any, ...]", found))
        return self._narrow(found, trails)

    def _asked(self, op: str, ref: Ref, parts: list[Any], trails: list[str]) -> Any:
        """What the host says of something.

        It ends an iteration of the test's where the reference does: among the items of `map` or
        `zip` it would end a test before it has compared any.
        """
        try:
            return self.request(op, ref.node(), *parts, trails=trails)
        except (StopIteration, StopAsyncIteration):
            if not ref.steps:
                contract.require("stops", trails, ref.label, "an iteration ends")
            raise

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
        if state.learns:
            first = next(one for one in found.__mro__ if one.__module__ == "builtins")
            contract.may("class", [f"{one}:{first.__name__}" for one in trails])
        if ref_of(found) is not None or not issubclass(found, BaseException):
            return found
        begins = tuple(f"class:{one}:" for one in trails)
        widest = [
            one.rpartition(":")[2] for one in state.needs.get("", ()) if one.startswith(begins)
        ]
        if not widest and found not in (Exception, BaseException, AssertionError):
            return found
        own = Ref(self, 0, (trails[0],))
        name = trails[0].rpartition(".")[2]
        made = mirrors.mirror_kind(own, name, f"the submission's {trails[0]}", [found])
        if not widest or any(issubclass(found, stands.BUILTINS[one]) for one in widest):
            self._aliases[found] = made
        return made

    def _aliased(self, cls: Any) -> Any:
        """A built-in exception, as what the submission calls it, too."""
        if ref_of(cls) is not None:
            return cls
        alias = next((made for one, made in self._aliases.items() if issubclass(cls, one)), None)
        if alias is None or alias.__mro__[1] is cls:
            return alias or cls
        name = cls.__name__
        return mirrors.mirror_kind(Ref(self, 0, (name,)), name, alias.__module__, [cls, alias])

    def set(self, ref: Ref, name: str, value: Any) -> None:
        """Set an attribute."""
        self.request("set", ref.node(), name, self.given(value, contract.trails_of(ref)))

    def delete(self, ref: Ref, name: str) -> None:
        """Take an attribute away."""
        self.request("delete", ref.node(), name)

    def call(self, ref: Ref, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Call something of the submission's."""
        trails = contract.step(contract.trails_of(ref), contract.CALL)
        shares = aliasing.shares()
        how = self.call_of(ref, arguments, named, trails, self._lend if shares else self.given)
        op = "share" if shares else "call"
        answer = self._asked(op, ref, [*how[1:], *stands.where()], trails)
        if type(answer) is list and answer and answer[0] == "X":
            self._change(arguments, answer[2], trails)
            answer = answer[1]
        made = self.read(answer, trails)
        aliasing.watch([*arguments, *named.values()], made)
        self._check_class(ref, made)
        recipes.remember(made, how)
        return made

    def call_of(
        self,
        ref: Ref,
        arguments: tuple[Any, ...],
        named: dict[str, Any],
        trails: list[str],
        give: Callable[[Any, list[str]], Any] | None = None,
    ) -> list[Any]:
        """A call, as the host is told of it: of what, and with what."""
        give = give or self.given
        values = [give(one, trails) for one in arguments]
        return [ref.node(), values, {name: give(one, trails) for name, one in named.items()}]

    def _lend(self, value: Any, trails: list[str]) -> Any:
        """Write an argument; a container that the test goes on using, with a number."""
        node = self.given(value, trails)
        if type(value) not in aliasing.MUTABLE:
            return node
        if id(value) not in self._lent:
            self._lent[id(value)] = value
            aliasing.held.note([value])
        return ["K", id(value), node]

    def request(self, op: str, *parts: Any, trails: list[str] | None = None) -> Any:
        """Ask the host, which first is told how the test changed what it has lent."""
        if self._lent and op != "renew" and not state.learns:
            for value in aliasing.held.changed():
                super().request("renew", id(value), self.encode(value))
        return super().request(op, *parts, trails=trails)

    def _check_class(self, ref: Ref, made: Any) -> None:
        """What stands for a class of the reference's makes objects, of which it can be asked."""
        if state.learns or ref.path is None or ref_of(made) is not None:
            return
        trail = contract.trails_of(ref)[0]
        if any(one.startswith(f"class:{trail}:") for one in state.needs.get("", ())):
            why = f"{trail} is a class in the reference, and here gives a {type(made).__name__}"
            raise contract.refused(f"class:{trail}", why)

    def construct(self, cls: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Make an object of a class, or leave it unmade."""
        return recipes.construct(self, cls, arguments, named)

    def _change(self, arguments: tuple[Any, ...], changed: Any, trails: list[str]) -> None:
        """Make the changes to its arguments that the reference makes, too."""
        for place, node in changed:
            value, after = arguments[place], self.read(node, [f"{one}#" for one in trails])
            if type(after) is not type(value):
                raise WireError("an argument became something else")
            if not contract.may("changes", trails):
                aliasing.leave(trails)
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
        try:
            node = self.request("operate", ref.node(), name, values, *stands.where(), trails=trails)
        except IndexError:
            if name == "__getitem__":  # by which an iteration ends
                contract.look_at_items(ref)
            raise
        if name == "__getitem__":
            state.leaves[f"{trails[0]}[]"] = True
        return node

    # -- what the host asks --------------------------------------------------------------------

    def grant(self, op: str, parts: list[Any]) -> Any:
        """Do what the host asks for: nothing but with what the tests gave it."""
        if op == "warn":
            return offered.warn(*map(self.decode, parts))
        number, *rest = parts
        number = self.decode(number)
        giving, test = state.handed.get(number, (["?"], ""))
        trails = contract.step(giving, contract.HANDED)
        if test not in ("", state.test) and not contract.may("late", trails):
            raise RuntimeError("the test that gave this has ended")
        given = [self.read(one, trails, looks=False) for one in rest]
        return offered.ACTS[op](state.handles[number], trails, *given)


def _kinds_of(cls: type) -> list[type]:
    """The built-in errors that a class is, without those that they are."""
    kinds = [one for one in cls.__mro__ if one.__module__ == "builtins"]
    return [one for one in kinds if not any(issubclass(k, one) for k in kinds if k is not one)]


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


_coroutines: dict[int, tuple[Any, Ref]] = {}
_READERS: dict[str, Callable[..., Any]] = {
    "o": JudgeSide.stand,
    "co": JudgeSide.coroutine,
    "k": JudgeSide.kind,
    "C": lambda _, name: stands.BUILTINS[name],
    "m": JudgeSide.module,
    "h": lambda _, number: state.handles[number],
    "J": lambda _, number: state.raised[number],  # an exception of the tests comes back
    "em": JudgeSide.member,
    "L": JudgeSide.linked,
    "K": lambda talk, number: talk._lent[number],
    "e": JudgeSide.error,
}
