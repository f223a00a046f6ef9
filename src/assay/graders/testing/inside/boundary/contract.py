"""What the author's reference gives the types of: values here, objects there.

A *trail* is the way by which a test came to something, such as ``kit.load().name``. It is made of
what the test does, so it is the same for every submission. While the reference is proven, all
is permitted, and what it needed is written down by test and trail. When a submission is graded, the
tests get nothing else: an object where the reference had values arrives as what it holds, or as
something that fails the test once it is used.
"""

from __future__ import annotations

import itertools
import re
from collections import UserDict, UserList
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from assay.graders.testing.inside.boundary.judge_state import UndecidedError, fail, ref_of, state
from assay.graders.testing.inside.boundary.wire import IN_PLACE, OPERATORS, WireError

CALL, RAISED, HANDED = "()", "!", "<>"
"""Steps of a trail: what a call gave, what it raised, what it gave to a callback."""

_LONGEST = 7
_MOST_TRAILS = 6
_STEPS = re.compile(r"\(\)|!|<>|\.?[^.()!<>]+")
_TRANSPARENT = frozenset(
    "__iter__ __next__ __getitem__ __reversed__ __get__ __enter__ __aenter__ __anext__ __aiter__ "
    "__await__".split()
)
_ALIKE = {
    **IN_PLACE,
    **dict.fromkeys(("__repr__", "__format__"), "__str__"),
    **dict.fromkeys(
        "__index__ __int__ __trunc__ __floor__ __ceil__ __complex__".split(), "__float__"
    ),
}
"""Operators of which Python asks for another where a class has not this one: `str` of an object
with a text for programmers alone. Which of them it has is a matter of style."""
_EVERYWHERE = ("code", "class", "one")
"""What does not depend on the test: such needs are not written down by test."""


def trails_of(ref: Any) -> list[str]:
    """By which ways the tests came to something."""
    return ref.trails or [".".join(ref.path) if ref.path else "?"]


def step(trails: list[str], name: str) -> list[str]:
    """The trails one step on."""
    if name in _TRANSPARENT:
        return trails
    last = name if name in (CALL, RAISED, HANDED) else f".{_ALIKE.get(name, name)}"
    return [_short(trail + last) for trail in trails]


def _short(trail: str) -> str:
    parts = _STEPS.findall(trail)
    return trail if len(parts) <= _LONGEST else "".join([*parts[:2], ".*", *parts[-3:]])


def mark(ref: Any, trails: list[str]) -> None:
    """Remember how something was come to; the newest way comes first."""
    ref.trails = [*trails, *(one for one in ref.trails or () if one not in trails)][:_MOST_TRAILS]


def may(what: str, trails: list[str]) -> bool:
    """Whether the reference needed something here; while it is proven, it is written down."""
    test = "" if what in _EVERYWHERE else state.test
    entries = [f"{what}:{trail}" for trail in trails]
    if state.learns:
        for entry in entries:
            state.need(test, entry)
        return True
    return not state.needs.get(test, frozenset()).isdisjoint(entries)


def classes_at(trails: list[str]) -> list[str]:
    """What the reference's own classes are there, by the names of built-in ones."""
    return noted([f"class:{one}:" for one in trails], "")


def noted(begins: list[str], test: str) -> list[str]:
    """What stands behind some beginnings in what the reference needed in a test."""
    needed = state.needs.get(test, ())
    return [one.rpartition(":")[2] for one in needed if one.startswith(tuple(begins))]


def expect_error(names: list[list[str]], trails: list[str]) -> None:
    """An error is no other one of the reference's than that which a test waits for.

    What is errors of several kinds could be whichever that is; so could what is raised in place of
    all those that it is derived from, and what several names mean.

    Args:
        names: Of the error's class, and of those that it is derived from.
        trails: By which it was come to.
    """
    if state.learns:
        chain = "<".join(one[0] for one in names[:-2] if one)
        may("raised", [f"{trail}:{chain}" for trail in trails])
        return
    here = _raised(trails, [state.test]) or _raised([""], [state.test])
    theirs = _raised(trails, [*state.needs]) or _raised([""], [*state.needs])
    known = [{*one} & theirs.keys() for one in names]  # each of its classes, as the reference's
    first, *others = [one for one in known if one] or [set[str]()]

    def is_akin(one: str, other: str) -> bool:
        is_kind = one in theirs[other] or other in theirs[one]
        return is_kind or may("one", ["=".join(sorted([one, other]))])

    is_one = all(is_akin(*pair) for pair in itertools.combinations(first, 2))
    for other in others if is_one else [first]:
        is_kind = any(is_akin(*pair) for pair in itertools.product(first, other))
        if other & here.keys() and not (is_one and is_kind):
            why = f"{trails[0]} is {min(first)} here, and {max(other)} in the reference"
            raise refused(f"raised:{trails[0]}:{min(first)}", why)


def _raised(trails: list[str], tests: list[str]) -> dict[str, list[str]]:
    """The errors that the reference raises in some tests, each with what it is derived from."""
    begins = [f"raised:{one}:" if one else "raised:" for one in trails]
    chains = [one.split("<") for test in tests for one in noted(begins, test)]
    return {chain[0]: chain for chain in chains}


def require(what: str, trails: list[str], label: str, why: str) -> None:
    """Fail the test unless the reference needed something here."""
    if not may(what, trails):
        raise refused(f"{what}:{trails[0]}", f"{why}, and so only code of {label} would decide")


def refused(entry: str, why: str) -> BaseException:
    """What to raise where a submission does what no reference needed."""
    state.undecided(entry)
    return fail(UndecidedError(f"{why}: [{entry}]"))


def operator_of(name: str) -> str:
    """How the contract calls an operator and all others that answer in its place."""
    return f"op:{_ALIKE.get(name, name)}"


class Inert:
    """What the reference does not give, such as an object in a value's place: to be passed back."""

    def __init__(self, held: Any, trail: str, kind: str = "object") -> None:
        label = getattr(type(held), "_assay_label", type(held).__name__)
        here = f"an object of {label}" if kind == "object" else f"{held!r}"
        why = (f"{kind}:{trail}", f"{trail} is a value in the reference, and here {here}")
        self._held, self._why = held, why
        state.hint(*why)

    def __repr__(self) -> str:
        return f"<{_of(self, '_why')[1]}>"

    def __hash__(self) -> int:
        if CALL in _of(self, "_why")[0]:  # no constant of a module
            raise refused(*_of(self, "_why"))
        return object.__hash__(self)

    def __getattribute__(self, name: str) -> Any:
        # What is no number here must not be taken for something else that is none.
        entry = _of(self, "_why")[0]
        is_told = name == "__class__" and not (entry.startswith("nan:") and CALL in entry)
        if is_told or name == "__repr__" or name.startswith(("_pytest", "__array")):
            return object.__getattribute__(self, name)
        raise refused(*_of(self, "_why"))


_of = object.__getattribute__


def held_by(value: Any) -> Any:
    """What an inert object stands for; anything else is itself."""
    return _of(value, "_held") if type(value) is Inert else value


def _refuses(name: str) -> Any:
    def operate(self: Any, *others: object, **_: object) -> Any:
        other = others[0] if name in ("__eq__", "__ne__") else None
        if type(other) is not Inert and ref_of(other) is None:
            raise refused(*_of(self, "_why"))
        # Two names for one object, such as a constant of a module, are equal as in any program.
        mine, theirs = [getattr(ref_of(one), "number", one) for one in map(held_by, (self, other))]
        return (mine == theirs) is (name == "__eq__")

    return operate


_LEFT_OUT = frozenset(
    "__hash__ __repr__ __dir__ __instancecheck__ __array__ __get__ "
    # By these a class would be an Iterable, a Callable and so on, which tests ask for.
    "__iter__ __len__ __contains__ __call__ __next__ __await__ __aiter__ __anext__ __reversed__ "
    "__enter__ __exit__ __aenter__ __aexit__ __index__ __int__ __float__ __complex__".split()
)
for _name in OPERATORS - _LEFT_OUT:
    setattr(Inert, _name, _refuses(_name))


def as_value(found: Any, trails: list[str], known: dict[int, Inert]) -> Any:
    """What a test gets of an object where the reference has a value: what it holds, or nothing."""
    ref: Any = ref_of(found)
    if ref is None or isinstance(found, (type, BaseException, ModuleType)):
        return Inert(found, trails[0])
    if ref.number in known:
        return known[ref.number]
    kind: Any = type(found)
    if "__next__" in kind._assay_form["operators"]:
        return _Again(lambda: _items_of(ref, trails), trails[0])
    node = _asked(ref, "base")
    if node is None:
        held = _by_items(ref, trails, kind._assay_form)
        # One for each object: as a constant of a module it may be compared with itself.
        return known.setdefault(ref.number, Inert(found, trails[0])) if held is None else held
    own = [one for one in kind._assay_form["own"] if one not in ("__hash__", "__new__")]
    if own:
        lost = f"copied here, without its own {', '.join(own[:3])}"
        why = f"{trails[0]} is a value in the reference, and is {lost}"
        state.hint(f"op:{own[0]}:{trails[0]}", why)
    found = ref.home().read(node, trails, only_values=True)
    if not trails[0].endswith(CALL):
        found = ref.home().following(ref, found, trails)
    return ref.home().copied(ref, found, node)


def _asked(ref: Any, what: str) -> Any:
    """What the host says of an object; None where that is nothing."""
    try:
        return ref.home().request(what, ref.node())
    except Exception as error:
        if isinstance(error, WireError) or error in state.failures:
            raise
        return None


_List: Any = UserList
_Dict: Any = UserDict


class _Alone:
    """What is made of an object with items; where its own class says so, it equals itself alone."""

    alone = ""  # the trail of one that does
    __hash__: Any = None

    def __eq__(self, other: object) -> bool:
        if self.alone:
            return _is_same(self, other, self.alone)
        return super().__eq__([*other] if isinstance(other, tuple) else other)


class Items(_Alone, _List):
    """The items of an object that is no list."""


class Pairs(_Alone, _Dict):
    """The same of one that is no dictionary."""


def _is_same(one: Any, other: object, trail: str) -> bool:
    """Whether two are one; that it is not what a test has would say nothing of what it holds."""
    kinds = (list, tuple, set, frozenset, dict, Items, Pairs, Iterated)
    if trail and one is not other and isinstance(other, kinds):
        why = f"{trail} is a value in the reference, and here equals nothing but itself"
        raise refused(f"object:{trail}", why)
    return one is other


class Iterated:
    """What nothing is known of but that it can be iterated over: who looks again sees the same."""

    def __init__(self, source: Callable[[], Iterator[Any]], trail: str) -> None:
        self._begin, self._trail = source, trail
        self.forget()

    def __eq__(self, other: object) -> bool:
        return _is_same(self, other, self._trail)

    __hash__ = object.__hash__

    def __iter__(self) -> Iterator[Any]:
        source, seen = self._source, self._seen
        for at in itertools.count():
            if at == len(seen):
                seen.extend(itertools.islice(source, 1))
            if at == len(seen):
                return
            yield seen[at]

    def forget(self) -> None:
        """Look anew: it was handed on, and may have been changed."""
        self._source, self._seen = self._begin(), []


class _Again(Iterated):
    """The values of an iterator."""

    def __init__(self, source: Callable[[], Iterator[Any]], trail: str) -> None:
        super().__init__(source, trail)
        self._own = iter(self)

    def __next__(self) -> Any:
        return next(self._own)


def _iterated(ref: Any, trails: list[str]) -> Iterator[Any]:
    """The values of an object that can be iterated over."""
    talk = ref.home()
    node = talk.request("operate", ref.node(), "__iter__", [])
    if type(node) is not list or node[:1] != ["o"]:
        raise WireError("an iterator makes no sense")
    yield from _items_of(type(ref)(talk, node[1]), trails)


def _by_items(ref: Any, trails: list[str], form: Any) -> Any:
    """An object as a test gets it by the protocols of containers; None for one of no items."""
    node = _asked(ref, "items") if "__len__" in form["operators"] else None
    if node is None and "__iter__" not in form["operators"]:
        return None
    if node is None:
        found: Any = Iterated(lambda: _iterated(ref, trails), trails[0])
        return ref.home().copied(ref, found, node)
    found = ref.home().read(node, trails, only_values=True)
    kind: Any = {list: Items, dict: Pairs}.get(type(found))
    if kind:
        found = kind(found)
        found.alone = trails[0] if form["equal"] == "identity" else ""
    return ref.home().copied(ref, found, node)


def _items_of(ref: Any, trails: list[str]) -> Any:
    """The values that an iterator gives: the first few one by one, then many at a time."""
    count, ended = 0, False
    state.leaves.setdefault(trails[0], False)
    while not ended:
        many = 1 if count < 16 else min(count, 512)
        items, ended = ref.home().request("take", ref.node(), many, not count)
        for one in items:
            yield ref.home().read(one, trails, only_values=True)
        count += many


def look(found: Any, trails: list[str]) -> None:
    """Remember whether a value holds anything at all; see `empties`."""
    if isinstance(found, Iterated):
        return  # whose items tell, once there are some
    state.leaves[trails[0]] = state.leaves.get(trails[0]) or _has_leaf(found)
    if state.learns and _has_hole(found):
        may("hollow", trails)


def _has_leaf(found: Any) -> bool:
    kind = type(found)
    if kind is Inert or ref_of(found) is not None:
        return True
    if kind.__module__ == "numpy":
        return bool(getattr(found, "size", 1))
    if not hasattr(kind, "__len__") or not hasattr(kind, "__iter__"):
        return True
    if kind in (str, bytes, bytearray) or hasattr(kind, "keys"):
        return len(found) > 0
    try:
        return any(map(_has_leaf, found))
    except TypeError:
        return True


def is_hollow(found: Any) -> bool:
    """Whether something is an array of nothing."""
    return type(found).__module__ == "numpy" and not getattr(found, "size", 1)


def _has_hole(found: Any) -> bool:
    """Whether a container without anything in it is in a value."""
    if is_hollow(found) or type(found) not in (list, tuple, set, frozenset, dict):
        return is_hollow(found)
    return not found or any(map(_has_hole, found.values() if type(found) is dict else found))


def look_at_items(ref: Any, *found: Any) -> None:
    """Remember what an iterator gave; nothing, where it ends, perhaps before it gave anything."""
    trail = f"{trails_of(ref)[0]}[]"
    state.leaves.setdefault(trail, False)
    for one in found:
        look(one, [trail])


def empties() -> None:
    """When a test ends: what gave nothing all the time, and in the reference something, is told."""
    for trail in [one for one, has_leaf in state.leaves.items() if state.test and not has_leaf]:
        is_object = f"object:{trail}" in state.needs.get(state.test, ())
        if not is_object and not may("empty", [trail]):
            refused(f"empty:{trail}", f"{trail} is empty here, and never in the reference")
    state.leaves.clear()
