"""What a source file defines, and which of its functions still wait to be written.

The readers of languages (`assay.graders.stubs.python`, `assay.graders.stubs.treesitter`) turn a
file into `Code`; what follows from it is decided here, alike for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Literal, Protocol

from assay.frozen import frozen

__all__ = [
    "Body",
    "Classes",
    "Code",
    "Fault",
    "Function",
    "comment_says_todo",
    "faults",
    "hollow",
    "says_todo",
    "written",
]

Body = Literal["real", "constant", "nothing", "empty", "raises", "todo"]
"""What a body comes to.

Work; one constant; ``return None`` in so many words; no statement that does anything; an exception;
a note that it is still to be done.
"""

_TODO = (
    r"(?i)\b(?:todo|fixme|tbd|unimplemented|placeholder|coming soon|your code (?:goes )?here"
    r"|not\W{0,2}(?:yet\W{0,2})?(?:been\W{0,2})?implemented|implement (?:me|this)"
    r"|needs? (?:to be )?implement(?:ed|ing|ation))\b|notimplemented"
)

_TODO_COMMENT = (
    r"(?i)(?:\#|//|/\*|--).*\b(?:TODO|FIXME|your code (?:goes )?here|implement (?:me|this))\b"
)


def comment_says_todo(text: str) -> bool:
    """Whether a comment in some code says that something is still to be written there."""
    return re.search(_TODO_COMMENT, text) is not None


def says_todo(text: str) -> bool:
    """Whether a message says that something is still to be written."""
    return re.search(_TODO, text) is not None


@frozen(kw_only=True)
class Function:
    """One definition of a function or method."""

    name: str
    line: int
    body: Body
    inputs: bool = True
    fingerprint: str = ""
    owner: str = ""
    abstract: bool = False
    hook: bool = False
    template: bool = False

    @property
    def gap(self) -> bool:
        """Whether it was left for somebody to write, as far as its own declaration tells."""
        if self.abstract:
            return False
        return self.body == "todo" or (self.body == "empty" and not self.hook)


@frozen(kw_only=True)
class Code:
    """What a source file defines."""

    functions: tuple[Function, ...] = ()
    bases: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    # What else it binds to something of use: imports and assignments, qualified.
    names: frozenset[str] = frozenset()
    fingerprint: str = ""
    substance: bool = False

    def named(self, name: str) -> list[Function]:
        """The definitions of one qualified name: several where a condition chooses one."""
        return [function for function in self.functions if function.name == name]


@frozen
class Fault:
    """A function that is not written."""

    name: str
    line: int
    why: str

    def __str__(self) -> str:
        return (
            f"{self.name}, line {self.line}: {self.why}" if self.line else f"{self.name} {self.why}"
        )


class Classes(Protocol):
    """Looks for classes in the whole tree."""

    def files_with(self, word: str) -> Iterator[Code]:
        """The readable files that use a word."""
        ...


def faults(
    code: Code, source: Code | None, classes: Classes, *, touched: bool = True
) -> Iterator[Fault]:
    """The functions of a file that are not written.

    A shape that may be legitimate (an abstract method, a hook that does nothing) is excused where
    the source had it or where the function is new: never where it took the place of a stub.

    ``source``: The file as it was given; None where it is new or the source unknown.
    ``touched``: Whether the file was changed. In one that was not, only a stub that says so counts:
    an empty function is too often meant.
    """
    seen: set[str] = set()
    for function in code.functions:
        if function.name in seen:
            continue
        seen.add(function.name)
        before = source.named(function.name) if source else []
        new = source is not None and not before
        why = [
            ""
            if new and each.body == "todo" and _is_for_subclasses(each, classes)
            else _why(each, before, classes, touched=touched)
            for each in code.named(function.name)
        ]
        if all(why):
            yield Fault(function.name, function.line, why[0])
    if source is not None:
        yield from _gone(code, source, seen)


def _is_for_subclasses(function: Function, classes: Classes) -> bool:
    """Whether a new method is left to subclasses; of one that was given, nobody could tell."""
    owner = function.owner
    return bool(owner) and (
        function.template
        or any(
            owner in bases for code in classes.files_with(owner) for bases in code.bases.values()
        )
    )


def _why(function: Function, before: Sequence[Function], classes: Classes, *, touched: bool) -> str:
    if function.body == "real":
        return ""
    gap = any(old.gap for old in before)
    same = any(old.fingerprint == function.fingerprint for old in before)
    chosen = gap and not same
    if function.body in ("constant", "nothing"):
        idle = gap and (function.inputs or function.body == "nothing")
        return "returns a constant where a stub was" if idle else ""
    if function.body == "raises":
        return "only raises where a stub was" if gap and not _filled_in(function, classes) else ""
    if function.body == "empty" and not touched:
        return ""
    excused = function.abstract or (function.body == "empty" and _may_be_empty(function, classes))
    if (excused and not chosen) or _filled_in(function, classes):
        return ""
    return "has no body" if function.body == "empty" else "says that it is not implemented"


def _may_be_empty(function: Function, classes: Classes) -> bool:
    """A hook, unless what it overrides in the tree is itself waiting to be written."""
    if not function.hook:
        return False
    method = function.name.rpartition(".")[2]
    for base in _bases(function.owner, classes):
        for code in classes.files_with(base):
            for inherited in code.named(f"{base}.{method}"):
                if inherited.body in ("todo", "empty"):
                    return False
    return True


def _bases(owner: str, classes: Classes) -> tuple[str, ...]:
    if not owner:
        return ()
    for code in classes.files_with(owner):
        if owner in code.bases:
            return code.bases[owner]
    return ()


def _filled_in(function: Function, classes: Classes) -> bool:
    """Whether some subclass has a real method (or attribute) of that name."""
    method = function.name.rpartition(".")[2]
    waiting, seen = [function.owner], {""}
    while waiting:
        owner = waiting.pop()
        if owner in seen:
            continue
        seen.add(owner)
        for code in classes.files_with(owner):
            for name, bases in code.bases.items():
                if owner not in bases:
                    continue
                if f"{name}.{method}" in code.names:
                    return True
                if any(written(f) for f in code.named(f"{name}.{method}")):
                    return True
                waiting.append(name)
    return False


def _gone(code: Code, source: Code, seen: set[str]) -> Iterator[Fault]:
    for old in source.functions:
        private = old.name.rpartition(".")[2].startswith("_")
        if old.gap and not private and old.name not in seen and old.name not in code.names:
            seen.add(old.name)
            yield Fault(old.name, 0, "was a stub and is gone")


def written(function: Function) -> bool:
    """Whether a function has a body of its own that could depend on what it is given."""
    return function.body == "real" or (function.body == "constant" and not function.inputs)


def hollow(code: Code) -> bool:
    """Whether a new file has functions, and not one that does anything with what it is given."""
    counted = [f for f in code.functions if not (f.abstract or f.hook)]
    constant = any(f.body in ("constant", "nothing") for f in counted)
    return constant and not any(written(f) for f in counted)
