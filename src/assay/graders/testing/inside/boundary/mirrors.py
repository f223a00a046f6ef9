"""Mirrors of exceptions, and copies that follow the containers that they were made of.

An exception of the submission arrives as an instance of a mirror class with the same built-in
bases, so that ``pytest.raises(kit.Error)`` holds. A list, dict or set that an attribute holds is a
copy that follows the one in the host and writes through to it, for tests that change settings and
caches.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast

from assay.graders.testing.inside.boundary.judge_state import (
    Ref,
    state,
)
from assay.graders.testing.inside.boundary.stands import (
    is_quiet,
)
from assay.graders.testing.inside.boundary.wire import WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from assay.graders.testing.inside.boundary.judge_side import JudgeSide

_ENDING = ("_pytest", "pytest", "unittest", "pluggy", "hypothesis")
"""Where the exceptions are from that end or skip a test: the submission has none of them."""


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


def mirror_kind(ref: Ref, name: str, module: str, bases: list[Any]) -> Any:
    """The class that stands for an exception class of the submission."""
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


def made_error(cls: Any, values: list[Any]) -> Any:
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


# -- containers ------------------------------------------------------------------------------------


def _refresh(value: Any) -> None:
    ref: Ref = value._assay
    if value._assay_seen != ref.talk.changes:
        content = cast("JudgeSide", ref.talk).content(ref)
        kind = type(value).__mro__[1]
        kind.clear(value)
        (kind.extend if kind is list else kind.update)(value, exactly(kind, content))
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
        talk = cast("JudgeSide", ref.talk)
        if name.startswith("__"):
            node = talk.request(
                "operate", ref.node(), name, [talk.encode(one) for one in arguments]
            )
            found = talk.taken(node, ref, "__iter__")
        else:
            found = talk.get(ref, name)(*arguments, **named)
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
LINKED = (LinkedList, LinkedDict, LinkedSet)
_errors: dict[tuple[str, str], Any] = {}


def exactly(base: type, content: Any) -> Any:
    """A content that is of this very class."""
    if type(content) is not base:
        raise WireError("the content of a value is of another kind")
    return content
