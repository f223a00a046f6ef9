"""How objects of the submission came to be, and what a test makes of plain values.

The object that a test expects would tell the submission what is expected. So an object that a test
makes of plain values stays unmade: it is written as the call that makes it, for a fork of the host
that is asked about it, and is made only when it is used for more than a comparison.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from assay.graders.testing.inside.boundary import aliasing, contract, questions
from assay.graders.testing.inside.boundary.judge_state import (
    Ref,
    StandInType,
    barred,
    space_of,
    state,
    the_ref,
)
from assay.graders.testing.inside.boundary.mirrors import exactly
from assay.graders.testing.inside.boundary.stands import IMMUTABLE, where
from assay.graders.testing.inside.boundary.wire import MUTABLE, changed

if TYPE_CHECKING:
    from assay.graders.testing.inside.boundary.judge_side import JudgeSide

_OF_TESTS = frozenset(["H", "E"])  # which may be asked; and errors of theirs
_OBJECTS = frozenset(["o", "k", "e", "co", "m", "L"])  # of the submission


class Recipe:
    """How an object came to be."""

    def __init__(self, how: list[Any], way: Ref | None = None) -> None:
        # The call, as the host is told; objects of the tests may be others when asked again.
        self.how = None if _has(["N", *how], _OF_TESTS) else how
        self.way = way  # to what a test makes; None for what a function of the submission gave
        self.is_asked = False  # whether the host, or a fork of it, was told
        self._line = _line() if way else None

    def make(self, value: Any) -> None:
        """Have the host make what the test uses now."""
        way: Any = self.way
        talk: JudgeSide = way.talk
        how = _made(talk, self.how or [])
        self.is_asked = True
        try:
            answer = talk.request("call", *how, *where(), trails=way.trails)
        except BaseException as error:
            if self._line == _line():
                raise  # as if it had been made at once
            raise barred(f"{way.trails[0]} raised {type(error).__name__}") from error
        answer = answer[1] if type(answer) is list and answer[:1] == ["X"] else answer
        if type(answer) is not list or answer[0] != "o" or answer[1] in talk.known:
            raise barred(f"{way.trails[0]} did not make a new object")
        talk.reference(answer[2])
        talk.known[answer[1]] = value
        way.number = answer[1]
        space_of(value)["_assay"] = way


def recipe_of(value: Any) -> Recipe | None:
    """How something came to be, as far as that is known."""
    return space_of(value).get("_assay_recipe") if isinstance(type(value), StandInType) else None


def unmade(value: Any) -> Recipe | None:
    """How an object is made that a fork makes for itself; None for anything else."""
    recipe = recipe_of(value)
    if recipe is None or recipe.how is None:
        return None
    is_left_to_fork = state.learns and recipe.way is not None  # as it is for a submission
    return recipe if is_left_to_fork or "_assay" not in space_of(value) else None


def construct(talk: JudgeSide, cls: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Make an object of a class for a test, or leave it unmade."""
    ref, way = the_ref(cls), Ref(talk, 0)
    trails = way.trails = contract.step(contract.trails_of(ref), contract.CALL)
    with talk.doing.but(expresses=True):
        recipe = Recipe(talk.call_of(ref, arguments, named, trails), way)
    if not state.learns:
        made = _later(talk, cls, recipe, {**dict(enumerate(arguments)), **named})
        return talk.call(ref, arguments, named) if made is None else made
    before = len(talk.known)
    try:
        made = talk.call(ref, arguments, named)
    except BaseException:
        contract.may("raises", trails)
        raise
    if isinstance(type(made), StandInType):
        space_of(made)["_assay_recipe"] = recipe
        if "_assay_shadowing" in space_of(made):  # of which a fork tells nothing
            contract.may("told", trails)
    is_member = cls._assay_form["equal"] == "enum"  # which another test may have asked for first
    if is_member or type(made) is not cls or len(talk.known) == before:
        contract.may("told", trails)  # as an enumeration finds a member
    return made


def _later(talk: JudgeSide, cls: Any, recipe: Recipe, given: dict[Any, Any]) -> Any:
    """An object of plain values that is not made yet; None for one to be made at once."""
    trails = recipe.way.trails if recipe.way else []
    is_of_tests = "_assay_tested" in vars(cls)  # its methods are the test's, and called at once
    if not given or recipe.how is None or is_of_tests:
        return None
    is_class = contract.classes_at(contract.trails_of(the_ref(cls)))
    if not is_class and not contract.may("object", trails):
        return None  # a function in the reference, which gives values
    if aliasing.shares() and any(type(one) in MUTABLE for one in given.values()):
        return None
    if contract.may("eager", [""]) or contract.may("told", trails):
        return None
    base: Any = cls._assay_base or object
    held: list[Any] = []
    if base in IMMUTABLE or contract.may("raises", trails):
        content = questions.among(talk, ["N", *recipe.how], "probe")
        if content is None:  # it raises
            return None
        if base in IMMUTABLE:
            held.append(exactly(base, _held(talk, content, given, trails)))
    made = base.__new__(cls, *held)
    space_of(made)["_assay_recipe"] = recipe
    if state.test:
        state.unmade.append(recipe)
    return made


def _held(talk: JudgeSide, content: Any, given: dict[Any, Any], trails: list[str]) -> Any:
    """What an object holds, told by a fork; the numbers of its objects mean nothing here."""
    if type(content) is list and content[:1] == ["G"]:  # a tuple of what it was given, and values
        return tuple(
            given[one[1]] if one[:1] == ["A"] else _held(talk, one[1], {}, trails)
            for one in content[1]
        )
    if _has(content, _OBJECTS):
        label = trails[0]
        raise contract.refused(f"told:{label}", f"{label} holds an object that it made itself")
    return talk.read(content, trails, only_values=True, looks=False)


def check_unmade() -> None:
    """What a test made and did not use must be possible to make, too."""
    for recipe in state.unmade:
        talk, how = recipe.way.talk, ["N", *recipe.how]
        if not recipe.is_asked and not talk.dead and talk.question("probe", how) is None:
            barred(f"{recipe.way.trails[0]} could not be made")
    state.unmade.clear()


def _line() -> tuple[str, int]:
    """The line of the tests that runs."""
    frame = _frame()
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def place() -> tuple[Any, int, int]:
    """Which of the places in the tests runs."""
    frame = _frame()
    return (None, 0, 0) if frame is None else (frame.f_code, frame.f_lineno, frame.f_lasti)


def is_one_place(one: tuple[Any, int, int], other: tuple[Any, int, int]) -> bool:
    """Whether two places are one in the source, where a line may have several."""
    if one[:2] != other[:2] or not hasattr(one[0], "co_positions"):
        return one[:2] == other[:2]
    positions = [*one[0].co_positions()]  # the condition of a loop is compiled twice
    return positions[one[2] // 2] == positions[other[2] // 2]


def _frame() -> Any:
    frame: Any = sys._getframe(2)
    while frame is not None and not state.is_test_code(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _has(node: list[Any], tags: frozenset[str]) -> bool:
    """Whether something written has a part of some kinds in it."""
    found: list[str] = []
    changed(node, lambda part: found.append(part[0]))
    return not tags.isdisjoint(found)


def _made(talk: JudgeSide, how: list[Any]) -> list[Any]:
    """A call in which the objects that were not made yet are."""

    def make(part: list[Any]) -> Any:
        is_unmade = part[0] == "N" and len(part) > 4  # it has a number, too
        return the_ref(talk.unmade[part[4]]).node() if is_unmade else None

    call: list[Any] = changed(["N", *how], make)
    return call[1:]
