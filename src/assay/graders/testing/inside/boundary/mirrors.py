"""Mirrors of exceptions, and copies that follow the containers that they were made of.

An exception of the submission arrives as an instance of a mirror class with the same built-in
bases, so that ``pytest.raises(kit.Error)`` holds. A list, dict or set that an attribute holds is a
copy that follows the one in the host and writes through to it, for tests that change settings and
caches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.graders.testing.inside.boundary.judge_state import Ref, is_authors, ref_of
from assay.graders.testing.inside.boundary.stands import Remote
from assay.graders.testing.inside.boundary.wire import WireError

_ENDING = ("_pytest", "pytest", "unittest", "pluggy", "hypothesis")
"""Where the exceptions are from that end or skip a test: the submission has none of them."""

_errors: dict[tuple[str, str], Any] = {}


def _attribute(self: Any, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return Remote.__getattr__(self, name)


def _told(self: Any, name: str) -> Any:
    """What an exception holds, read when a test first asks for it."""
    ref, told = ref_of(self), self.__dict__.get("_assay_told", {})
    if ref is None or name not in told:
        return _attribute(self, name)
    found = self.__dict__[name] = ref.home().taken(told.pop(name), ref, name)
    return found


class MirrorKind(type):
    """The class of the exceptions that stand for one class of the submission's."""

    __getattr__ = _attribute

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        ref = ref_of(cls)
        if ref is None:
            return super().__call__(*arguments, **named)
        return ref.home().call(ref, arguments, named)


def mirror_kind(ref: Ref, name: str, module: str, bases: list[Any]) -> Any:
    """The class that stands for an exception class of the submission."""
    made = known_classes(BaseException).get((module, name)) or _errors.get((module, name))
    if made is None:
        family = tuple(base for base in bases if issubclass(base, BaseException))
        space = {
            "__module__": module,
            "__qualname__": name,
            "__str__": _mirror_text,
            "__getattr__": _told,
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


def known_classes(root: Any) -> dict[tuple[str, str], Any]:
    """The subclasses of a class that are Python's and installed packages', by module and name."""
    found: dict[tuple[str, str], Any] = {}
    pending: list[Any] = [root]
    while pending:
        kind = pending.pop()
        pending += type.__subclasses__(kind)
        is_mirror = isinstance(kind, MirrorKind)
        if not (is_mirror or is_authors(kind) or kind.__module__.startswith(_ENDING)):
            found[kind.__module__, kind.__qualname__] = kind
    return found


# -- containers ------------------------------------------------------------------------------------

_WRITES = frozenset(
    "__setitem__ __delitem__ __iadd__ __imul__ __iand__ __ior__ __isub__ __ixor__ add append clear "
    "difference_update discard extend insert intersection_update pop popitem remove reverse "
    "setdefault sort symmetric_difference_update update".split()
)
_OF_CLASSES = frozenset(
    "__new__ __init__ __getattribute__ __class_getitem__ __doc__ fromkeys".split()
)
"""What is as it is in the built-in class."""


def _follows(kind: Any, name: str) -> Callable[..., Any]:
    """Make a method: what writes does so in the host, all else reads what is there now."""
    original = getattr(kind, name)

    def read(self: Any, *arguments: Any, **named: Any) -> Any:
        ref: Ref = self._assay
        talk: Any = ref.talk
        if self._assay_seen != talk.changes:
            content = exactly(kind, talk.content(ref))
            kind.clear(self)
            (kind.extend if kind is list else kind.update)(self, content)
            self._assay_seen = talk.changes
        return original(self, *arguments, **named)

    def write(self: Any, *arguments: Any, **named: Any) -> Any:
        ref: Ref = self._assay
        talk: Any = ref.talk
        node, *given = talk.call_of(ref, arguments, named, ref.trails)
        method = ["A", node, kind.__name__, name]  # whatever a subclass of the submission's has
        found = talk.taken(talk.request("call", method, *given), ref, "__iter__")
        self._assay_seen = -1
        return self if name.startswith("__i") else found

    return write if name in _WRITES else read


def _linked(kind: Any) -> Any:
    space: dict[str, Any] = {name: _follows(kind, name) for name in vars(kind).keys() - _OF_CLASSES}
    space.update(__hash__=None, __reduce_ex__=lambda self, _: (kind, (self.copy(),)))
    return type(kind.__name__, (kind,), space)


LINKED = {kind: _linked(kind) for kind in (list, dict, set)}


def exactly(base: type, content: Any) -> Any:
    """A content that is of this very class."""
    if type(content) is not base:
        raise WireError("the content of a value is of another kind")
    return content
