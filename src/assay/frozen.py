"""Frozen dataclasses with slots that are cheap to make.

`dataclasses.dataclass(frozen=True)` writes and compiles six methods for each class, and a command
that makes a hundred classes when it starts paid more for these than for all else. Here ``__init__``
alone is compiled; the other methods are shared. The class is a dataclass like any other to
`fields`, `replace`, `asdict`, ``match``, `pickle` and type checkers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from functools import lru_cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar, cast, dataclass_transform, overload

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_T = TypeVar("_T")


@overload
def frozen(cls: type[_T], /) -> type[_T]: ...
@overload
def frozen(*, kw_only: bool) -> Callable[[type[_T]], type[_T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field, Field))
def frozen(
    cls: type[_T] | None = None, /, *, kw_only: bool = False
) -> type[_T] | Callable[[type[_T]], type[_T]]:
    """Make a class a dataclass with slots that cannot be changed: ``frozen=True, slots=True``.

    Args:
        cls: The class, where the decorator stands alone.
        kw_only: Take every field by its name.
    """

    def make(cls: type[_T]) -> type[_T]:
        # The standard library lets what is frozen follow only what it was told is frozen.
        follows = any(hasattr(base, "__dataclass_fields__") for base in cls.__bases__)
        own = {name for name, value in vars(cls).items() if value is not None}
        cls.__doc__ = cls.__doc__ or cls.__name__  # else a signature is written, which takes longer
        made = dataclass(
            init=False, repr=False, eq=False, frozen=follows, slots=True, kw_only=kw_only
        )(cls)
        cast("Any", made).__dataclass_params__.frozen = True
        for name, method in {"__init__": _init(made), **_comparison(made), **_SHARED}.items():
            if name not in own:
                setattr(made, name, method)
        return made

    return make if cls is None else make(cls)


class _Made:
    """What the signature shows as the default of a field that is made anew for each object."""

    def __repr__(self) -> str:
        return "<factory>"


_MADE = _Made()


def _init(cls: type) -> Callable[..., None]:
    """An ``__init__`` that puts each field into its slot."""
    known: dict[str, object] = {"_made": _MADE}
    parameters: dict[bool, list[str]] = {False: [], True: []}
    lines: list[str] = []
    for one in fields(cls):
        name, value, default = one.name, one.name, ""
        if one.default_factory is not MISSING:
            known[f"_default_{name}"] = one.default_factory
            default, anew = "=_made", f"_default_{name}()"
            value = f"{anew} if {name} is _made else {name}" if one.init else anew
        elif one.default is not MISSING:
            known[f"_default_{name}"] = one.default
            default = f"=_default_{name}"
            value = name if one.init else f"_default_{name}"
        if one.init:
            parameters[bool(one.kw_only)].append(name + default)
        if one.init or default:
            known[f"_set_{name}"] = getattr(cls, name).__set__
            lines.append(f" _set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    taken = ["self", *parameters[False], *(["*"] if parameters[True] else []), *parameters[True]]
    exec("\n".join([f"def __init__({', '.join(taken)}):", *lines, " return"]), known)  # noqa: S102
    method = cast("Callable[..., None]", known["__init__"])
    method.__module__, method.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    method.__annotations__ = {one.name: one.type for one in fields(cls) if one.init}
    return method


def _comparison(cls: type) -> dict[str, Callable[..., object]]:
    compared = attrgetter("__class__", *(one.name for one in fields(cls) if one.compare))
    counted = [one.name for one in fields(cls) if (one.compare if one.hash is None else one.hash)]
    in_hash = attrgetter("__class__", *counted)

    def equals(self: object, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return compared(self) == compared(other)

    def hashed(self: object) -> int:
        return hash(in_hash(self))

    return {"__eq__": equals, "__hash__": hashed}


def changed(one: _T, **others: object) -> _T:
    """A copy with other fields that are known to be fine: they are not checked.

    `dataclasses.replace` takes four times as long.
    """
    copied, setters = _copier(type(one))
    made = copied(one)
    for name, value in others.items():
        setters[name](made, value)
    return made


@lru_cache(maxsize=64)
def _copier(cls: type) -> tuple[Callable[[Any], Any], dict[str, Callable[..., None]]]:
    """What copies an object, compiled as ``__init__`` is, and what sets each of its fields."""
    setters = {one.name: getattr(cls, one.name).__set__ for one in fields(cls)}
    known: dict[str, Any] = {f"_set_{name}": setter for name, setter in setters.items()}
    lines = [f" _set_{name}(made, one.{name})" for name in setters]
    made = " made = object.__new__(type(one))"
    exec("\n".join(["def copied(one):", made, *lines, " return made"]), known)  # noqa: S102
    return known["copied"], setters


@recursive_repr()
def _repr(self: DataclassInstance) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _set(self: DataclassInstance, name: str, value: object) -> None:
    _refuse(self, "assign to", name)
    object.__setattr__(self, name, value)


def _delete(self: DataclassInstance, name: str) -> None:
    _refuse(self, "delete", name)
    object.__delattr__(self, name)


def _refuse(self: DataclassInstance, to: str, name: str) -> None:
    """A plain class that derives from a frozen one may have more than its fields, to be changed."""
    if "__dataclass_fields__" in vars(type(self)) or name in self.__dataclass_fields__:
        raise FrozenInstanceError(f"cannot {to} field {name!r}")


def _state(self: DataclassInstance) -> list[object]:
    return [getattr(self, one.name) for one in fields(self)]


def _restore(self: DataclassInstance, state: list[object]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


_SHARED: dict[str, Callable[..., object]] = {
    "__repr__": _repr,
    "__setattr__": _set,
    "__delattr__": _delete,
    "__getstate__": _state,
    "__setstate__": _restore,
}
