"""What the judge makes of what the host tells: values and stand-ins.

There is one session for each fresh import of the submission. It reads references; each must be one
that it can have been given.
"""

from __future__ import annotations

import enum
import json
import sys
from array import array
from collections.abc import Callable, Sequence
from math import isfinite
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
from assay.graders.testing.inside.boundary.copies import CopyingTalk
from assay.graders.testing.inside.boundary.judge_state import (
    Ref,
    barred,
    is_authors,
    is_module_of_both,
    ref_of,
    space_of,
    state,
    the_ref,
)
from assay.graders.testing.inside.boundary.modules import SubmissionModule, make_module
from assay.graders.testing.inside.boundary.wire import WireError, changed, differ

_NUMBERS = (["I"], ["c"], ["D"], ["F"])
_OF_CONTAINERS = ("__iter__", "__next__", "__len__", "__getitem__", "__reversed__")
"""What is asked of any container of objects: what it gives is under the contract again."""

_OF_ONE = frozenset(
    "__len__ __int__ __float__ __complex__ __index__ __str__ __bytes__ __abs__".split()
)
"""What an object is asked for that tells of it."""
_CODE = "function method builtin_function_or_method method_descriptor wrapper_descriptor".split()


_WIDE = (BaseException, Exception, AssertionError)
"""Errors that every failure of the judge is, too."""


class TrailReading:
    """What is read that a test came to: by which trails, and whether it is values and code alone.

    What has a name in a module, ``is_named``, is looked at where that is read.
    """

    def __init__(self, trails: list[str], *, only_values: bool, is_named: bool) -> None:
        self.trails, self._only_values, self.is_named = trails, only_values, is_named
        self.is_plain = True

    def permits(self, what: str) -> bool:
        found = (what == "code" or not self._only_values) and contract.may(what, self.trails)
        self.is_plain = self.is_plain and not found
        return found


class JudgeSide(CopyingTalk):
    """One fresh import of the submission, and what its references mean."""

    def __init__(self) -> None:
        self.kinds: dict[int, Any] = {}
        self._aliases: dict[Any, Any] = {}
        self._alike: dict[int, list[Any]] = {}
        self._inert: dict[int, Any] = {}
        self._gets = 0
        self._names: dict[Any, list[str]] = {}  # of what modules and classes have
        self._awaited: dict[int, tuple[Any, int]] = {}  # coroutines: how they were asked for
        self.known: dict[int, Any] = {}
        self.unmade: dict[int, Any] = {}
        super().__init__()

    def grant(self, op: str, *parts: Any) -> Any:
        """Do what the host asks for: nothing but with what the tests gave it."""
        if op == "warn":
            return offered.warn(*map(self.decode, parts))
        number, *rest = parts
        value, giving, test = state.handed[self.decode(number)]
        trails = contract.step(giving, contract.HANDED)
        if test not in ("", state.test) and not contract.may("late", trails):
            raise RuntimeError("the test that gave this has ended")
        given = [self.read(one, trails, looks=False) for one in rest]
        return offered.ACTS[op](value, trails, *given)

    # -- to the host ---------------------------------------------------------------------------

    def other(self, value: Any, depth: int) -> list[Any]:
        if isinstance(value, (contract.Items, contract.Pairs)):
            return self.encode(value.data, depth)
        if type(value) is contract.Iterated:
            value.forget()
            return ["t", []]  # what is written of one that is passed on is the object
        if type(value) is contract.Inert:
            return self.encode(contract.held_by(value), depth)
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
            kind, held = type(value), [self.held(one, 0) for one in value.args]
            bases = [one.__name__ for one in kind.__mro__ if one.__module__ == "builtins"]
            number = state.hand(value, ["?"])
            return ["E", number, kind.__module__, kind.__qualname__, held, bases]
        if isinstance(value, enum.Enum):
            name = value.name if value.name in type(value).__members__ else None
            return ["EM", self.encode(type(value)), name, self.encode(value.value, depth + 1)]
        if is_module_of_both(value):
            return ["P", value.__name__, []]
        # A function of Python's own, such as `getattr`, would be one that runs in the judge.
        is_pythons = isinstance(getattr(value, "__self__", None), ModuleType)
        is_named = isinstance(value, (type, FunctionType)) or (
            type(value) is type(len) and is_pythons
        )
        if is_named and "<" not in value.__qualname__ and not is_authors(value):
            return ["S", value.__module__, value.__qualname__]
        return ["H", state.hand(value, self.doing.giving), offered.form_of(value)]

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
        try:
            return super().decode(node, depth)
        except WireError as error:
            if depth:
                raise
            why = f"the process of the solution sent what makes no sense: {error}"
            raise self.died(why) from None

    def others(self, node: list[Any]) -> Any:
        found = self.reference(node)
        reading: TrailReading | None = self.doing.reading
        is_error = node[0] == "J" and issubclass(type(found), BaseException)
        if reading is None or is_error or node[0] in ("L", "K"):
            return found
        if node[0] == "h" and reading.permits("back"):
            if isinstance(found, FunctionType):  # a decorator may as well give one of its own
                reading.permits("code")
            return found
        if node[0] == "em" and isinstance(found, (int, str)) and not reading.permits("object"):
            return found  # a number or a text that has a name, too
        kinds = ["code" if _is_code(found) else "object"]
        kind: Any = type(found)
        operators = kind._assay_form["operators"] if questions.is_stand(found) else ()
        if "__call__" in operators or "__await__" in operators:
            kinds.append("code")  # it can stand for a function or a coroutine, as a task does
        if not any(map(reading.permits, kinds)):
            return contract.as_value(found, reading.trails, self._inert)
        ref = ref_of(found)
        if ref is not None and not isinstance(found, ModuleType):  # it has a name of its own
            contract.mark(ref, reading.trails)
        if isinstance(found, type) and found in _WIDE and not reading.is_named:
            return (
                found if contract.may("wide", reading.trails) else self._own(found, reading.trails)
            )
        return found

    def reference(self, node: list[Any]) -> Any:
        reader = _READERS.get(node[0])
        if reader is None:
            raise WireError("a value of an unknown kind")
        try:
            return reader(self, *node[1:])
        except (TypeError, IndexError, KeyError, ValueError, AttributeError) as error:
            raise WireError(f"a reference makes no sense: {error}") from None

    def read(
        self,
        node: Any,
        trails: list[str],
        *,
        only_values: bool = False,
        looks: bool = True,
        is_named: bool = False,
    ) -> Any:
        """Read what a test came to.

        ``looks``: whether it counts as what the submission gave; ``is_named``: whether it is an
        attribute of a module or a class.
        """
        reading = TrailReading(trails, only_values=only_values, is_named=is_named)
        with self.doing.but(reading=reading):
            found = self.decode(node)
        state.hear(found)
        if looks and reading.is_plain and type(found) is not contract.Inert:
            contract.look(found, trails)
        return found

    def taken(self, node: Any, ref: Ref, name: str) -> Any:
        """Read what a test came to by a step from something."""
        return self.read(node, contract.step(contract.trails_of(ref), name))

    def content(self, ref: Ref) -> Any:
        """What an object holds that is of a built-in type, too."""
        return self.read(self.request("base", ref.node()), contract.trails_of(ref), looks=False)

    def checked(self, found: Any) -> Any:
        """What has a NaN or an infinity in it is nothing where the reference has none.

        Nor is an array of nothing anything: it is near whatever it is compared with, and in a
        dictionary it is not alone.
        """
        reading: TrailReading | None = self.doing.reading
        for kind, has in (("nan", _is_unbounded), ("hollow", contract.is_hollow)):
            if reading and has(found) and not contract.may(kind, reading.trails):
                return contract.Inert(found, reading.trails[0], kind)
        return found

    def kind(self, number: int, form: Any = None) -> Any:
        if number not in self.kinds:
            form = form or self.request("kind", ["R", number])[2]
            name, module = form["name"], form["module"]
            if not all(type(one) is str and len(one) <= 300 for one in (name, module)):
                raise WireError("a name makes no sense")
            bases = [self.reference(base) for base in form["bases"]]
            ref = Ref(self, number, None if "<" in name else (module, *name.split(".")))
            if any(issubclass(base, BaseException) for base in bases):
                self.kinds[number] = mirrors.mirror_kind(ref, name, module, bases)
            else:
                self.kinds[number] = stands.stand_kind(ref, name, module, bases, form)
        return self.kinds[number]

    def stand(self, number: int, kind: list[Any], shadowing: Sequence[str] = ()) -> Any:
        reading: TrailReading | None = self.doing.reading
        if number not in self.known:
            cls: Any = self.reference(kind)
            cls = cls if isinstance(cls, stands.StandKind) else stands.plain_kind(cls)
            if reading and state.learns and cls._assay_form["equal"] == "enum":
                contract.may("known", reading.trails)  # in another order of the tests it is
            return self.known.setdefault(number, self._stand(number, cls, shadowing))
        held = self.known[number]
        if reading is None or _is_code(held):
            return held
        via = reading.trails
        # An object that the test has already, and comes to by another way: that two names mean one
        # object says nothing of what it holds.
        alike = [held, *self._alike.get(number, ())]
        same = next((one for one in alike if via[0] in the_ref(one).trails), None)
        if same is not None and not via[0].endswith(contract.CALL):
            return same
        if contract.may("known", [*via, *the_ref(held).trails] if state.learns else via):
            return held
        aliasing.meet(via[0])
        other = self._stand(number, type(held), shadowing)
        space_of(other)["_assay_first"] = held
        self._alike.setdefault(number, []).append(other)
        return other

    def _stand(self, number: int, cls: Any, shadowing: Sequence[str]) -> Any:
        base: Any = cls._assay_base or object
        if base in (object, list, dict, set, bytearray):
            held = base.__new__(cls)
        else:
            content = self.decode(self.request("base", ["R", number]))
            held = base.__new__(cls, mirrors.exactly(base, content))
        space_of(held)["_assay"] = Ref(self, number)
        if shadowing:
            stands.shadow(held, shadowing)
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
        if number not in self.known:
            made = sys.modules.get(name)
            if not isinstance(made, SubmissionModule):
                return make_module(self, number, name, doc)
            self.known[number] = made
        return self.known[number]

    def member(self, kind: list[Any], name: Any, value: Any) -> Any:
        """A member of an enumeration that is not the submission's."""
        known = mirrors.known_classes(enum.Enum)
        found: Any = self.reference(kind) if kind[0] == "h" else known.get(tuple(kind))
        if not isinstance(found, enum.EnumMeta):  # of a module that the judge has not imported
            return self.decode(value)
        return found[name] if name is not None else found(self.decode(value))

    def linked(self, number: int, content: Any) -> Any:
        if self.doing.reading:
            self.doing.reading.is_named = False  # what is in it has no name of its own
        return self.following(Ref(self, number), self.decode(content), self._trails)

    @property
    def _trails(self) -> list[str]:
        return self.doing.reading.trails if self.doing.reading else ["?"]

    def error(
        self, number: int, kind: list[Any], arguments: list[Any], told: dict[str, Any],
        text: str | None, inner: list[Any], cause: Any, context: Any,
    ) -> BaseException:  # fmt: skip
        if number in self.known:
            return self.known[number]
        cls: Any = self._aliased(self.reference(kind))
        ref = Ref(self, number)
        ref.trails = [f"{one}{contract.RAISED}" for one in self.doing.asking]
        contract.expect_error([self._names_of(one) for one in cls.__mro__], ref.trails)
        values = [self.taken(one, ref, "args") for one in arguments]
        if inner and issubclass(cls, stands.BUILTINS.get("BaseExceptionGroup", ())):
            message = values[0] if values and type(values[0]) is str else ""
            error: Any = cls.__new__(cls, message, [self.reference(one) for one in inner])
        else:
            error = mirrors.made_error(cls, values)
        names = [one for one in told if one.isidentifier() and not one.startswith("_assay")]
        # A test has what it asks for: that something else is empty says nothing.
        later = {one: told[one] for one in names if ref_of(cls) and one != "__notes__"}
        for name in names:
            if name not in later:
                way = contract.step(ref.trails, name)
                error.__dict__[name] = self.read(told[name], way, looks=False)
        if cause is not None:
            error.__cause__ = self.reference(cause)
        if context is not None:
            error.__context__ = self.reference(context)
        error.__dict__.update(_assay=ref, _assay_text=text, _assay_told=later)
        self.known[number] = error
        return error

    # -- what is asked -------------------------------------------------------------------------

    def get(self, ref: Ref, name: str) -> Any:
        """An attribute. What a module has is found again in other sessions by its name."""
        trails = contract.step(contract.trails_of(ref), name)
        self._gets += 1
        try:
            node = self.request("get", ref.node(), name, trails=trails)
        except AttributeError:
            # As an expected error, it would prove nothing.
            if not name.startswith("_") and not contract.may("missing", trails):
                barred(f"{trails[0]} is not there")
            raise
        self._expect_still((ref.number, name), node, trails, self.acts)
        found = self.read(node, trails, is_named=ref.path is not None)
        own = ref_of(found)
        if ref.path is None:
            if own is not None:
                own.owner = (ref.number, name)
            return found
        self.expect_other(found, trails[0])
        if own is not None and own.path is None and len(ref.path) == 1:
            own.path = (*ref.path, name)
        return self._narrow(found, trails)

    def _expect_still(
        self,
        key: tuple[Any, ...],
        node: Any,
        trails: list[str],
        acts: int,
        place: tuple[Any, int, int] | None = None,
    ) -> None:
        """What is asked for again, after no more than these acts, is what it was.

        But for what a loop waits for: it asks again at the same place.
        """
        # What holds others may change with what is read beside it, as a cache does.
        asked = self._gets if type(node) is list and node[:1] == ["L"] else 0
        before, place = state.answered.get((self.number, key)), place or recipes.place()
        if acts != self.acts:
            state.answered.clear()
        state.answered[self.number, key] = (self.acts, asked, node, place)
        if before is None or before[0] != acts or before[1] != max(asked - 1, 0):
            return
        is_other = differ(_comparable(before[2]), _comparable(node))
        if not is_other or recipes.is_one_place(before[3], place):
            return
        if not contract.may("moves", trails):
            contract.refused(f"moves:{trails[0]}", f"{trails[0]} is another when it is read again")

    def expect_other(self, found: Any, name: str) -> None:
        """What has two names in the reference, such as members of an enumeration, is two here.

        A test that compares with either of them would not tell them apart. Of built-in errors this
        is asked where they are raised: see `contract.expect_error`.
        """
        ref, is_error = ref_of(contract.held_by(found)), _is_error(found)
        is_known = ref is not None or (state.learns and is_error)
        if not is_known or (_is_code(found) and not is_error):
            return
        names = self._names.setdefault(ref.number if ref else found, [])
        for other in names if name not in names else ():
            both = "=".join(sorted([name, other]))
            if not contract.may("one", [both]):
                raise contract.refused(f"one:{both}", f"{name} and {other} are one object here")
        if name not in names:
            names.append(name)

    def _names_of(self, kind: type) -> list[str]:
        """By which names the tests came to a class; of the reference's, in which it is alone."""
        ref = ref_of(kind)
        named = self._names.get(ref.number) if ref and state.learns else None
        return sorted(named or ref.trails) if ref else [kind.__name__]

    def _narrow(self, found: Any, trails: list[str]) -> Any:
        """A class that is the reference's own has to be one here, or a built-in as narrow.

        Under the name of a wider one every failure of the judge would be one that was expected.
        """
        if type(found) is tuple:
            return tuple(self._narrow(one, trails) for one in cast("tuple[Any, ...]", found))
        if not isinstance(found, type):
            return found
        if state.learns:
            first = next(one for one in found.__mro__ if one.__module__ == "builtins")
            contract.may("class", [f"{one}:{first.__name__}" for one in trails])
        if ref_of(found) is not None or not issubclass(found, BaseException):
            return found
        widest = contract.classes_at(trails)
        if not widest and found not in _WIDE:
            return found
        made = self._own(found, trails)
        if not widest or any(issubclass(found, stands.BUILTINS[one]) for one in widest):
            made = self._aliases.setdefault(found, made)
            contract.mark(the_ref(made), trails)
        return made

    def _own(self, cls: type, trails: list[str]) -> Any:
        """A class of the submission's in the place of a built-in one."""
        own = Ref(self, 0, (trails[0],))
        name = trails[0].rpartition(".")[2]
        return mirrors.mirror_kind(own, name, f"the submission's {trails[0]}", [cls])

    def _aliased(self, cls: Any) -> Any:
        """A built-in exception, as what the submission calls it, too."""
        if ref_of(cls) is not None:
            return cls
        aliases = [self._aliases[one] for one in cls.__mro__ if one in self._aliases]
        kinds = aliases if cls in self._aliases else [cls, *aliases]
        if len(kinds) == 1:
            return kinds[0]
        name, place = cls.__name__, ", ".join(one.__module__ for one in kinds)
        return mirrors.mirror_kind(Ref(self, 0, (name,)), name, place, kinds)

    def set(self, ref: Ref, name: str, value: Any) -> None:
        self.request("set", ref.node(), name, self.given(value, contract.trails_of(ref)))

    def delete(self, ref: Ref, name: str) -> None:
        self.request("delete", ref.node(), name)

    def call(self, ref: Ref, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        trails = contract.step(contract.trails_of(ref), contract.CALL)
        how, acts = self.call_of(ref, arguments, named, trails), self.acts
        answer = self.request("call", *how, *stands.where(), trails=trails)
        if type(answer) is list and answer and answer[0] == "X":
            for place, node in answer[2]:
                self.change(arguments[place], node, trails, f"changes:{place}")
            answer = answer[1]
        self.follow([*arguments, *named.values()], trails)
        asked = ref.owner or ref.number, contract.CALL, json.dumps(how[1:])
        if _is_number(answer):  # a text or a table may say when it was made
            self._expect_still(asked, answer, trails, acts)
        elif type(answer) is list and answer[0] == "co":
            self._awaited[answer[1]] = asked, acts
        made = self.read(answer, trails)
        own = contract.trails_of(ref)[0]
        is_value = not state.learns and ref.path is not None and ref_of(made) is None
        if is_value and contract.classes_at([own]):  # what one makes can be asked for its class
            why = f"{own} is a class in the reference, and here gives a {type(made).__name__}"
            raise contract.refused(f"class:{own}", why)
        if questions.is_stand(made) and (recipe := recipes.Recipe(how)).how is not None:
            space_of(made).setdefault("_assay_recipe", recipe)
        return made

    def waiting(self, ref: Ref) -> Callable[[], Any]:
        """What waits for something, on whatever thread: a number is what it was before."""
        trails, place = contract.trails_of(ref), recipes.place()
        asked, acts = self._awaited.pop(ref.number, ((), -1))

        def wait() -> Any:
            node = self.request("await", ref.node(), trails=trails)
            if acts >= 0 and _is_number(node):
                self._expect_still((*asked, "await"), node, trails, acts, place)
            return self.taken(node, ref, "__await__")

        return wait

    def call_of(
        self, ref: Ref, arguments: tuple[Any, ...], named: dict[str, Any], trails: list[str]
    ) -> list[Any]:
        values = [self.given(one, trails) for one in arguments]
        return [ref.node(), values, {name: self.given(one, trails) for name, one in named.items()}]

    construct = recipes.construct

    def operate(self, ref: Ref, name: str, *arguments: Any) -> Any:
        """Use an operator that the reference was asked for; what it gives is still encoded."""
        trails = contract.trails_of(ref)
        if name not in _OF_CONTAINERS or state.learns:
            what, why = contract.operator_of(name), f"{name} is asked of {trails[0]}"
            contract.require(what, trails, ref.label, why)
        values, acts = [self.given(one, trails) for one in arguments], self.acts
        try:
            node = self.request("operate", ref.node(), name, values, *stands.where(), trails=trails)
        except IndexError:
            if name == "__getitem__":  # by which an iteration ends
                contract.look_at_items(ref)
            raise
        if name == "__getitem__":
            state.leaves[f"{trails[0]}[]"] = True
        if name in _OF_ONE:
            self._expect_still((ref.number, name), node, contract.step(trails, name), acts)
        return node


def _comparable(node: Any) -> Any:
    """A value without the numbers of objects, and without an order where it has none."""

    def bare(part: list[Any]) -> Any:
        tag, *rest = part
        if tag in ("s", "f"):
            return [tag, sorted(json.dumps(_comparable(one)) for one in rest[0])]
        if tag == "d":
            keys, values = (_comparable(one)[1] for one in rest)
            return [tag, sorted(map(json.dumps, zip(keys, values)))]
        if tag == "L":
            return _comparable(rest[1])
        return [tag] if tag in _READERS else None

    return changed(node, bare)


def _is_number(node: Any) -> bool:
    return type(node) in (int, float) or (type(node) is list and node[:1] in _NUMBERS)


def _is_unbounded(found: Any) -> bool:
    """Whether a number is a NaN or an infinity, or an array has one."""
    if hasattr(found, "is_finite"):
        return not found.is_finite()
    if type(found) is array:
        return found.typecode in "fd" and not all(map(isfinite, found))
    kind = getattr(getattr(found, "dtype", None), "kind", "f")
    gone: Any = found - found if kind in "fcmM" else 0
    odd: Any = gone != gone  # noqa: PLR0124 - of a NaN, an infinity and a NaT
    return bool(getattr(odd, "any", lambda: odd)())


def _is_error(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, BaseException)


def _is_code(found: Any) -> bool:
    if isinstance(found, (type, ModuleType)) or type(found) is CoroutineType:
        return True
    label = getattr(type(found), "_assay_label", "")
    module, _, name = label.rpartition(".")
    return module in ("builtins", "functools") and (name in _CODE or module == "functools")


_coroutines: dict[int, tuple[Any, Ref]] = {}
_READERS: dict[str, Callable[..., Any]] = {
    "o": JudgeSide.stand,
    "co": JudgeSide.coroutine,
    "k": JudgeSide.kind,
    "C": lambda _, name: stands.BUILTINS[name],
    "m": JudgeSide.module,
    "h": lambda _, number: state.handed[number][0],
    "J": lambda _, number: state.handed[number][0],  # an exception of the tests comes back
    "em": JudgeSide.member,
    "L": JudgeSide.linked,
    "K": lambda talk, number: talk.lent[number],
    "e": JudgeSide.error,
}
