"""The global names that compiled code uses, and those that it sets.

Read off the byte code, because the compiler has already settled there what a name refers to, and
which annotations are evaluated at all. Standard library only: this file also runs in the sandbox.
"""

from __future__ import annotations

import dis
from types import CodeType

__all__ = ["global_stores", "global_uses"]

_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_OPTIMIZED = 1  # CO_OPTIMIZED: the code of a function, whose own names are no globals
_LAZY = "__annotate__"  # evaluated only if somebody asks for the annotations (Python 3.14)


def global_uses(code: CodeType) -> dict[str, int]:
    """The global or built-in names that code reads, each with the first line it is read on."""
    found: dict[str, int] = {}
    _read(code, found, own=frozenset())
    return found


def _read(code: CodeType, found: dict[str, int], own: frozenset[str]) -> None:
    for step in dis.get_instructions(code):
        if step.opname in _LOADS and step.argval not in own:
            line = (step.positions.lineno if step.positions else None) or code.co_firstlineno
            found[step.argval] = min(line, found.get(step.argval, line))
    for inner in _inner(code):
        is_class = not inner.co_flags & _OPTIMIZED
        _read(inner, found, frozenset(_stored(inner, "STORE_NAME")) if is_class else frozenset())


def global_stores(code: CodeType) -> set[str]:
    """The global names that a module's code sets: at its top level, or declared ``global``."""
    found = set(_stored(code, "STORE_NAME"))
    waiting = [code]
    while waiting:
        here = waiting.pop()
        found.update(_stored(here, "STORE_GLOBAL"))
        waiting.extend(_inner(here))
    return found


def _stored(code: CodeType, opname: str) -> list[str]:
    return [step.argval for step in dis.get_instructions(code) if step.opname == opname]


def _inner(code: CodeType) -> list[CodeType]:
    """The functions and classes that code makes; those of branches that never run are not there."""
    made = [step.argval for step in dis.get_instructions(code)]
    return [c for c in made if isinstance(c, CodeType) and c.co_name != _LAZY]
