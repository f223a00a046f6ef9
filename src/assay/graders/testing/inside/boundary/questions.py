"""What decides where the reference has objects, too: a yes that was told from a no.

Equality, order and membership are asked of the submission itself. The real question comes among
near misses: the same question about values that the test made, or could have made, one step from
each other. Each is asked in a fork of the host of its own, so that nothing remembers, counts or
compares the questions. The near misses follow from the contract's seed and the values alone: the
reference was asked the same, and a submission may say yes to no more of them than it did.
"""

from __future__ import annotations

import ast
import binascii
import functools
import json
import os
import random
import re
from collections.abc import Callable
from typing import Any

from assay.graders.testing.inside.boundary import contract
from assay.graders.testing.inside.boundary.judge_state import (
    StandInType,
    forward,
    ref_of,
    space_of,
    state,
    the_ref,
    tree_of,
)
from assay.graders.testing.inside.boundary.wire import CONTENTS, Plain, WireError, changed, library

_NEAR = 6
"""Near misses of a value."""
_TRIES = 40

_ORDERS = ("__lt__", "__le__", "__gt__", "__ge__")
DECIDED = (*_ORDERS, "__contains__")
_TURNED = {"__gt__": "__lt__", "__ge__": "__le__"}
"""Orders that are asked as those of the two the other way round, whichever a class defines."""
_TYPES = ("int", "str", "float", "bool", "bytes", "list", "dict", "set", "tuple", "object")
_LETTERS, _DIGITS = "abcdefghijklmnopqrstuvwxyz", "0123456789"


def is_stand(value: Any) -> bool:
    """Whether a value stands for an object of the submission's."""
    return isinstance(type(value), StandInType)


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


def equal(one: Any, other: Any) -> Any:
    """Whether a stand-in equals something."""
    if one is other:
        return True
    if type(other) is contract.Inert:
        return other == one
    hows = {_how(one), _how(other)}
    is_plain = hows <= {"identity", "enum", ""} and not _is_one_object(one, other)
    if _has_content(one) and (is_plain or ("own" not in hows and _how(other) == "")):
        return content(one) == other
    if is_plain:
        return NotImplemented
    return _decided(one, "__eq__", other)


def _is_one_object(one: Any, other: Any) -> bool:
    found = map(space_of, filter(is_stand, (one, other)))
    refs: list[Any] = [space.get("_assay") for space in found]
    return len(refs) == 2 and None not in refs and refs[0].number == refs[1].number


def operator(name: str) -> Callable[..., Any]:
    """Make an operator of two values: an order or membership is decided, all else is forwarded."""
    ask = _decided if name in DECIDED else forward

    def operate(self: Any, *others: Any) -> Any:
        kind = type(self)
        if kind._assay_base is None or name in kind._assay_form["own"]:
            return ask(self, name, *others)
        if name != "__contains__":
            others = tuple(content(one) if _has_content(one) else one for one in others)
        return getattr(kind._assay_base, name)(content(self), *others)

    return operate


def _decided(one: Any, name: str, other: Any) -> Any:
    """The answer to a question, in which a yes was told from a no."""
    asked = _Question(name, (one, other))
    is_trusted = any(type(value)._assay_label in state.allowed for value in asked.stands)
    answer = asked.ask(*(([], 0) if is_trusted else asked.near_misses()))
    if type(answer) is not bool:  # it raises, or gives no truth: as any other operator
        return forward(one, name, other)
    if answer and not is_trusted:
        asked.check_again()
        if name in _ORDERS:
            asked.check_order()
        asked.check_near()
    return answer


class _Question:
    """A comparison of two values, of which at least one stands for the submission's."""

    def __init__(self, name: str, pair: tuple[Any, Any]) -> None:
        self.name, self.pair, self.put = name, pair, ("compare", name)
        self.put_turned = ("turned", name)  # the same, where the second is made first
        if name in _TURNED:
            self.name, self.pair = _TURNED[name], pair[::-1]
            self.put, self.put_turned = self.put_turned, self.put
        pair, name = self.pair, self.name
        self.stands = [value for value in pair if is_stand(value)]
        first = self.stands[0]
        self.talk = (the_ref(type(first)) if ref_of(type(first)) else the_ref(first)).home()
        ways = [self.talk.way_of(value) for value in self.stands]
        # What the contract calls it.
        self.named = [f"{name}:{trail}" for way in ways for trail in contract.trails_of(way)]
        self.nodes = [self.talk.express(value) for value in pair]
        self.recipes = [self.talk.recipe(*each) for each in zip(pair, self.nodes)]
        # What was said to the near misses, a letter each: yes, no, or x for nothing that a
        # submission could not say, too, such as that a function takes no other arguments.
        self.said = ""
        self.key = ""  # which question it is, the same in every run
        self.label: str = type(first)._assay_label
        self.told = _TOLD.get(name, "an order of an object")

    def near_misses(self) -> tuple[list[tuple[list[Any], bool]], int]:
        """The same question with a side changed, and whether it may be refused; and its place."""
        made = [_is_made_by_test(value) for value in self.pair]
        told, asked = (1, 0) if made[1] or not made[0] else (0, 1)
        text = [self.named[0].replace(":", " ", 1), [_bare(self.recipes[n]) for n in (told, asked)]]
        draw = _draw(json.dumps(text))
        self.key = f"{binascii.crc32(json.dumps(text).encode()):08x}"
        # What the test says is expected comes in as many questions as each of its near misses does:
        # what knows all the questions does not know which of them is the real one.
        expected = _near(self.recipes[told])
        found = [(self._with(told, node), not made[told]) for node in expected]
        expected.append(self.nodes[told])
        draw.shuffle(expected)
        for number, node in enumerate(_near(self.recipes[asked])):
            pair = self._with(asked, node, expected[number % len(expected)])
            found.append((pair, not made[asked]))
        draw.shuffle(found)
        return found, draw.randrange(len(found) + 1)

    def _with(self, side: int, node: Any, other: Any = None) -> list[Any]:
        other = self.nodes[1 - side] if other is None else other
        return [node, other] if side == 0 else [other, node]

    def ask(self, near: list[tuple[list[Any], bool]], place: int) -> Any:
        """What is said to the question at its place among others; what comes behind a no is not."""
        questions = [*near[:place], (self.nodes, False), *near[place:]]
        asked = self.talk.questions([(*self.put, *pair) for pair, _ in questions])
        real = None
        for number, (answer, (_, is_free)) in enumerate(zip(asked, questions)):
            if number != place:
                self.said += "x" if answer is None and is_free else "1" if answer is True else "0"
            elif (real := answer) is not True:
                break
        return real

    def _is_true(self, nodes: list[Any], put: tuple[str, str] | None = None) -> bool:
        return self.talk.question(*(put or self.put), *nodes) is True

    def check_again(self) -> None:
        """What was made before holds of the same, made again, where it does so in the reference.

        Else a class could tell what was made in a fork, as all near misses are.
        """
        for side, recipe in enumerate(self.recipes):
            if recipe is None or recipe == self.nodes[side]:
                continue
            what, again = f"again{side}", self._with(side, recipe)
            # What was changed is asked otherwise.
            asked = [f"{one}:{self.key}" for one in self.named]
            if state.learns:
                if self._is_true(again):
                    contract.may(what, asked)
            elif contract.may(what, asked) and not self._is_true(again):
                why = f"{self.name} does not hold of what is made again"
                raise contract.refused(f"{what}:{self.named[0]}", why)

    def check_order(self) -> None:
        """An order holds whichever of the two was made first, and not both ways round."""
        if None not in self.recipes and not self._is_true(self.recipes[::-1], self.put_turned):
            contract.require("turned", self.named, self.label, self.told)
        if self._is_true(self.nodes[::-1]):
            contract.require("both", self.named, self.label, f"{self.told}, both ways,")

    def check_near(self) -> None:
        """What was said to the near misses is what the reference said."""
        if not self.said:
            if not self._is_among_items():
                contract.require("bare", self.named, self.label, self.told)
            return
        count = self.said.count("1")
        if state.learns:
            most = count + self.said.count("x")
            contract.may("said", [f"{one}:{most}" for one in self.named])
            contract.may("exact", [f"{one}:{self.key}:{self.said}" for one in self.named])
            return
        said = contract.noted([f"said:{one}:" for one in self.named], state.test)
        limits = [int(one) for one in said]
        labels = [type(one)._assay_label for one in self.stands]
        if not limits and self.name == "__eq__" and any(map(_is_written_in_source, labels)):
            limits = [0]
        if not limits:
            if self._is_among_items():
                return
            why = f"{self.told} was not asked for of the reference"
            contract.require("said", self.named, self.label, why)
        theirs = contract.noted([f"exact:{one}:{self.key}:" for one in self.named], state.test)
        is_alike = not theirs or any(map(self._agrees, theirs))
        if count > max(limits) or not is_alike:
            why = f"holds for {count} of {len(self.said)} near misses, unlike the reference's"
            raise contract.refused(f"said:{self.named[0]}", f"{self.told} of {self.label} {why}")

    def _is_among_items(self) -> bool:
        """Whether the judge finds a value among the items, as where no class looks itself."""
        held, item = self.pair
        if state.learns or self.name != "__contains__" or not is_stand(held):
            return False
        if {"__iter__", "__getitem__"}.isdisjoint(type(held)._assay_form["operators"]):
            return False
        return any(one is item or one == item for one in held)

    def _agrees(self, theirs: str) -> bool:
        """Whether the answers are the reference's, but for what one of them refuses."""
        both = [one + other for one, other in zip(theirs, self.said) if "x" not in (one, other)]
        if self.name not in _ORDERS:  # who says no where the reference says yes gains nothing
            return "01" not in both
        return not {"01", "10"} & {*both} and 2 * len(both) >= len(theirs) - theirs.count("x")


_TOLD = {"__eq__": "equality of an object", "__contains__": "what is in it of an object"}


@functools.cache
def _is_written_in_source(label: str) -> bool:
    """Whether the source that the agent was given writes the equality of a class itself."""
    module, _, name = label.rpartition(".")
    places = [os.path.join(state.root, base, *module.split(".")) for base in ("", "src")]
    files = [file for one in places for file in (f"{one}.py", os.path.join(one, "__init__.py"))]
    tree = next(filter(None, map(tree_of, files)), ast.Pass())
    classes = [one for one in ast.walk(tree) if isinstance(one, ast.ClassDef)]
    found = [item for one in classes if one.name == name for item in one.body]
    return any(getattr(item, "name", "") == "__eq__" for item in found)


# -- near misses -----------------------------------------------------------------------------------


def _near(recipe: Any) -> list[Any]:
    """The near misses of a value: always the same, so that who sees them twice knows no more."""
    return _Change(json.dumps(_bare(recipe))).path(recipe)


def _draw(text: str) -> random.Random:
    return random.Random(f"{state.seed} {text}")  # noqa: S311


def among(talk: Any, node: Any, op: str, *parts: Any) -> Any:
    """What is said of a value that is asked about among its near misses; None if it raises."""
    asked = _near(node)
    place = _draw(f"{op} {json.dumps(_bare(node))}").randrange(len(asked) + 1)
    asked.insert(place, node)
    return [*talk.questions([(op, one, *parts) for one in asked])][place]


def _is_made_by_test(value: Any) -> bool:
    """Whether the test made a value, and no function of the submission."""
    if not is_stand(value):
        return True
    recipe = space_of(value).get("_assay_recipe")
    return recipe is not None and recipe.way is not None


def _bare(node: Any) -> Any:
    """A value without the numbers of objects, which differ from run to run."""

    def bare(part: list[Any]) -> Any:
        if part[0] == "N" and len(part) > 4:
            return _bare(part[:4])
        if part[0] == "V":
            return _bare(part[2])
        return ["R"] if part[0] == "R" else None

    return changed(node, bare)


class _Change:
    """Changes values by a step: to ones of the same type and look."""

    def __init__(self, text: str) -> None:
        self.draw, self._constants = _draw(text), _constants(state.current)

    def path(self, node: Any) -> list[Any]:
        """Values that are one step from each other; the given one may be anywhere among them."""
        found: list[Any] = []
        seen = [json.dumps(node)]
        for end in (self.draw.randrange(_NEAR + 1), _NEAR):
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
        if kind in (int, float, str):
            return self._scalar(node, kind)
        if kind is not list or not node:
            return not node if kind is bool else None
        tag, *rest = node
        if tag == "N":
            target, values, named = rest[:3]
            new, count = self._one_of([*values, *named.values()]), len(values)
            return new and [tag, target, new[:count], dict(zip(named, new[count:]))]
        if tag == "S" and rest[0] == "builtins":  # such as the type of a column
            return ["S", "builtins", self.draw.choice([one for one in _TYPES if one != rest[1]])]
        if tag in _ITEMS:
            new = self._one_of(rest[0])
            return None if new is None and rest[0] else [tag, new or [1]]
        if tag in _PAIRS:
            keys, values = rest[0], self.of(rest[1])
            return values and [tag, keys if keys[1] else ["l", ["x"]], values, *rest[2:]]
        if tag == "V":
            return self.of(rest[1])
        if tag.startswith("w:") or tag in _WRAPPED:
            new = self.of(rest[0])
            return None if new is None else [tag, new, *rest[1:]]
        try:
            step = _STEPS[tag.partition(":")[0]]
            return _PLAIN.encode(step(_PLAIN.decode(node), self.draw.choice(_SIZES)))
        except (WireError, ValueError, ArithmeticError, KeyError):
            return None

    def _scalar(self, value: Any, kind: type) -> Any:
        others = [one for one in self._constants.get(kind, ()) if one != value]
        alike = [one for one in others if kind is not str or _look(one) == _look(value)]
        if alike and self.draw.random() < 0.5:
            return self.draw.choice(alike)
        if kind is not str:
            tens = 10 if value and value % 10 == 0 else 1
            if kind is int:
                return value + self.draw.choice(_SIZES) * tens
            # As many digits behind the point: 0.25 is a chance, and so are its near misses.
            size = 10 ** -min(len(f"{value!r}".partition(".")[2]), 9)
            step = self.draw.choice(_SIZES) * size * max(1, int(abs(value) / size) // 8)
            return round(value + step, 9)
        places = [place for place, one in enumerate(value) if one.isalnum()]
        digits = [place for place in places if value[place].isdigit()]
        if digits and self.draw.random() < 0.9:  # another amount is as likely to be right
            places = digits
        if not places:  # such as a format's marks, of which other ones would be malformed
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


def _look(text: str) -> object:
    """What two texts have in common that could stand for each other: `EUR 3.75` and `EUR 10.05`."""
    bare = re.sub(r"\d+", "0", text)
    return bare if "0" in bare else (text.isalpha(), " " in text)


def _later(value: Any, step: int) -> Any:
    """Another date or time, of the same roundness."""
    date, datetime, timedelta = (_dates[one] for one in ("date", "datetime", "timedelta"))
    if isinstance(value, timedelta):
        units = (86_400, 3_600, 60, 1, 1e-6)
        unit = next(one for one in units if not value % timedelta(seconds=one))
        return value + timedelta(seconds=step * unit)
    if isinstance(value, date):
        return value + timedelta(days=step)
    by = timedelta(seconds=step) if value.second else timedelta(minutes=5 * step)
    return (datetime.combine(date(2000, 1, 1), value) + by).timetz()


def _other_bytes(value: Any, step: int) -> Any:
    place = abs(step) % max(len(value), 1)
    letter = (value[place] ^ abs(step)) if value else 65
    return value[:place] + bytes([letter]) + value[place + 1 :]


def _other_array(value: Any, step: int) -> Any:
    new = value.copy()
    if new.size:
        new.flat[abs(step) % new.size] += new.dtype.type(abs(step))
    return new


_PLAIN = Plain()
_dates = library("datetime")
_SIZES = (-3, -2, -1, 1, 2, 3)
_ITEMS, _PAIRS, _WRAPPED = ("l", "t", "s", "f"), ("d", "od", "dc", "dd"), ("p", "q")
_STEPS: dict[str, Callable[[Any, int], Any]] = {
    **dict.fromkeys(("da", "dt", "td", "tm"), _later),
    **dict.fromkeys(("I", "c", "D", "F", "ip"), lambda value, step: value + step),
    **dict.fromkeys(("b", "B"), _other_bytes),
    "na": _other_array,
    "r": lambda value, step: range(value.start, value.stop + step, value.step),
    "u": lambda value, step: type(value)(int=value.int ^ 7 << abs(step) * 16),
}
"""How values of other types are changed, by their tag on the wire."""


@functools.cache
def _constants(file: str) -> dict[type, list[Any]]:
    """The words and numbers of a test module: near misses that look like them are natural."""
    found: dict[type, set[Any]] = {int: set(), float: set(), str: set()}
    for one in ast.walk(tree_of(file) or ast.Pass()):
        if isinstance(one, ast.Constant) and type(one.value) in found:
            found[type(one.value)].add(one.value)
    return {kind: sorted(values) for kind, values in found.items()}


def truth(value: Any) -> bool:
    """Whether a stand-in is true."""
    kind: Any = type(value)
    form = kind._assay_form
    if state.learns and (ref := ref_of(value)):  # whatever answers: a length, or that it is there
        contract.may("op:__bool__", contract.trails_of(ref))
    if "__bool__" in form["own"]:
        return forward(value, "__bool__") is True
    if kind._assay_base is not None and "__len__" not in form["own"]:
        return bool(content(value))
    return "__len__" not in form["operators"] or forward(value, "__len__") > 0


def hash_of(value: Any) -> int:
    """The hash that goes with `equal`."""
    kind: Any = type(value)
    form = kind._assay_form
    if state.learns and (ref := ref_of(value)):  # also where it is by which object it is
        contract.may("op:__hash__", contract.trails_of(ref))
    if "__hash__" in form["own"] or form["equal"] == "own":
        found = None
        if "__hash__" in form["operators"]:
            talk = (the_ref(kind) if ref_of(kind) else the_ref(value)).home()
            why, trails = "a hash of an object is asked for", contract.trails_of(talk.way_of(value))
            contract.require("op:__hash__", trails, kind._assay_label, why)
            found = among(talk, talk.express(value), "operate", "__hash__", [])
        if type(found) is not int:
            raise TypeError(f"unhashable type: {kind.__name__!r}")
        return hash(found)
    if kind._assay_base is not None:
        return hash(content(value))
    # Two that stand for one object are one in a set, once it is asked whether they are equal.
    return object.__hash__(space_of(value).get("_assay_first", value))
