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
from assay.graders.testing.inside.boundary.wire import LONGEST, MOST, MUTABLE, Plain, refill

KEEPS, SCRAMBLES = "keeps:", "scrambles:"


def shares() -> bool:
    """Whether what runs would see who has which container."""
    if not state.test or asks_identity():
        return True
    return not scrambles() if state.learns else KEEPS in state.needs.get(state.test, ())


in_hand: dict[int, Any] = {}  # what the running test holds, by where it lies
_before: list[tuple[Any, Any]] = []


def scrambles() -> bool:
    """Whether it is learnt which tests fail when everything that they hold is changed."""
    return state.learns and SCRAMBLES in state.needs.get("", frozenset())


def note(value: Any) -> None:
    """The running test gives a value away, or is given it."""
    if scrambles() and state.test and type(value) in MUTABLE and len(value) <= LONGEST:
        in_hand[id(value)] = value


def scramble(talk: Plain) -> None:
    """Change everything, as a submission could that has the same objects."""
    for value in [*in_hand.values()][-MOST:]:
        _before.append((value, value.copy()))
        if isinstance(value, dict):
            value[""] = 1
        elif isinstance(value, set):
            value.add("")
        else:
            _turn(value)
        if (number := talk.lent_as.get(id(value))) is not None:
            talk.followed[number] = talk.content_node(value)  # which it is not told


def _turn(value: Any) -> None:
    """As by a sort in its place, which a test that sorts itself does not see."""
    before = value.copy()
    value.reverse()
    if value == before:
        value.append(value[0] if value else 0)


def end() -> None:
    """A test has ended: what is the module's is again what it was."""
    for value, before in reversed(_before):
        refill(value, before)
    _before.clear()
    in_hand.clear()


def may_change(trails: list[str]) -> bool:
    """Whether an argument is changed, as the reference does; a test may look at it all the same."""
    entry, why = f"changes:{trails[0]}", f"{trails[0]} changed its argument"
    is_needed = contract.may("changes", trails)
    if not is_needed and KEEPS in state.needs.get(state.test, ()):
        raise contract.refused(entry, f"{why}, which the test looks at")
    if not is_needed:
        state.hints.setdefault(entry, why)
    return is_needed


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
