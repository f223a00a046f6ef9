"""The base of all graders: what they may return, what is recorded, and how they fail."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import pytest

from assay.errors import GraderError, InputError, ScoreError
from assay.graders import Grader, combine
from assay.graders.base import Score
from assay.scoring import SubScore
from tests.each import each

if TYPE_CHECKING:
    from decimal import Decimal as Unimportable


class Giving(Grader):
    """Returns what it is given."""

    name = "giving"

    @classmethod
    async def compute_score(cls, score: object = 1.0, *, note: str = "") -> Score:
        return cast("Score", score)


class Raising(Grader):
    name = "raising"

    @classmethod
    async def compute_score(cls, error: Exception) -> float:
        raise error


class Plain(Grader):
    """Awaits nothing, and has no use for its class."""

    name = "plain"

    @staticmethod
    def compute_score(answer: str) -> float:
        return 1.0 if answer == "yes" else 0.0


class Open(Grader):
    @classmethod
    async def compute_score(cls, answer: str = "", **rest: object) -> Score:
        return 1.0, {"rest": sorted(rest)}


@each(
    ("returned", "value", "evidence"),
    [
        (0.25, 0.25, {}),
        (1, 1.0, {}),
        ((0.5, {"why": "half"}), 0.5, {"why": "half"}),
        ((0.5, None), 0.5, {}),
        ((0.5, {1: {2, 1}}), 0.5, {"1": [1, 2]}),
        (1.0000000000000002, 1.0, {}),
    ],
)
async def test_what_a_grader_may_return(
    returned: object, value: float, evidence: dict[str, object]
) -> None:
    node = await Giving.grade(score=returned)
    assert (node.name, node.value, node.weight, node.status) == ("giving", value, 1.0, "scored")
    metadata = dict(node.metadata or {})
    assert "_parameters" in metadata
    del metadata["_parameters"]
    assert metadata == evidence


@each(
    ("returned", "why"),
    [
        (True, "is a bool"),
        (math.nan, "is nan"),
        (1.5, "must be in"),
        (-0.5, "must be in"),
        ("MET", "must be a number, got str"),
        ((1.0,), "a tuple of (float)"),
        ((1.0, "why"), "a tuple of (float, str)"),
        ((True, {}), "is a bool"),
    ],
)
async def test_whatever_else_a_grader_returns_is_an_error_never_a_score(
    returned: object, why: str
) -> None:
    with pytest.raises(GraderError) as caught:
        await Giving.grade(score=returned)
    assert why in str(caught.value)


async def test_a_returned_node_is_renamed_and_weighted_and_keeps_the_rest() -> None:
    child = SubScore(name="part", value=0.5)
    node = SubScore(name="own", value=0.5, weight=9, metadata={"a": 1}, children=[child])
    graded = await Giving.grade(weight=0.5, name="mine", gate=True, score=node)
    assert (graded.name, graded.weight, graded.gate) == ("mine", 0.5, True)
    assert graded.children == (child,)
    assert list(graded.metadata or {}) == ["a", "_parameters"]
    skipped = await Giving.grade(name="", score=SubScore.skipped("own", "no trace"))
    assert (skipped.name, skipped.status, skipped.value) == ("giving", "skipped", None)


async def test_a_plain_function_will_do_and_a_static_one() -> None:
    assert (await Plain.grade(answer="yes")).value == 1.0
    assert (await Plain.grade(answer="no")).value == 0.0


@each(
    ("parameters", "why"),
    [
        ({"scroe": 1.0}, "Giving takes no parameter 'scroe' (did you mean 'score'?)"),
        ({"weigth": 2.0}, "Giving takes no parameter 'weigth' (did you mean 'weight'?)"),
        ({"zzz": 1.0}, "(valid: gate, name, note, score, weight)"),
    ],
)
async def test_a_misspelt_parameter_is_refused_with_the_nearest_and_a_missing_one(
    parameters: dict[str, object], why: str
) -> None:
    with pytest.raises(InputError) as caught:
        await Giving.grade(weight=1.0, name=None, gate=False, **parameters)
    assert why in str(caught.value)
    with pytest.raises(InputError, match="Plain needs 'answer'"):
        await Plain.grade()


async def test_without_a_compute_score_of_the_class_there_is_no_grader() -> None:
    """One of instances needed 'self', it said, of whoever called it."""

    class Empty(Grader):
        pass

    with pytest.raises(GraderError, match="Empty does not implement compute_score"):
        await Empty.grade()
    with pytest.raises(InputError, match=r"Brief\.compute_score takes self.*@classmethod above it"):

        class Brief(Grader):  # pyright: ignore[reportUnusedClass] - it is refused
            def compute_score(self, answer: str) -> float:
                return 1.0


async def test_a_weight_that_is_none_is_refused() -> None:
    with pytest.raises(ScoreError, match="weight of 'giving'"):
        await Giving.grade(weight=math.nan)


async def test_any_name_is_given_where_it_is_taken_and_recorded_bounded_without_secrets() -> None:
    node = await Open.grade(
        answer="a" * 100_000, api_key="hunter2", nested={"password": "hunter2"}, file=object()
    )
    assert node.name == "BaseGrader"
    assert dict(node.metadata or {})["rest"] == ["api_key", "file", "nested"]
    recorded = dict(node.metadata or {})["_parameters"]
    assert isinstance(recorded, Mapping)
    assert list(recorded) == ["answer", "api_key", "nested", "file"]
    written = json.dumps(recorded)
    assert "hunter2" not in written
    assert len(written) < 10_000


async def test_what_a_grader_raises_becomes_an_error_with_its_node() -> None:
    with pytest.raises(GraderError, match="raising: ZeroDivisionError: oops") as caught:
        await Raising.grade(weight=0.5, error=ZeroDivisionError("oops"))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    node = caught.value.subscore
    assert isinstance(node, SubScore)
    assert (node.name, node.weight, node.status) == ("raising", 0.5, "error")
    assert node.reason.startswith("ZeroDivisionError: oops (tests/graders/test_base.py:")
    assert "in compute_score" in str((node.metadata or {})["traceback"])
    assert "_parameters" in (node.metadata or {})


class _MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


async def test_an_exception_that_cannot_say_what_it_is_is_an_error_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(GraderError, match="raising: _MuteError: it cannot be shown") as caught:
        await Raising.grade(error=_MuteError())
    assert isinstance(caught.value.subscore, SubScore)


@each(
    ("failing", "reason"),
    [
        (lambda: Raising.grade(0.5, "mine", error=OSError("gone")), "OSError: gone"),
        (lambda: Raising.grade(0.5, "mine", error=GraderError("no", hint="set it")), "no (set it)"),
        (lambda: Raising.grade(0.5, "mine", eror=1), "takes no parameter 'eror'"),
        (lambda: Raising.grade(0.5, "mine"), "needs 'error'"),
    ],
)
async def test_combined_a_failing_grader_keeps_its_own_name_and_weight(
    failing: Callable[[], Awaitable[SubScore]], reason: str
) -> None:
    result = await combine(failing(), Giving.grade(0.5))
    assert (result.reward, result.isError) == (None, True)
    node = next(iter(result.subscores or ()))
    assert (node.name, node.weight, node.status) == ("mine", 0.5, "error")
    assert reason in node.reason
    assert [n.value for n in result.subscores or ()] == [None, 1.0]


def test_alternatives_are_named_after_the_grader() -> None:
    nodes = [SubScore(name="a", value=0.2), SubScore(name="b", value=0.8)]
    either, both = Giving.any(0.5, nodes), Giving.all(2.0, nodes)
    assert (either.name, either.value, either.weight) == ("giving_any", 0.8, 0.5)
    assert (both.name, both.value, both.weight) == ("giving_all", 0.2, 2.0)
    assert Grader.any(1.0, nodes).name == "BaseGrader_any"


class Typed(Grader):
    filled_from: ClassVar[Mapping[str, str]] = {}

    @classmethod
    async def compute_score(cls, answer: Unimportable, target: int = 3, **rest: object) -> float:
        return 1.0


def test_parameters_are_known_even_where_their_types_cannot_be_imported() -> None:
    known, takes_any = Typed.parameters()
    assert list(known) == ["answer", "target"]
    assert (known["answer"].required, known["target"].required) == (True, False)
    assert known["target"].default == 3
    assert takes_any


def test_every_kind_stands_beside_the_base_class() -> None:
    import assay.agents
    import assay.graders
    from assay.graders.kinds import KINDS

    for target in KINDS.values():
        module, _, name = target.partition(":")
        facade = assay.graders if module.startswith("assay.graders.") else assay.agents
        assert name in facade.__all__
    with pytest.raises(AttributeError, match="did you mean 'PairwiseGrader'"):
        _ = assay.graders.__getattr__("PairwiseGradr")


@dataclass(frozen=True, kw_only=True)
class LongEnough(Grader):
    """An answer of some length.

    Attributes:
        target: How long.
        marks: What it must hold.
    """

    name: ClassVar[str] = "long"

    target: int
    marks: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.target < 1:
            raise InputError(f"target must be 1 or more, got {self.target}")

    async def score(self, answer: str, expected: str = "") -> float:
        """Compare lengths."""
        return float(len(answer) >= self.target and all(mark in answer for mark in self.marks))


async def test_the_fields_of_a_dataclass_are_its_options() -> None:
    known, takes_any = LongEnough.parameters()
    assert (list(known), takes_any) == (["target", "marks", "answer", "expected"], False)
    assert [name for name, one in known.items() if one.required] == ["target", "answer"]
    node = await LongEnough.grade(answer="abc", target=3)
    assert (node.value, node.name) == (1.0, "long")
    assert dict(node.metadata or {})["_parameters"] == {"answer": "abc", "target": 3}
    with pytest.raises(InputError, match="takes no parameter 'traget'"):
        await LongEnough.grade(answer="abc", traget=3)
    with pytest.raises(InputError, match="needs 'target'"):
        await LongEnough.grade(answer="abc")
    with pytest.raises(GraderError, match="target must be 1 or more"):
        await LongEnough.grade(answer="abc", target=0)
    with pytest.raises(InputError, match="target must be 1 or more"):
        LongEnough.check_options({"target": 0, "answer": "abc"})


async def test_attack_a_list_of_options_that_changes_later_changes_no_grader() -> None:
    marks = ["a"]
    assert (await LongEnough.grade(answer="a", target=1, marks=marks)).value == 1.0
    marks[0] = "b"
    assert (await LongEnough.grade(answer="a", target=1, marks=["a"])).value == 1.0
    assert (await LongEnough.grade(answer="a", target=1, marks=marks)).value == 0.0


async def test_a_subclass_may_have_a_compute_score_of_its_own_and_ask_the_dataclass_above() -> None:
    class Always(LongEnough):
        @classmethod
        async def compute_score(cls, answer: str) -> float:
            return 0.5

    class Half(LongEnough):
        @classmethod
        async def compute_score(cls, **named: object) -> Score:
            found = super().compute_score(**named)
            assert isinstance(found, Awaitable)
            return 0.5 * cast("float", await found)

    assert list(Always.parameters()[0]) == ["answer"]
    assert (await Always.grade(answer="")).value == 0.5
    assert (await Half.grade(answer="abc", target=3)).value == 0.5


class Alike:
    """Looks like all others of its class, as what hides a key does."""

    def __init__(self, word: str) -> None:
        self.word = word

    def __repr__(self) -> str:
        return "Alike()"


@dataclass(frozen=True, slots=True)
class Says(Grader):
    name: ClassVar[str] = "says"

    model: Alike
    limit: Unimportable | None = None

    def score(self, answer: str) -> float:
        return float(answer == self.model.word)


async def test_attack_options_that_look_alike_are_not_taken_for_each_other() -> None:
    for word in ("yes", "no"):
        assert (await Says.grade(answer=word, model=Alike(word))).value == 1.0


async def test_attack_a_submission_leaves_nothing_in_a_dataclass_for_the_next_one() -> None:
    @dataclass
    class Remembers(Grader):
        seen: list[str] = field(default_factory=list[str])

        def score(self, answer: str) -> float:
            self.seen.append(answer)
            return float(len(self.seen) == 1)

    for _ in range(2):
        assert (await Remembers.grade(answer="x")).value == 1.0


_SETTING: ContextVar[str] = ContextVar("setting", default="nobody's")


class Setting(Grader):
    """Leaves something in its context; one that is slow does so after it has waited."""

    name = "setting"

    @classmethod
    async def compute_score(cls, value: str) -> tuple[float, dict[str, object]]:
        seen = _SETTING.get()
        _SETTING.set(value)
        return 1.0, {"seen": seen}


class SlowSetting(Setting):
    @classmethod
    def compute_score(cls, value: str) -> Awaitable[tuple[float, dict[str, object]]]:  # pyright: ignore[reportIncompatibleMethodOverride]
        seen = _SETTING.get()
        _SETTING.set(value)

        async def score() -> tuple[float, dict[str, object]]:
            task = id(asyncio.current_task())  # as `asyncio.timeout` takes hold of it
            await asyncio.sleep(0)
            return 1.0, {"seen": seen, "kept": _SETTING.get(), "task": task}

        return score()


async def test_graders_that_wait_for_nothing_need_no_task(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, made = asyncio.get_running_loop(), list[object]()
    create = loop.create_task

    def counted(*given: Any, **named: Any) -> asyncio.Task[Any]:
        made.append(given)
        return create(*given, **named)

    monkeypatch.setattr(loop, "create_task", counted)
    result = await combine(
        Giving.grade(score=0.5), Plain.grade(answer="yes"), LongEnough.grade(answer="", target=1)
    )
    assert [node.value for node in result.subscores or ()] == [0.5, 1.0, 0.0]
    assert made == []


async def test_each_grader_has_a_context_of_its_own_and_where_it_waits_a_task() -> None:
    for kinds in itertools.product((Setting, SlowSetting), repeat=3):
        graded = [kind.grade(value=value) for kind, value in zip(kinds, "abc", strict=True)]
        nodes = (await combine(*graded)).subscores or ()
        told = [dict(node.metadata or {}) for node in nodes]
        assert [one["seen"] for one in told] == ["nobody's"] * 3
        assert _SETTING.get() == "nobody's"
        slow = [(one, value) for one, value in zip(told, "abc", strict=True) if "kept" in one]
        assert all(one["kept"] == value for one, value in slow)
        tasks = {str(one["task"]) for one, _ in slow} | {str(id(asyncio.current_task()))}
        assert len(tasks) == kinds.count(SlowSetting) + 1


async def test_graders_begin_in_their_order_whatever_waits() -> None:
    begun: list[str] = []

    class Noted(Grader):
        @classmethod
        async def compute_score(cls, note: str) -> float:
            begun.append(note)
            if note == "2":
                await asyncio.sleep(0)
            return 1.0

    async def foreign() -> SubScore:
        begun.append("foreign")
        return SubScore(name="foreign", value=1.0)

    await combine(*(Noted.grade(note=note) for note in "123"))
    await combine(foreign(), Noted.grade(note="4"))
    assert begun == ["1", "2", "3", "foreign", "4"]


async def test_a_grader_that_is_given_twice_is_graded_once() -> None:
    once = Giving.grade(score=0.5)
    result = await combine(once, once)
    assert [node.value for node in result.subscores or ()] == [0.5, 0.5]


async def test_what_is_interrupted_or_ends_the_work_leaves_nothing_that_was_not_awaited() -> None:
    class Waits(Grader):
        @classmethod
        async def compute_score(cls) -> float:
            await asyncio.sleep(60)
            return 1.0

    class Stops(Grader):
        @classmethod
        async def compute_score(cls) -> float:
            raise KeyboardInterrupt

    for steps in range(1, 5):  # a warning of what nobody awaited is an error
        task = asyncio.create_task(combine(Waits.grade(), Waits.grade()))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    with pytest.raises(KeyboardInterrupt):
        await combine(Giving.grade(), Stops.grade(), Giving.grade())
    gc.collect()
