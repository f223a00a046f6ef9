"""What decides where the reference has objects, too: a yes that was told from a no.

Equality, order and membership are asked of the submission itself. The real question comes among
near misses: the same question about values that the test made, or could have made, one step from
each other. Each is asked in a fork of the host of its own, so that nothing remembers, counts or
compares the questions. The near misses follow from the contract's seed and the values alone: the
reference was asked the same, and a submission may say yes to no more of them than it did.
"""

from __future__ import annotations

import binascii
import json
import random
import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any

from assay.graders.testing.inside.boundary import contract
from assay.graders.testing.inside.boundary.judge_state import (
    Kind,
    forward,
    length_of,
    ref_of,
    space_of,
    state,
    the_ref,
)
from assay.graders.testing.inside.boundary.wire import CONTENTS, Plain, WireError

if TYPE_CHECKING:
    from collections.abc import Callable

_NEAR, _ALONE, _PROBED = 6, 8, 3
"""Near misses of what is expected; of one side where the other has none; of what is made."""
_TRIES = 40

_ORDERS = ("__lt__", "__le__", "__gt__", "__ge__")
_LETTERS, _DIGITS = "abcdefghijklmnopqrstuvwxyz", "0123456789"


def is_stand(value: Any) -> bool:
    """Whether a value stands for an object of the submission's."""
    return isinstance(type(value), Kind)


def _how(value: Any) -> str:
    return type(value)._assay_form["equal"] if is_stand(value) else ""


def _has_content(value: Any) -> bool:
    return is_stand(value) and type(value)._assay_base is not None


def content(value: Any) -> Any:
    """The copy of what an instance of a built-in type's subclass holds."""
    base: Any = type(value)._assay_base
    if base.__hash__ is not None:  # what can change is asked for
        return CONTENTS[base](value)
    ref = the_ref(value)
    found = ref.home().content(ref)
    return found if type(found) is base else base()


# -- equality, order, membership -------------------------------------------------------------------


def equal(one: Any, other: Any) -> Any:
    """Whether a stand-in equals something."""
    if one is other:
        return True
    if type(other) is contract.Inert:
        return other == one
    hows = (_how(one), _how(other))
    if "own" not in hows:
        if hows[1] == "" and _has_content(one):
            return content(one) == other
        plain = ("identity", "enum", "")
        if hows[0] in plain and hows[1] in plain and not _is_one_object(one, other):
            return NotImplemented if not _has_content(one) else content(one) == other
    return _decided("__eq__", one, other)


def _is_one_object(one: Any, other: Any) -> bool:
    if not is_stand(other):
        return False
    here, there = (object.__getattribute__(one, "__dict__").get("_assay") for one in (one, other))
    return here is not None and there is not None and here.number == there.number


def ordering(name: str) -> Callable[[Any, Any], Any]:
    """Make the method that compares by an order."""

    def order(self: Any, other: Any) -> Any:
        kind = type(self)
        if kind._assay_base is not None and name not in kind._assay_form["own"]:
            theirs = content(other) if _has_content(other) else other
            return getattr(kind._assay_base, name)(content(self), theirs)
        return _decided(name, self, other)

    return order


def contains(self: Any, item: Any) -> Any:
    """Whether a stand-in contains something."""
    kind = type(self)
    if kind._assay_base is not None and "__contains__" not in kind._assay_form["own"]:
        return item in content(self)
    return _decided("__contains__", self, item)


def _decided(name: str, one: Any, other: Any) -> Any:
    """The answer to a question, in which a yes was told from a no."""
    stands = [value for value in (one, other) if is_stand(value)]
    talk = the_ref(type(stands[0])).home() if ref_of(type(stands[0])) else the_ref(stands[0]).home()
    trails = [trail for value in stands for trail in contract.trails_of(talk.way_of(value))]
    nodes = [talk.express(one), talk.express(other)]
    is_trusted = any(type(value)._assay_label in state.allowed for value in stands)
    asked = (
        _Near([], 0, "")
        if is_trusted
        else _near_misses(talk, nodes, (one, other), f"{name} {trails[0]}")
    )
    said = ""
    pairs = [*asked.pairs[: asked.place], nodes, *asked.pairs[asked.place :]]
    answers = talk.questions([("compare", name, *pair) for pair in pairs])
    for number, answer in enumerate(answers):
        if number != asked.place:
            said += _bit(answer, is_free=asked.free[len(said)])
        elif answer is False:
            return False
        elif answer is not True:
            # It raises, or gives no truth: as any other operator.
            return forward(stands[0], name, other if stands[0] is one else one)
    if is_trusted:
        return True
    _check_again(talk, name, (one, other), nodes, trails)
    if name in _ORDERS:
        _check_order(talk, name, (one, other), nodes, trails)
    what = "equality" if name == "__eq__" else "an order" if name in _ORDERS else "what is in it"
    return _judged(_Yes(name, trails, said, asked.key), _told(stands[0], what), stands)


def _check_again(
    talk: Any, name: str, pair: tuple[Any, Any], nodes: list[Any], trails: list[str]
) -> None:
    """What was made before holds of the same, made again, where it does so in the reference.

    Else a class could tell what was made in a fork, as all near misses are.
    """
    for side in (0, 1):
        made = [*nodes]
        made[side] = talk.recipe(pair[side], nodes[side])
        if made[side] is None or made == nodes:
            continue
        entries = [f"again{side}:{one}" for one in _named(name, trails)]
        is_needed = not state.needs.get(state.test, frozenset()).isdisjoint(entries)
        if (state.learns or is_needed) and talk.question("compare", name, *made) is True:
            for entry in entries if state.learns else ():
                state.need(state.test, entry)
        elif is_needed:
            raise contract.refused(entries[0], f"{name} does not hold of what is made again")


def _check_order(
    talk: Any, name: str, pair: tuple[Any, Any], nodes: list[Any], trails: list[str]
) -> None:
    """An order holds whichever of the two was made first, and not both ways round."""
    label, what = _told(pair[0] if is_stand(pair[0]) else pair[1], "an order")
    made = [talk.recipe(value, node) for value, node in zip(pair, nodes)]
    if None not in made and talk.question("turned", name, *made) is not True:
        contract.require("turned", _named(name, trails), label, what)
    if talk.question("compare", name, *reversed(nodes)) is True:
        contract.require("both", _named(name, trails), label, f"{what}, both ways,")


def _told(value: Any, what: str) -> tuple[str, str]:
    return type(value)._assay_label, f"{what} of an object"


def _named(name: str, trails: list[str]) -> list[str]:
    return [f"{name}:{trail}" for trail in trails]


def _bit(answer: Any, *, is_free: bool) -> str:
    """What was said to a near miss: yes, no, or nothing that a submission could not say, too."""
    if answer is None and is_free:
        return "x"
    return "1" if answer is True else "0"


class _Yes:
    """A yes to a question, and what was said to its near misses.

    Attributes:
        entries: What the contract calls it, without a number.
        said: The answers, a letter each.
        exact: What the contract calls the answers to this very question.
    """

    def __init__(self, name: str, trails: list[str], said: str, key: str) -> None:
        named = _named(name, trails)
        self.named, self.said = named, said
        self.entries = tuple(f"said:{one}:" for one in named)
        self.exact = tuple(f"exact:{one}:{key}:" for one in named)
        self.is_order = name in _ORDERS


def _judged(yes: _Yes, told: tuple[str, str], stands: list[Any]) -> bool:
    """Hold the answers against those of the reference."""
    if not yes.said:
        contract.require("bare", yes.named, *told)
        return True
    count, asked = yes.said.count("1"), len(yes.said)
    if state.learns:
        count += yes.said.count("x")
        for entry in yes.entries:
            state.need(state.test, f"{entry}{count}")
        for entry in yes.exact:
            state.need(state.test, f"{entry}{yes.said}")
        return True
    limits = [int(one) for one in _answers(yes.entries)]
    if not limits and yes.named[0].startswith("__eq__") and any(map(_is_written_in_source, stands)):
        limits = [0]
    label, what = told
    if not limits:
        why = f"{what} was not asked for of the reference, and so only code of {label} would decide"
        raise contract.refused(yes.entries[0][:-1], why)
    theirs = _answers(yes.exact)
    is_alike = not theirs or any(_agree(one, yes.said, is_order=yes.is_order) for one in theirs)
    if count > max(limits) or not is_alike:
        why = f"{what} of {label} holds for {count} of {asked} near misses, unlike the reference's"
        raise contract.refused(yes.entries[0][:-1], why)
    return True


def _agree(theirs: str, said: str, *, is_order: bool) -> bool:
    """Whether a row of answers is the reference's, but for what one of them refuses.

    Who says no where the reference says yes is stricter, which is nobody's gain but in an order.
    """
    both = [one + other for one, other in zip(theirs, said) if "x" not in (one, other)]
    if not is_order:
        return "01" not in both
    return not {"01", "10"} & {*both} and 2 * len(both) >= len(theirs) - theirs.count("x")


def _answers(entries: tuple[str, ...]) -> list[str]:
    """What the reference said in comparisons like this one."""
    needed = state.needs.get(state.test, ()) if entries else ()
    return [one.rpartition(":")[2] for one in needed if one.startswith(entries)]


def _is_written_in_source(value: Any) -> bool:
    """Whether the source that the agent was given writes the equality of a class itself."""
    module, _, name = type(value)._assay_label.rpartition(".")
    found = _SOURCES.get(module)
    if found is None:
        found = _SOURCES[module] = frozenset(_with_equality(module))
    return name in found


_SOURCES: dict[str, frozenset[str]] = {}


def _with_equality(module: str) -> list[str]:
    import ast
    import os

    place = module.replace(".", os.sep)
    for base in ("", "src"):
        for file in (f"{place}.py", os.path.join(place, "__init__.py")):
            try:
                with open(os.path.join(state.root, base, file), encoding="utf-8") as source:
                    tree = ast.parse(source.read())
            except (OSError, ValueError, SyntaxError):
                continue
            return [
                one.name
                for one in ast.walk(tree)
                if isinstance(one, ast.ClassDef)
                and any(getattr(item, "name", "") == "__eq__" for item in one.body)
            ]
    return []


# -- near misses -----------------------------------------------------------------------------------


class _Near:
    """The same question with one of its sides changed.

    Attributes:
        pairs: The questions.
        free: Whether one is about what a function gave for other arguments, which it may refuse.
        place: Where among them the real one comes.
        key: Which question it is, the same in every run.
    """

    def __init__(self, asked: list[tuple[list[Any], bool]], place: int, key: str) -> None:
        self.pairs = [pair for pair, _ in asked]
        self.free = [is_free for _, is_free in asked]
        self.place, self.key = place, key


def _near_misses(talk: Any, nodes: list[Any], pair: tuple[Any, Any], text: str) -> _Near:
    recipes = [talk.recipe(*each) for each in zip(pair, nodes)]
    told, asked = (1, 0) if _is_made_by_test(pair[1]) or not _is_made_by_test(pair[0]) else (0, 1)
    shown = json.dumps([text, [_bare(recipes[side]) for side in (told, asked)]])
    change = _change_of(shown)
    found: list[tuple[list[Any], bool]] = []

    def add(side: int, node: Any, other: Any) -> None:
        is_free = not _is_made_by_test(pair[side])
        found.append(([node, other] if side == 0 else [other, node], is_free))

    # What the test says is expected comes in as many questions as each of its near misses does:
    # what knows all the questions does not know which of them is the real one.
    is_both = None not in recipes
    expected = [nodes[told], *change.path(recipes[told], _NEAR if is_both else _ALONE)]
    for node in expected[1:]:
        add(told, node, nodes[asked])
    change.draw.shuffle(expected)
    near = change.path(recipes[asked], len(expected) if is_both else _ALONE)
    for number, node in enumerate(near):
        add(asked, node, expected[number % len(expected)])
    change.draw.shuffle(found)
    key = f"{binascii.crc32(shown.encode()):08x}"
    return _Near(found, change.draw.randrange(len(found) + 1), key)


def probe(talk: Any, how: list[Any]) -> Any:
    """What an object holds that the test makes: asked among near misses; None if it raises."""
    node = ["N", *how]
    change = _change_of(f"probe {json.dumps(_bare(node))}")
    asked = change.path(node, _PROBED)
    place = change.draw.randrange(len(asked) + 1)
    asked.insert(place, node)
    return [*talk.questions([("probe", *one[1:]) for one in asked])][place]


def _change_of(text: str) -> _Change:
    return _Change(random.Random(f"{state.seed} {text}"), _constants())  # noqa: S311


def _is_made_by_test(value: Any) -> bool:
    """Whether the test made a value, and no function of the submission."""
    if not is_stand(value):
        return True
    recipe = space_of(value).get("_assay_recipe")
    return recipe is not None and recipe.way is not None


def _bare(node: Any) -> Any:
    """A value without the numbers of objects, which differ from run to run."""
    if type(node) is dict:
        return {name: _bare(one) for name, one in node.items()}
    if type(node) is not list:
        return node
    if node[:1] == ["R"]:
        return ["R"]
    return [_bare(one) for one in (node[:4] if node[:1] == ["N"] else node)]


class _Change:
    """Changes values by a step: to ones of the same type and look."""

    def __init__(self, draw: random.Random, constants: dict[type, list[Any]]) -> None:
        self.draw = draw
        self._constants = constants

    def path(self, node: Any, most: int) -> list[Any]:
        """Values that are one step from each other; the given one may be anywhere among them."""
        found: list[Any] = []
        seen = [json.dumps(node)]
        for end in (self.draw.randrange(most + 1), most):
            now = node
            for _ in range(_TRIES):
                now = self.of(now)
                if now is None or len(found) >= end:
                    break
                if (written := json.dumps(now)) not in seen:
                    seen.append(written)
                    found.append(now)
        return found

    def of(self, node: Any) -> Any:
        """A value one step from another; None where there is none."""
        kind = type(node)
        if kind is bool:
            return not node
        if kind in (int, float, str):
            return self._scalar(node, kind)
        if kind is not list or not node:
            return None
        tag, rest = node[0], node[1:]
        if tag == "N":
            return self._call(*rest[:3])
        if tag in ("l", "t", "s", "f", "q"):
            changed = self._one_of(rest[0])
            return None if changed is None and rest[0] else [tag, changed or [1]]
        if tag in ("d", "od", "dc", "dd"):
            return self._mapping(tag, *rest)
        if tag == "w":
            inner = self.of(rest[1])
            return None if inner is None else [tag, rest[0], inner]
        return self._plain(node) if tag in _STEPS else None

    def _scalar(self, value: Any, kind: type) -> Any:
        others = [one for one in self._constants.get(kind, ()) if self._is_alike(one, value)]
        if others and self.draw.random() < 0.5:
            return self.draw.choice(others)
        if kind is str:
            return self._text(value)
        step = self.draw.choice((-3, -2, -1, 1, 2, 3))
        if kind is int:
            tens = 10 if value and value % 10 == 0 else 1
            return value + step * tens
        return value + step * max(1.0, abs(value) / 8)

    def _is_alike(self, one: Any, value: Any) -> bool:
        if one == value:
            return False
        return type(one) is not str or (
            one.isalpha(), one.isdigit(), " " in one
        ) == (value.isalpha(), value.isdigit(), " " in value)  # fmt: skip

    def _text(self, value: str) -> str:
        places = [place for place, one in enumerate(value) if one.isalnum()]
        if not places:  # such as a format's marks, of which other ones would be malformed
            others = [one for one in self._constants.get(str, ()) if one != value]
            return self.draw.choice(others) if others else value + "x"
        place = self.draw.choice(places)
        old = value[place]
        letters = _DIGITS if old.isdigit() else _LETTERS.upper() if old.isupper() else _LETTERS
        new = self.draw.choice([one for one in letters if one != old])
        return value[:place] + new + value[place + 1 :]

    def _one_of(self, items: list[Any]) -> list[Any] | None:
        places = list(range(len(items)))
        self.draw.shuffle(places)
        for place in places:
            new = self.of(items[place])
            if new is not None:
                return [*items[:place], new, *items[place + 1 :]]
        return None

    def _mapping(self, tag: str, pairs: list[Any], *rest: Any) -> Any:
        values = self._one_of([value for _, value in pairs])
        if values is None:
            return None if pairs else [tag, [["x", 1]], *rest]
        return [tag, [[key, new] for (key, _), new in zip(pairs, values)], *rest]

    def _call(self, target: Any, arguments: list[Any], named: dict[str, Any]) -> Any:
        changed = self._one_of([*arguments, *named.values()])
        if changed is None:
            return None
        count = len(arguments)
        return ["N", target, changed[:count], dict(zip(named, changed[count:]))]

    def _plain(self, node: list[Any]) -> Any:
        step = self.draw.choice((-3, -2, -1, 1, 2, 3))
        try:
            return _PLAIN.encode(_STEPS[node[0]](_PLAIN.decode(node), step))
        except (WireError, ValueError, ArithmeticError):
            return None


def _days(value: Any, step: int) -> Any:
    from datetime import timedelta

    return value + timedelta(days=step)


def _add(value: Any, step: int) -> Any:
    return value + step


_PLAIN = Plain()
_STEPS: dict[str, Callable[[Any, int], Any]] = {
    **dict.fromkeys(("da", "dt", "td"), _days),
    **dict.fromkeys(("I", "c", "D", "F", "ip"), _add),
    **dict.fromkeys(("b", "B"), lambda value, _: value + b"x"),
    "r": lambda value, step: range(value.start, value.stop + step, value.step),
    "p": lambda value, step: value / str(abs(step)),
}
"""How values of other types are changed, by their tag on the wire."""


def _constants() -> dict[type, list[Any]]:
    """The words and numbers of the test module: near misses that look like them are natural."""
    if state.current not in _found_constants:
        module = next(
            (
                one
                for one in list(sys.modules.values())
                if getattr(one, "__file__", None) == state.current
            ),
            None,
        )
        found: dict[type, list[Any]] = {}
        pending = list(_codes(vars(module))) if module else []
        while pending:
            for one in pending.pop().co_consts:
                if hasattr(one, "co_consts"):
                    pending.append(one)
                for value in one if isinstance(one, tuple) else (one,):
                    if type(value) in (int, float, str) and value not in found.setdefault(
                        type(value), []
                    ):
                        found[type(value)].append(value)
        for values in found.values():
            values.sort()
        _found_constants[state.current] = found
    return _found_constants[state.current]


_found_constants: dict[str, dict[type, list[Any]]] = {}


def _codes(space: Any) -> list[Any]:
    """The code of a module's own functions and methods."""
    own = space.get("__name__")
    found: list[Any] = []
    for value in list(space.values()):
        if isinstance(value, type) and value.__module__ == own:
            found += [one for one in vars(value).values() if isinstance(one, FunctionType)]
        elif isinstance(value, FunctionType) and value.__module__ == own:
            found.append(value)
    return [one.__code__ for one in found]


# -- other operators -------------------------------------------------------------------------------


def arithmetic(name: str) -> Callable[..., Any]:
    """Make an operator of two values: the submission computes, the contract says of what kind."""

    def operate(self: Any, *others: Any) -> Any:
        kind = type(self)
        if kind._assay_base is not None and name not in kind._assay_form["own"]:
            plain = [content(one) if _has_content(one) else one for one in others]
            return getattr(kind._assay_base, name)(content(self), *plain)
        return forward(self, name, *others)

    return operate


def truth(value: Any) -> bool:
    """Whether a stand-in is true."""
    kind: Any = type(value)
    form = kind._assay_form
    if "__bool__" in form["own"]:
        return forward(value, "__bool__") is True
    if kind._assay_base is not None and "__len__" not in form["own"]:
        return bool(content(value))
    return "__len__" not in form["operators"] or length_of(value) > 0


def hash_of(value: Any) -> int:
    """The hash that goes with `equal`."""
    kind: Any = type(value)
    form = kind._assay_form
    if "__hash__" not in form["operators"] and form["equal"] == "own":
        raise TypeError(f"unhashable type: {kind.__name__!r}")
    if "__hash__" in form["own"] or form["equal"] == "own":
        talk = the_ref(kind).home() if ref_of(kind) else the_ref(value).home()
        way = talk.way_of(value)
        label = kind._assay_label
        contract.require(
            "op:__hash__", contract.trails_of(way), label, "a hash of an object is asked for"
        )
        found = talk.question("operate", talk.express(value), "__hash__", [])
        if type(found) is not int:
            raise TypeError(f"unhashable type: {kind.__name__!r}")
        return hash(found)
    if kind._assay_base is not None:
        return hash(content(value))
    # Two that stand for one object are one in a set, once it is asked whether they are equal.
    return object.__hash__(space_of(value).get("_assay_first", value))
