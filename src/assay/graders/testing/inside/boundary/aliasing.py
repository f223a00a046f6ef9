"""What shows only where both sides have one object: a list that both change, and ``is``.

Containers cross as copies, which hides who has which. It matters to a test that looks again at what
it gave away, changes what it was given, or asks by ``is``. Which tests do so is learnt: while the
reference is proven, what the tests change is seen, and once everything that they have in their
hands is changed after each call, to see which then fail. In such tests containers are shared as in
one process, and a submission that changes what the reference leaves alone fails them.
"""

from __future__ import annotations

import ast
import functools
from typing import Any

from assay.graders.testing.inside.boundary import contract
from assay.graders.testing.inside.boundary.judge_state import state, tree_of
from assay.graders.testing.inside.boundary.wire import MUTABLE, refill

KEEPS, SCRAMBLES = "keeps:", "scrambles:"
_MOST, _LONGEST = 100, 10_000
"""Containers that are watched, the newest ones, and their items."""


class Held:
    """The containers that a running test gave away or was given, with what they held then."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[Any, Any]] = {}
        self._before: list[tuple[Any, Any]] = []

    def note(self, value: Any) -> bool:
        """Remember a container as it is now; whether it was another when it was seen before."""
        if type(value) not in MUTABLE or len(value) > _LONGEST:
            return False
        shown = _shown(value)
        before = self._seen.pop(id(value), (value, shown))
        self._seen[id(value)] = (value, shown)
        if len(self._seen) > _MOST:
            del self._seen[next(iter(self._seen))]
        return before[1] != shown

    def changed(self) -> list[Any]:
        """What the test itself has changed since."""
        return [value for value, _ in list(self._seen.values()) if self.note(value)]

    def scramble(self) -> None:
        """Change everything, as a submission could that has the same objects."""
        held = [value for value, _ in self._seen.values()]
        for value in held:
            self._before.append((value, value.copy()))
            _SCRAMBLED[type(value)](value)
            self.note(value)

    def forget(self) -> None:
        """When a test ends: what is the module's is again what it was."""
        for value, before in reversed(self._before):
            refill(value, before)
        self._before.clear()
        self._seen.clear()


def _shown(value: Any) -> Any:
    items = value.items() if type(value) is dict else value
    found = [(*map(id, one),) if type(value) is dict else id(one) for one in items]
    return sorted(found) if type(value) is set else found


def _turned(value: Any) -> None:
    """As by a sort in its place, which a test that sorts itself does not see."""
    before = value.copy()
    value.reverse()
    if value == before:
        value.append(value[0] if value else 0)


_SCRAMBLED: dict[type, Any] = {
    list: _turned,
    bytearray: _turned,
    dict: lambda value: value.update({"": 0}),
    set: lambda value: value.add(""),
}


held = Held()


def shares() -> bool:
    """Whether the running test would see who has which container."""
    return asks_identity() or (not state.learns and KEEPS in state.needs.get(state.test, ()))


def note(value: Any) -> None:
    """While the reference is proven: a test that changes what it has sees who else has it."""
    if state.learns and state.test and held.note(value):
        state.need(state.test, KEEPS)


def look() -> None:
    """See whether the test has changed what it has in its hands."""
    if state.learns and held.changed():
        state.need(state.test, KEEPS)


def scramble() -> None:
    """While it is proven so: the host has done something, and could have changed everything."""
    look()
    if state.learns and state.test and SCRAMBLES in state.needs.get("", frozenset()):
        held.scramble()


def end() -> None:
    """A test has ended."""
    look()
    held.forget()


def leave(trails: list[str], what: str) -> None:
    """A submission changes an argument, which the reference does not."""
    entry, why = f"{what}:{trails[0]}", f"{trails[0]} changed its argument"
    if KEEPS in state.needs.get(state.test, ()):
        raise contract.refused(entry, f"{why}, which the test looks at")
    state.hint(entry, why)


def meet(trail: str) -> None:
    """An object came that the test has already, where the reference gives another each time."""
    if asks_identity():
        why = f"{trail} gives an object that the test has already, and the test asks which it is"
        raise contract.refused(f"known:{trail}", why)


def asks_identity() -> bool:
    """Whether the running test, or a helper beside it, compares objects by ``is``."""
    name, asking = state.test.rpartition("::")[2], _that_ask(state.current)
    return bool(name) and (name in asking or not all(one.startswith("test") for one in asking))


@functools.cache
def _that_ask(file: str) -> frozenset[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    tree = tree_of(file) or ast.Module([], [])
    named = [(one.name, one) for one in ast.walk(tree) if isinstance(one, kinds)]
    # What is no function, such as a lambda that has a name, may be used by every test.
    others = [("", one) for one in tree.body if not isinstance(one, (*kinds, ast.ClassDef))]
    return frozenset(name for name, one in [*named, *others] if any(map(_is_asking, ast.walk(one))))


def _is_asking(node: ast.AST) -> bool:
    sides: list[ast.expr] = []
    if _name(node) in ("is_", "is_not"):
        return True
    if isinstance(node, ast.Call) and _name(node.func) in ("assertIs", "assertIsNot"):
        sides = node.args
    elif isinstance(node, ast.Call):
        return any(isinstance(one, ast.Name) and one.id == "id" for one in [node.func, *node.args])
    elif isinstance(node, ast.Compare) and {ast.Is, ast.IsNot} & {*map(type, node.ops)}:
        sides = [node.left, *node.comparators]
    return bool(sides) and not any(
        isinstance(one, ast.Constant)
        or _name(one) == "__class__"
        or (isinstance(one, ast.Call) and _name(one.func) == "type")
        for one in sides
    )


def _name(node: ast.AST) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))
