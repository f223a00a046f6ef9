"""Mirrors of exceptions.

An exception of the submission arrives as an instance of a mirror class with the same built-in
bases, so that ``pytest.raises(kit.Error)`` holds.
"""

from __future__ import annotations

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
            "__getattr__": _attribute,
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


def exactly(base: type, content: Any) -> Any:
    """A content that is of this very class."""
    if type(content) is not base:
        raise WireError("the content of a value is of another kind")
    return content
