"""The values inside values, read past whatever a subclass claims to hold."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    Pair = tuple[object, object]

NOTHING = object()
"""Where there is no value to compare with."""

SCALARS: frozenset[type] = frozenset(
    {int, float, complex, str, bytes, bytearray, bool, type(None), type(Ellipsis), range}
)
"""Built-in types whose comparisons nobody can have a say in."""

_SEQUENCES: tuple[type, ...] = (list, tuple, deque)
_SETS: tuple[type, ...] = (set, frozenset, type({1: 1}.keys()), type({1: 1}.items()))


def inner_pairs(one: object, other: object) -> list[Pair]:
    """The elements of two values, side by side where both are of a kind."""
    if isinstance(one, _SEQUENCES) and isinstance(other, _SEQUENCES):
        left, right = elements(one), elements(other)
        if set(map(type, left)) <= SCALARS and set(map(type, right)) <= SCALARS:
            return []
        length = max(len(left), len(right))
        left += [NOTHING] * (length - len(left))
        right += [NOTHING] * (length - len(right))
        return [(left[index], right[index]) for index in range(length)]
    if _is_mapping(one) and _is_mapping(other):
        mine, theirs = _items(one), _items(other)
        pairs: list[Pair] = [(key, NOTHING) for key in (*mine, *theirs)]
        return pairs + _matched(mine, theirs)
    return [(element, NOTHING) for side in (one, other) for element in elements(side)]


def elements(value: object) -> list[object]:
    """What a container holds; nothing for any other value."""
    for kind in (*_SEQUENCES, *_SETS):
        if isinstance(value, kind):
            return list(vars(kind)["__iter__"](value))
    if _is_mapping(value):
        held = _items(value)
        return [*held, *held.values()]
    return list(vars(value).values()) if type(value) is SimpleNamespace else []


def fields(value: object, other: object) -> list[Pair]:
    """The attributes of an object, beside those of one of its own class."""
    mine = _attributes(value)
    theirs = _attributes(other) if type(other) is type(value) else {}
    return [(part, theirs.get(name, NOTHING)) for name, part in mine.items()]


def beside(other: object) -> object:
    """A value that differs from a plain one, though not by much; `NOTHING` for other values."""
    change = _NEXT.get(type(other))
    return NOTHING if change is None else change(other)


_NEXT: dict[type, Callable[[object], object]] = {
    int: lambda value: cast("int", value) + 1,
    float: lambda value: cast("float", value) * 2 + 1,
    str: lambda value: cast("str", value) + "~",
    bytes: lambda value: cast("bytes", value) + b"~",
    bool: lambda value: not value,
    list: lambda value: [*cast("list[object]", value), object()],
    tuple: lambda value: (*cast("tuple[object, ...]", value), object()),
    dict: lambda value: {**cast("dict[object, object]", value), object(): 0},
    set: lambda value: {*cast("set[object]", value), object()},
}


def _is_mapping(value: object) -> bool:
    return isinstance(value, dict)


def _items(value: object) -> dict[object, object]:
    return dict(vars(dict)["items"](value))


def _matched(mine: dict[object, object], theirs: dict[object, object]) -> list[Pair]:
    left = dict(theirs)
    pairs = [(value, left.pop(key, NOTHING)) for key, value in mine.items()]
    return pairs + [(NOTHING, value) for value in left.values()]


def _attributes(value: object) -> dict[str, object]:
    found: dict[str, object] = {}
    for base in type(value).__mro__:
        names = cast("str | tuple[str, ...]", vars(base).get("__slots__", ()))
        for name in (names,) if isinstance(names, str) else tuple(names):
            slot = vars(base).get(name)
            if slot is not None and hasattr(slot, "__objclass__"):
                try:
                    found[name] = slot.__get__(value)
                except AttributeError:  # never set
                    continue
    try:
        found.update(object.__getattribute__(value, "__dict__"))
    except AttributeError:  # it has slots only
        return found
    return found
