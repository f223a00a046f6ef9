"""What the judge decides by itself: trails, what a reference needed, who holds which container.

Whole runs are in `test_boundary`; here the decisions are asked one by one, in this process.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.graders.testing.inside.boundary import aliasing, contract, judge_state
from assay.graders.testing.inside.boundary.contract import Inert
from assay.graders.testing.inside.boundary.judge_state import (
    JudgeState,
    Ref,
    StandInType,
    UndecidedError,
)
from assay.graders.testing.inside.boundary.wire import OPERATORS
from tests.each import each


class Run(JudgeState):
    """The state of a run, and what it was told of."""

    def __init__(self, *, learns: bool = False, **needs: str) -> None:
        super().__init__()
        self.told: list[tuple[str, ...]] = []
        self.tell = lambda *said: self.told.append(said)
        self.test, self.learns = "test", learns
        self.needs = {name if name != "everywhere" else "": frozenset(entries.split())
                      for name, entries in needs.items()}  # fmt: skip


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """Begins a run in which a test named ``test`` runs, with what the reference needed."""

    def begun(**options: Any) -> Run:
        run = Run(**options)
        for module in (judge_state, contract, aliasing):
            monkeypatch.setattr(module, "state", run)
        return run

    return begun


class _Sized:
    """Has a length and no items, as few things have."""

    def __len__(self) -> int:
        return 0


class _Closed(_Sized):
    """Shows its items to nobody."""

    def __iter__(self) -> Any:
        raise TypeError


@dataclass
class Host:
    """The host as the judge sees it: what it answers, and what it was asked."""

    answers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    asked: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])

    def request(self, what: str, *about: Any) -> Any:
        self.asked.append((what, *about))
        answer = self.answers[what]
        if isinstance(answer, Exception):
            raise answer
        return answer.pop(0) if what == "take" else answer

    def read(self, node: Any, trails: list[str], *, only_values: bool) -> Any:
        assert only_values
        return node, trails

    def following(self, ref: Ref, found: Any, trails: list[str]) -> Any:
        return "followed", ref.number, found, trails

    def copied(self, _: Ref, found: Any, __: Any) -> Any:
        return found


def stand_in(host: Host, number: int = 7, *, own: tuple[str, ...] = (), also: str = "") -> Any:
    """An object of the submission, as tests get it."""
    form = {"operators": also.split(), "own": own}
    kind = StandInType("Money", (), {"_assay_form": form, "_assay_label": "kit.Money"})
    made: Any = kind()
    made.__dict__["_assay"] = Ref(cast("Any", host), number)
    return made


def undecided(run: Run, call: Callable[[], object]) -> str:
    """What a decision says that is refused, which the run was told, too."""
    with pytest.raises(UndecidedError) as raised:
        call()
    assert run.failures[-1] is raised.value
    assert run.told[-1][0] == "undecided"
    said = str(raised.value)
    assert said.endswith(f": [{run.told[-1][1]}]")
    return said


@given(st.lists(st.sampled_from(["load", "()", "!", "<>", "__sub__", "__iter__"]), max_size=12))
def test_a_trail_is_the_way_and_not_longer_than_seven_steps(steps: list[str]) -> None:
    trails, way = ["kit", "box"], list[str]()
    for name in steps:
        trails = contract.step(trails, name)
        if name == "__iter__":  # an item is come to as its list is
            continue
        way.append(name if name in ("()", "!", "<>") else f".{name}")
        if len(way) > 6:
            way = [way[0], ".*", *way[-3:]]
    assert trails == ["kit" + "".join(way), "box" + "".join(way)]


def test_the_newest_six_trails_are_known_each_once() -> None:
    ref = Ref(cast("Any", Host()), 1)
    assert contract.trails_of(ref) == ["?"]
    assert contract.trails_of(Ref(cast("Any", Host()), 1, ("kit", "Money"))) == ["kit.Money"]
    for name in "abcdabefg":
        contract.mark(ref, [name, "x"])
    assert contract.trails_of(ref) == ["g", "x", "f", "e", "b", "a"]


@each(
    ("what", "trails", "allowed"),
    [
        ("object", ["kit.a"], True),
        ("object", ["kit.b", "kit.a"], True),
        ("object", ["kit.b"], False),
        ("op", ["kit.a"], False),
        ("code", ["kit.a"], False),  # of a module: whatever the test needs
        ("code", ["kit.m"], True),
        ("class", ["kit.c"], True),
        ("object", ["kit.m"], False),
    ],
)
def test_a_test_may_do_what_it_did_with_the_reference(
    begin: Callable[..., Run], what: str, trails: list[str], *, allowed: bool
) -> None:
    run = begin(test="object:kit.a code:kit.a", everywhere="code:kit.m class:kit.c object:kit.m")
    assert contract.may(what, trails) is allowed
    assert run.told == []
    if allowed:
        contract.require(what, trails, "kit.Money", "it is asked")
        assert run.failures == []
    else:
        said = undecided(run, lambda: contract.require(what, trails, "kit.Money", "it is asked"))
        why = "it is asked, and so only code of kit.Money would decide"
        assert said == f"{why}: [{what}:{trails[0]}]"
    run.test = "other"
    assert not contract.may("object", ["kit.a"])


def test_what_the_reference_needs_is_written_down(begin: Callable[..., Run]) -> None:
    run = begin(learns=True)
    assert contract.may("object", ["kit.a", "kit.b"])
    contract.require("class", ["kit.c"], "kit.Money", "")
    assert run.told == [
        ("needs", "object:kit.a", "test"),
        ("needs", "object:kit.b", "test"),
        ("needs", "class:kit.c", ""),
    ]


def test_an_object_in_a_value_s_place_can_be_passed_on_and_nothing_else(
    begin: Callable[..., Run],
) -> None:
    run = begin()
    held = stand_in(Host())
    inert: Any = Inert(held, "kit.load()")
    why = "kit.load() is a value in the reference, and here an object of kit.Money"
    assert run.hints == {"object:kit.load()": why}
    assert (repr(inert), contract.held_by(inert)) == (f"<{why}>", held)
    assert contract.held_by(held) is held
    entry = f"{why}: [object:kit.load()]"
    refused: list[Callable[[], object]] = [
        *(lambda: inert.amount, lambda: inert._held, lambda: bool(inert), lambda: hash(inert)),
        *(lambda: inert == 1, lambda: inert != "x", lambda: inert + 1, lambda: 1 + inert),
        *(lambda: inert < 2, lambda: inert[0], lambda: inert.__array__x, lambda: inert._pytes),
    ]
    for one in refused:
        if one is refused[-2]:  # numpy asks every object for it
            with pytest.raises(AttributeError):
                one()
            continue
        assert undecided(run, one) == entry
    for name in OPERATORS & vars(Inert).keys() - {"__hash__", "__repr__"}:
        assert undecided(run, lambda name=name: vars(Inert)[name](inert, 1)) == entry
    assert not {"__iter__", "__len__", "__call__", "__contains__", "__enter__"} & vars(Inert).keys()
    assert inert.__class__ is Inert
    for same in (inert, held, Inert(held, "kit.M"), stand_in(Host(), 7)):
        assert (inert == same, inert != same) == (True, False)
    for other in (Inert(stand_in(Host(), 8), "kit.N"), stand_in(Host(), 8)):
        assert (inert == other, inert != other) == (False, True)
    constant = Inert(held, "kit.M")
    assert {constant: 1}[constant] == 1  # a constant of a module may be a key


def test_no_number_is_taken_for_something_else(begin: Callable[..., Run]) -> None:
    run = begin()
    inert = Inert(float("nan"), "kit.mean()", "nan")
    why = "kit.mean() is a value in the reference, and here nan"
    assert run.hints == {"nan:kit.mean()": why}
    assert undecided(run, lambda: inert.__class__) == f"{why}: [nan:kit.mean()]"
    assert Inert(float("nan"), "kit.NAN", "nan").__class__ is Inert
    assert Inert(held=[], trail="kit.f()").__class__ is Inert


def test_an_object_is_copied_where_the_reference_has_a_value(begin: Callable[..., Run]) -> None:
    run = begin()
    known: dict[int, Inert] = {}
    host = Host({"base": ["node"]})
    found = contract.as_value(stand_in(host, own=("__hash__", "__new__")), ["kit.f()"], known)
    assert found == (["node"], ["kit.f()"])
    assert host.asked == [("base", ["R", 7])]
    assert (run.hints, known) == ({}, {})
    found = contract.as_value(stand_in(host), ["kit.M", "kit.f()"], known)
    assert found == ("followed", 7, (["node"], ["kit.M", "kit.f()"]), ["kit.M", "kit.f()"])
    own = ("__eq__", "__hash__", "__lt__", "__add__", "__sub__")
    contract.as_value(stand_in(host, own=own), ["kit.f()", "kit.g()"], known)
    lost = "copied here, without its own __eq__, __lt__, __add__"
    assert run.hints == {"op:__eq__:kit.f()": f"kit.f() is a value in the reference, and is {lost}"}


def test_what_cannot_be_copied_is_one_inert_object(begin: Callable[..., Run]) -> None:
    run = begin()
    known: dict[int, Inert] = {}
    found = stand_in(Host({"base": KeyError("no base")}))
    first = contract.as_value(found, ["kit.f()", "kit.g()"], known)
    assert contract.held_by(first) is found
    assert list(run.hints) == ["object:kit.f()"]
    assert (contract.as_value(found, ["kit.h()"], known) is first, known) == (True, {7: first})
    for plain in (3, KeyError("x"), int, operator):
        made = contract.as_value(plain, ["kit.p()", "kit.q()"], {})
        assert (type(made), contract.held_by(made)) == (Inert, plain)
    here = "kit.p() is a value in the reference, and here an object of int"
    assert run.hints["object:kit.p()"] == here
    error = contract.WireError("gone")
    with pytest.raises(contract.WireError):
        contract.as_value(stand_in(Host({"base": error})), ["kit.f()"], {})
    failed = judge_state.fail(UndecidedError("why"))
    with pytest.raises(UndecidedError):
        contract.as_value(stand_in(Host({"base": failed})), ["kit.f()"], {})


def test_an_iterator_gives_its_values_few_at_first_and_then_many(
    begin: Callable[..., Run],
) -> None:
    run = begin()
    sizes = [1] * 16 + [16, 32, 64, 128, 256, 512, 512]
    host = Host({"take": [(["x"] * size, at == len(sizes) - 1) for at, size in enumerate(sizes)]})
    found = contract.as_value(stand_in(host, also="__next__"), ["kit.f()"], {})
    assert next(found) == ("x", ["kit.f()"])
    assert list(found) == [("x", ["kit.f()"])] * sum(sizes)
    assert len(list(found)) == sum(sizes)  # who looks again sees them again
    assert [many for _, _, many, _ in host.asked] == sizes
    assert [node for _, node, *_ in host.asked] == [["R", 7]] * len(sizes)
    assert [first for *_, first in host.asked] == [True] + [False] * (len(sizes) - 1)
    assert run.leaves == {"kit.f()": False}


_NOTHING: list[object] = ["", b"", bytearray(), {}, [], (), set[str](), [[], ("", {})]]


@each(
    ("value", "has"),
    [
        *[(value, False) for value in _NOTHING],
        *[(value, True) for value in (0, None, False, "x", {"": ""}, [0], [[], [None]], object)],
        *[(value, True) for value in (np.ones(2), np.zeros((1, 1)), np.float64(0), _Sized())],
        *[(value, True) for value in (np.array(["", ""]), _Closed())],
        *[(value, False) for value in (np.zeros(0), np.zeros((0, 2)))],
    ],
)
def test_a_value_that_holds_nothing_is_told_from_one_that_does(
    begin: Callable[..., Run], value: Any, *, has: bool
) -> None:
    run = begin()
    contract.look(value, ["kit.f()", "kit.g()"])
    assert run.leaves == {"kit.f()": has}
    contract.look([], ["kit.f()"])
    assert run.leaves == {"kit.f()": has}  # it held something once
    contract.look([stand_in(Host())], ["kit.f()"])
    assert run.leaves == {"kit.f()": True}


def test_what_is_empty_here_and_never_in_the_reference_is_told(begin: Callable[..., Run]) -> None:
    def end(**options: Any) -> list[tuple[str, ...]]:
        run = begin(**options)
        contract.look([], ["kit.f()"])
        contract.look([1], ["kit.g()"])
        ref = Ref(cast("Any", Host()), 1, ("kit", "rows"))
        contract.look_at_items(ref)
        assert run.leaves.pop("kit.rows[]") is False
        contract.look_at_items(ref, "")
        assert run.leaves["kit.rows[]"] is False
        contract.look_at_items(ref, "", 1)
        assert run.leaves["kit.rows[]"] is True
        contract.empties()
        assert run.leaves == {}
        return [(*said, *map(str, run.failures)) for said in run.told]

    why = "kit.f() is empty here, and never in the reference: [empty:kit.f()]"
    assert end() == [("undecided", "empty:kit.f()", why)]
    assert end(test="empty:kit.f()") == []
    assert end(test="object:kit.f()") == []
    assert end(test="empty:kit.g()") == [("undecided", "empty:kit.f()", why)]
    hollow = ("needs", "hollow:kit.f()", "test")
    assert end(learns=True) == [hollow, ("needs", "empty:kit.f()", "test")]


@each("made", [lambda: [1, 2], lambda: {"a": 1}, lambda: {1}, lambda: bytearray(b"ab"), list, dict])
def test_containers_are_scrambled_and_are_again_what_they_were(made: Callable[[], Any]) -> None:
    held, mine, other = aliasing.Held(), made(), (1, "x")
    assert [held.note(mine), held.note(other), held.note(mine)] == [False] * 3
    assert held.changed() == []
    held.scramble()
    assert (mine != made(), held.changed()) == (True, [])
    held.scramble()
    held.forget()
    assert (mine, held.changed()) == (made(), [])
    mine.clear()
    assert not held.note(mine)  # it is forgotten
    (mine.update if isinstance(mine, dict | set) else mine.extend)(made() or [(1, 2)])
    assert (held.changed(), held.changed()) == ([mine], [])


def test_another_order_is_a_change_of_a_list_and_none_of_a_set() -> None:
    held, mine, group = aliasing.Held(), [2, 1], {0, 8}
    before = [*group]
    held.note(mine)
    held.note(group)
    mine.sort()
    group.clear()
    for one in reversed(before):
        group.add(one)
    assert [*group] != before
    assert held.changed() == [mine]


def test_only_so_many_containers_of_a_length_are_watched() -> None:
    held, many = aliasing.Held(), [list[Any]([number]) for number in range(101)]
    longest, longer = list[Any]([0]) * 10_000, list[Any]([0]) * 10_001
    for one in (*many, longest, longer):
        held.note(one)
        one[0] = "another"
    assert held.changed() == [*many[2:], longest]


@each(
    ("test", "needs", "shares"),
    [("test", {"test": "keeps:"}, True), ("test", {"other": "keeps:"}, False), ("", {}, False)],
)
def test_containers_are_shared_where_the_reference_s_test_looks(
    begin: Callable[..., Run], test: str, needs: dict[str, str], *, shares: bool
) -> None:
    run = begin(**needs)
    assert aliasing.shares() is shares
    if not shares:
        aliasing.leave(["kit.f()", "kit.g()"], "changes:1")
        assert run.hints == {"changes:1:kit.f()": "kit.f() changed its argument"}
        return
    said = undecided(run, lambda: aliasing.leave(["kit.f()", "kit.g()"], "changes:1"))
    assert said == "kit.f() changed its argument, which the test looks at: [changes:1:kit.f()]"
    run.learns = True
    assert not aliasing.shares()


def test_a_reference_whose_test_changes_what_it_has_needs_it_kept(
    begin: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(**options: Any) -> tuple[list[Any], list[int]]:
        run, mine = begin(**options), [1, 2]
        monkeypatch.setattr(aliasing, "held", aliasing.Held())
        aliasing.note(mine)
        aliasing.scramble()
        scrambled = list(mine)
        mine.append(3)
        aliasing.note(mine)
        mine.append(4)
        aliasing.look()
        mine.append(5)
        aliasing.end()
        assert run.told == [("needs", "keeps:", "test")] * len(run.told)
        mine.append(6)
        aliasing.look()
        return run.told, scrambled

    assert [len(told(learns=learns)[0]) for learns in (True, False)] == [3, 0]
    assert told(learns=True)[1] == [1, 2]
    assert told(learns=True, everywhere="scrambles:")[1] == [2, 1]
    assert told(everywhere="scrambles:")[1] == [1, 2]


ASKING = """
import operator
class TestOne:
    def test_method(self): assert kit.A is kit.B
def test_is_not(): assert kit.A is not kit.f()
def test_id(): assert id(kit.A) == 3
def test_map(): assert map(id, [kit.A])
def test_operator(): assert operator.is_(kit.A, kit.B)
def test_operator_not(): assert operator.is_not(kit.A, kit.B)
def test_unittest(self): self.assertIs(kit.A, kit.B)
def test_unittest_not(self): self.assertIsNot(kit.A, kit.B)
async def test_async(): assert kit.A == kit.B is kit.C
def test_none(): assert kit.A is None and kit.A is not True
def test_class(): assert kit.a.__class__ is kit.A
def test_type(): assert type(kit.a) is kit.A
def test_unittest_none(self): self.assertIsNot(kit.A, None)
def test_equal(): assert kit.A == kit.B and kit.id and idx(kit.A)
"""


@each(
    ("more", "test", "asks"),
    [
        *[("", f"a.py::TestOne::test_{name}" if name == "method" else f"a.py::test_{name}", True)
          for name in ["method", "is_not", "id", "map", "operator", "operator_not", "unittest",
                       "unittest_not", "async"]],
        *[("", f"a.py::test_{name}", False)
          for name in ["none", "class", "type", "unittest_none", "equal", "other"]],
        ("", "", False),
        ("same = lambda a, b: a is b", "a.py::test_equal", True),  # any test may use it
        ("def same(a, b): return a is b", "a.py::test_equal", True),
        ("class A:\n    def same(self): return self is other", "a.py::test_equal", True),
        ("def same(a, b): return a == b", "a.py::test_equal", False),
        ("same = lambda a, b: a is b", "", False),
        ("broken(", "a.py::test_is_not", False),
    ],
)  # fmt: skip
def test_a_test_that_asks_which_object_it_has_is_known_by_its_source(
    begin: Callable[..., Run], tmp_path: Path, more: str, test: str, *, asks: bool
) -> None:
    run = begin()
    path = tmp_path / f"{abs(hash((more, test)))}.py"
    path.write_text(f"{ASKING}{more}\n")
    run.current, run.test = str(path), test
    assert aliasing.asks_identity() is asks
    assert aliasing.shares() is asks
    if not asks:
        aliasing.meet("kit.f()")
        return
    said = undecided(run, lambda: aliasing.meet("kit.f()"))
    why = "kit.f() gives an object that the test has already, and the test asks which it is"
    assert said == f"{why}: [known:kit.f()]"
