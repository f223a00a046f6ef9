"""What a source file defines, and which of its functions still wait to be written.

The readers of languages (`assay.graders.stubs.python`, `assay.graders.stubs.treesitter`) turn a
file into `Code`; what follows from it is decided here, alike for all of them. In doubt
a function is written: honest work never fails by a guess over names or docstrings.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Literal, Protocol

from assay.frozen import frozen

__all__ = [
    "Body",
    "Classes",
    "Code",
    "Ending",
    "Function",
    "UnwrittenFunction",
    "body_with",
    "comment_says_todo",
    "faults",
    "gaps",
    "hollow",
    "is_for_subclasses",
    "says_todo",
    "stands",
    "written",
]

Body = Literal["real", "constant", "nothing", "empty", "raises", "todo", "declines"]
"""What a body comes to.

Work; one constant; ``return None`` in so many words; no statement that does anything; an exception;
a note that it is still to be done; an error that may be such a note, but says something else.
"""

Ending = Literal["real", "constant", "nothing", "raises", "todo", "left", "declines", "falls"]
"""How statements end: as a `Body` does, by an error that leaves the work to subclasses, or by
running into what follows them."""


def body_with(ending: Ending, *, is_method: bool) -> Body:
    """What a body with an ending comes to.

    Words about subclasses count for methods alone: elsewhere there are none, and errors speak of an
    abstract syntax tree or a derived key.
    """
    if ending == "left":
        return "raises" if is_method else "todo"
    return "empty" if ending == "falls" else ending


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


_FOR_SUBCLASSES = r"(?i)subclass|sub-class|overrid|abstract|derived|must implement|child class"


def says_todo(text: str) -> bool:
    """Whether a message says that something is still to be written."""
    return re.search(_TODO, text) is not None


def is_for_subclasses(text: str) -> bool:
    """Whether an error says that others have to override what raises it."""
    return re.search(_FOR_SUBCLASSES, text) is not None


@frozen(kw_only=True)
class Function:
    """One definition of a function or method."""

    name: str
    line: int
    body: Body
    inputs: bool = True
    fingerprint: str = ""
    owner: str = ""
    # Declared to be filled in by others, as an abstract method is.
    abstract: bool = False
    # Declared where an empty body has its use: nested, decorated, or in a class with bases.
    quiet: bool = False


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
class UnwrittenFunction:
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

    def files_with(self, word: str) -> Iterator[tuple[str, Code]]:
        """The readable files that use a word, with their paths."""
        ...


def gaps(code: Code) -> frozenset[str]:
    """The functions that a file leaves for somebody to write.

    Those that say so, and the empty ones of a file in which nothing is written.
    """
    nothing = not any(function.body == "real" for function in code.functions)
    return frozenset(
        f.name
        for f in code.functions
        if not f.abstract
        and (f.body in ("todo", "declines") or (f.body == "empty" and nothing and not f.quiet))
    )


def faults(code: Code, source: Code | None, classes: Classes) -> Iterator[UnwrittenFunction]:
    """The functions of a file that are not written.

    Where the source had a gap, no shape excuses what stands there now, but for what a subclass
    fills in. Elsewhere only a function that says so is a stub, and no method: it may be for
    subclasses.

    ``source``: The file as it was given, without any code where it is new; None where the source is
    unknown, so that the file is asked itself.
    """
    waiting = gaps(code if source is None else source)
    seen: set[str] = set()
    for function in code.functions:
        if function.name in seen:
            continue
        seen.add(function.name)
        why = [_why(each, classes, function.name in waiting) for each in code.named(function.name)]
        if all(why):
            yield UnwrittenFunction(function.name, function.line, why[0])
    for name in sorted(waiting - seen):
        if not stands(name, code, source or code, classes):
            yield UnwrittenFunction(name, 0, "was a stub and is gone")


def stands(name: str, code: Code, source: Code, classes: Classes) -> bool:
    """Whether a file has what it does not define: bound, or inherited.

    What a class inherits from outside of the tree, nobody can tell: a base that the source did not
    name is believed.
    """
    owner, _, method = name.rpartition(".")
    own = owner.rpartition(".")[2]
    if name in code.names or (owner in code.names and own not in code.bases):
        return True
    given = {base for bases in source.bases.values() for base in bases}
    waiting = [*code.bases.get(own, ())]
    for base in waiting:
        inherited = f"{base}.{method}"
        codes = [code, *(other for _, other in classes.files_with(base))]
        # A class that names itself, as `class Stack(stacks.Stack)`, means one from outside.
        homes = [each for each in codes if base not in each.bases.get(base, (base,))]
        if any(inherited in c.names or any(map(written, c.named(inherited))) for c in homes):
            return True
        waiting += {above for each in homes for above in each.bases[base]}.difference(waiting)
        known = getattr(builtins, base, None)
        theirs = getattr(known, method, None) is not getattr(object, method, None)
        if not homes and (theirs if known else base not in given):
            return True
    return False


_AT_A_GAP: dict[Body, str] = {
    "constant": "returns a constant where a stub was",
    "nothing": "returns a constant where a stub was",
    "raises": "only raises where a stub was",
    "empty": "has no body",
    "todo": "says that it is not implemented",
    "declines": "says that it is not implemented",
}


def _why(function: Function, classes: Classes, gap: bool) -> str:  # noqa: FBT001
    if not gap:
        is_stub = function.body == "todo" and not (function.abstract or function.owner)
        return _AT_A_GAP["todo"] if is_stub else ""
    if written(function) or _filled_in(function, classes):
        return ""
    return _AT_A_GAP[function.body]


def _filled_in(function: Function, classes: Classes) -> bool:
    """Whether some subclass has a real method (or attribute) of that name."""
    method = function.name.rpartition(".")[2]
    waiting, seen = [function.owner], {""}
    while waiting:
        owner = waiting.pop()
        if owner in seen:
            continue
        seen.add(owner)
        for _, code in classes.files_with(owner):
            for name, bases in code.bases.items():
                if owner not in bases:
                    continue
                if f"{name}.{method}" in code.names:
                    return True
                if any(written(f) for f in code.named(f"{name}.{method}")):
                    return True
                waiting.append(name)
    return False


def written(function: Function) -> bool:
    """Whether a function has a body of its own that could depend on what it is given."""
    return function.body == "real" or (function.body == "constant" and not function.inputs)


def hollow(code: Code) -> bool:
    """Whether a new file has functions, and not one that does anything with what it is given."""
    idle = any(
        f.body in ("constant", "nothing", "empty", "declines") and not (f.abstract or f.quiet)
        for f in code.functions
    )
    return idle and not any(map(written, code.functions))
