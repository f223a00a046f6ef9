"""The one formula: weights, penalties, gates, skips, errors, and the names of what is combined."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import GraderError, InputError, ScoreError
from assay.scoring import Json, SubScore, combine, combine_all, combine_any, combine_scores
from assay.scoring.combine import presented, unique_names
from tests.each import each

Collapse = Callable[[float, list[SubScore]], SubScore]


def score(name: str, value: float, weight: float = 1.0, *, gate: bool = False) -> SubScore:
    return SubScore(name=name, value=value, weight=weight, gate=gate)


def reward_of(*nodes: SubScore) -> float | None:
    return combine_scores(nodes).reward


@each(
    ("nodes", "reward"),
    [
        ([score("a", 0.5, 0.25), score("b", 1.0, 0.75)], 0.875),
        ([score("a", 1.0, 2), score("p", 1.0, -0.5)], 0.5),  # a penalty is not scaled
        ([score("a", 1.0), score("p", 0.5, -0.5)], 0.75),
        ([score("a", 1.0), score("p", 1.0, -5)], -4.0),  # nor is the sum clamped
        ([score("a", 0.0), score("report", 1.0, 0)], 0.0),  # weight 0 only reports
        ([score("a", 0.5), score("g", 1.0, gate=True)], 0.5),
        ([score("a", 1.0), score("g", 0.999, gate=True)], 0.0),
        ([score("a", 0.5), SubScore.skipped("b", "no trace")], 0.5),
        ([score("a", 0.5), SubScore.skipped("g", "no judge", gate=True)], 0.5),
        ([SubScore.skipped("a", "no trace")], None),
        ([SubScore.skipped("a", "no trace"), score("p", 1.0, -1)], None),
    ],
)
def test_rewards(nodes: list[SubScore], reward: float | None) -> None:
    assert reward_of(*nodes) == reward


SCORES = st.lists(
    st.builds(SubScore, name=st.just("a"), value=st.floats(0, 1), weight=st.floats(1e-6, 1e6)),
    min_size=1,
    max_size=12,
)
PENALTIES = st.lists(
    st.builds(SubScore, name=st.just("p"), value=st.floats(0, 1), weight=st.floats(-1e3, -1e-6)),
    max_size=4,
)


@given(SCORES)
def test_positive_weights_are_normalised(nodes: list[SubScore]) -> None:
    reward = reward_of(*nodes)
    assert reward is not None
    values = [node.score for node in nodes]
    assert min(values) - 1e-12 <= reward <= max(values) + 1e-12
    expected = sum(n.score * n.weight for n in nodes) / sum(n.weight for n in nodes)
    assert reward == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(SCORES, PENALTIES)
def test_penalties_are_taken_as_they_are(nodes: list[SubScore], penalties: list[SubScore]) -> None:
    without, with_them = reward_of(*nodes), reward_of(*nodes, *penalties)
    assert without is not None
    assert with_them is not None
    loss = math.fsum(p.score * p.weight for p in penalties)
    assert with_them == pytest.approx(without + loss, rel=1e-12, abs=1e-12)


@given(SCORES, PENALTIES, st.randoms(use_true_random=False))
def test_order_does_not_matter(
    nodes: list[SubScore], penalties: list[SubScore], shuffler: random.Random
) -> None:
    mixed = [*nodes, *penalties]
    before = reward_of(*mixed)
    shuffler.shuffle(mixed)
    assert reward_of(*mixed) == before


@given(SCORES, PENALTIES)
def test_a_case_clamps_its_reward(nodes: list[SubScore], penalties: list[SubScore]) -> None:
    raw = reward_of(*nodes, *penalties)
    assert raw is not None
    clamped = combine_scores([*nodes, *penalties], clamp=True).reward
    assert clamped == min(1.0, max(0.0, raw))


NO_CREDIT = (
    "no subscore has a positive weight "
    "(gates and penalties give no credit: add a grader with weight > 0)"
)


@each(
    ("nodes", "why"),
    [
        ([], "subscores must not be empty"),
        ([score("p", 1.0, -1)], NO_CREDIT),
        ([score("z", 1.0, 0)], NO_CREDIT),
        ([score("g", 1.0, gate=True)], NO_CREDIT),
    ],
)
def test_what_gives_no_credit_cannot_be_combined(nodes: list[SubScore], why: str) -> None:
    with pytest.raises(ScoreError) as raised:
        combine_scores(nodes)
    assert str(raised.value) == why


@each(
    ("given_names", "expected"),
    [
        (["x", "x", "y"], ["x-1", "x-2", "y"]),
        (["x", "x-1", "x", "y", "x"], ["x-2", "x-1", "x-3", "y", "x-4"]),
        (["x", "x-1", "x", "x-1"], ["x-2", "x-1-1", "x-3", "x-1-2"]),
    ],
)
def test_repeated_names_get_stable_suffixes(given_names: list[str], expected: list[str]) -> None:
    renamed = unique_names([score(name, 1.0) for name in given_names])
    assert [node.name for node in renamed] == expected


@given(st.lists(st.sampled_from(["x", "x-1", "x-2", "x-1-1", "y"]), max_size=12))
def test_names_are_unique_once_combined_and_keep_what_they_were(given_names: list[str]) -> None:
    renamed = unique_names([score(name, 1.0) for name in given_names])
    assert len({node.name for node in renamed}) == len(given_names)
    for before, after in zip(given_names, renamed, strict=True):
        assert after.name == before or after.name.startswith(f"{before}-")


@each(
    ("nodes", "content"),
    [
        ([score("g", 0.25, gate=True), score("h", 0.0, gate=True)],
         "gate g (0.25 of 1), h did not pass"),
        ([score("b", 1.0), score("safe", 0.0, gate=True)], "gate safe did not pass"),
        ([SubScore.error("b", "is gone"), SubScore.error("c", "is late")],
         "b: is gone; c: is late"),
        ([SubScore.skipped("b", "no key"), SubScore.skipped("c", "no trace")],
         "b: no key; c: no trace"),
        ([SubScore.skipped("b", "")], "every grader was skipped"),
        ([score("p", 1.0, -1.0)], "every grader was skipped"),
    ],
)  # fmt: skip
def test_what_became_of_the_graders_is_said(nodes: list[SubScore], content: str) -> None:
    assert combine_scores([SubScore.skipped("a", ""), *nodes]).content == content


SHOWN = st.lists(
    st.one_of(
        st.builds(
            score, st.just("a"), st.floats(0, 1), st.sampled_from([-2.0, 0.0, 0.5, 1.0, 3.0])
        ),
        st.builds(score, st.just("g"), st.just(1.0), st.just(2.0), gate=st.just(True)),
        st.sampled_from(
            [SubScore.skipped("s", "no key", weight=2.0), SubScore("m", 1.0, 0.5, {"a": 1})]
        ),
    ),
    max_size=5,
)


@given(SHOWN)
def test_weights_are_shown_as_shares_of_the_credit(nodes: list[SubScore]) -> None:
    result = combine_scores([score("first", 0.5, 0.5), *nodes])
    credit = [node for node in result.subscores or () if node.weight > 0 and not node.gate]
    total = math.fsum(node.weight for node in credit if node.status == "scored")
    shown = presented(result)
    for before, after in zip(result.subscores or (), shown.subscores or (), strict=True):
        share = replace(before, weight=before.weight / total, raw_weight=before.weight)
        assert after == (share if before in credit and total != 1.0 else before)
    assert shown == replace(result, subscores=shown.subscores)
    failed = combine_scores([*nodes, score("x", 1.0, 3.0), SubScore.error("y", "gone")])
    assert presented(failed).subscores == failed.subscores


@each(("collapse", "name"), [(combine_any, "any"), (combine_all, "all")])
def test_or_and_and_keep_the_evidence_and_the_weakest_assurance(
    collapse: Collapse, name: str
) -> None:
    nodes = [
        SubScore("x", 0.5, metadata={"a": 1}, assurance="read"),
        SubScore("x", 0.5, assurance="model", metadata={}),
        SubScore.error("y", "is gone"),
        SubScore.error("z", "is late"),
    ]
    node = collapse(2.0, nodes[:2])
    metadata: dict[str, Json] = {
        "subscores": ["x-1", "x-2"],
        "subscore_metadata": {"x-1": {"a": 1}, "x-2": {}},
    }
    assert node == SubScore(
        name, 0.5, 2.0, metadata, unique_names(nodes[:2]), passed=False, assurance="model"
    )
    node = collapse(2.0, nodes[2:])
    expected: dict[str, Json] = {"subscores": ["y", "z"]}
    reason = "y: is gone; z: is late"
    assert node == SubScore(name, None, 2.0, expected, nodes[2:], status="error", reason=reason)
    skipped = collapse(1.0, [SubScore.skipped("a", "no trace")])
    assert (skipped.status, skipped.reason) == ("skipped", "every input was skipped")


GONE = SubScore.error("judge", "is gone", weight=2)


@each(
    ("nodes", "status", "reward", "info"),
    [
        ([score("a", 1.0), GONE], "error", None, {"errors": {"judge": "is gone"}}),
        ([score("a", 1.0), replace(GONE, gate=True)], "error", None,
         {"errors": {"judge": "is gone"}}),  # a gate in error fails closed
        # Breaking a sibling does not lift a certain 0 to an excluded error.
        ([score("a", 1.0), score("g", 0.0, gate=True), GONE], "scored", 0.0,
         {"failed_gates": ["g"], "errors": {"judge": "is gone"}}),
        ([SubScore.skipped("a", "no trace")], "skipped", None, {}),
    ],
)  # fmt: skip
def test_an_error_leaves_no_reward_and_keeps_its_siblings(
    nodes: list[SubScore], status: str, reward: float | None, info: dict[str, Json]
) -> None:
    result = combine_scores(nodes)
    assert (result.status, result.reward, result.info) == (status, reward, info)
    assert result.isError == (status == "error")
    assert list(result.subscores or ()) == nodes


@each(
    ("nodes", "any_value", "all_value"),
    [
        ([score("a", 0.0), score("b", 1.0)], 1.0, 0.0),
        ([score("a", 0.3), score("b", 0.7)], 0.7, 0.3),
        ([score("a", 0.3), SubScore.skipped("b", "no trace")], 0.3, 0.3),
        ([score("a", 1.0), SubScore.error("b", "gone")], 1.0, None),
        ([score("a", 0.0), SubScore.error("b", "gone")], None, 0.0),
        ([score("a", 0.5), SubScore.error("b", "gone")], None, None),
    ],
)
def test_or_and_and(
    nodes: list[SubScore], any_value: float | None, all_value: float | None
) -> None:
    for collapse, value, name in (
        (combine_any, any_value, "any"),
        (combine_all, all_value, "all"),
    ):
        node = collapse(2.0, nodes)
        assert (node.name, node.weight, node.value) == (name, 2.0, value)
        assert node.status == ("scored" if value is not None else "error")
        if value is None:
            assert node.reason == "b: gone"


def test_or_and_and_need_an_input_and_take_any_iterable_once() -> None:
    with pytest.raises(ScoreError, match="'either' needs at least one"):
        combine_any(1.0, [], name="either")
    node = combine_all(1.0, (score("x", 1.0) for _ in range(2)))
    assert [child.name for child in node.children or ()] == ["x-1", "x-2"]
    assert node.metadata == {"subscores": ["x-1", "x-2"]}


async def test_combine_takes_nodes_and_awaitables_in_their_order() -> None:
    turn = asyncio.Event()

    async def late() -> SubScore:
        await turn.wait()
        return score("late", 0.0)

    async def early() -> SubScore:
        turn.set()  # the first can only go on because the second runs beside it
        return score("early", 1.0)

    future = asyncio.get_running_loop().create_future()
    future.set_result(score("future", 1.0))
    result = await combine(late(), early(), score("ready", 1.0), future)
    assert [n.name for n in result.subscores or ()] == ["late", "early", "ready", "future"]
    assert result.reward == 0.75


async def test_a_failing_grader_takes_no_sibling_with_it() -> None:
    finished: list[str] = []
    failed = asyncio.Event()

    async def failing() -> SubScore:
        failed.set()
        raise ConnectionError("no route")

    async def sibling() -> SubScore:
        await failed.wait()
        await asyncio.sleep(0)
        finished.append("sibling")
        return score("sibling", 1.0)

    result = await combine(failing(), sibling())
    assert finished == ["sibling"]
    assert (result.reward, result.isError) == (None, True)
    assert [n.status for n in result.subscores or ()] == ["error", "scored"]
    assert "ConnectionError: no route" in str(result.content)


@each("kind", [GraderError, InputError])
async def test_an_error_that_brings_its_node_is_that_node(kind: type[GraderError]) -> None:
    async def failing() -> SubScore:
        error = kind("broke")
        error.subscore = SubScore.error("judge", "broke", weight=0.25, gate=True)
        raise error

    result = await combine(failing(), score("a", 1.0))
    assert SubScore.error("judge", "broke", weight=0.25, gate=True) in (result.subscores or ())


@each("returned", [1.0, None])
async def test_what_an_awaitable_returns_must_be_a_node(returned: object) -> None:
    async def wrong() -> SubScore:
        return cast("SubScore", returned)

    result = await combine(wrong(), score("a", 1.0))
    assert result.isError
    assert f"got {type(returned).__name__}" in str(result.content)


@each("foreign", [1.0, None, SubScore])
async def test_a_foreign_item_is_a_type_error_that_leaks_no_coroutine(foreign: object) -> None:
    async def never() -> SubScore:
        raise AssertionError("ran")

    coroutine = never()  # left alone, it would warn when it is collected, and warnings are errors
    with pytest.raises(TypeError, match="Expected SubScore or Awaitable"):
        await combine(coroutine, cast("SubScore", foreign))
    with pytest.raises(RuntimeError, match="cannot reuse"):
        await coroutine
    with pytest.raises(ScoreError, match="must not be empty"):
        await combine()


@each("weights", [(0.1,), (3.0,), (0.7,), (0.1, 0.3, 0.7), (1 / 3,) * 10, (1e-9,) * 1_000])
@each("value", [0.1, 0.2, 0.7, 1.0])
def test_equal_scores_have_themselves_as_their_mean(
    weights: tuple[float, ...], value: float
) -> None:
    nodes = [SubScore(f"n{n}", value, weight=weight) for n, weight in enumerate(weights)]
    assert combine_scores(nodes).reward == value


def test_many_repeated_names_stay_cheap() -> None:
    assert reward_of(*[score("x", 1.0, 7e99)] * 20_000) == 1.0  # quadratic, this would be minutes


@each("collapse", [combine_all, combine_any])
def test_a_skipped_input_of_a_combination_is_not_graded(collapse: Collapse) -> None:
    """A judge without a key inside `combine_all` passed any `expect.min_coverage`."""
    inner = collapse(1.0, [score("words", 1.0), SubScore.skipped("judge", "no key")])
    result = combine_scores([score("form", 1.0), collapse(3.0, [score("a", 1.0), inner])])
    assert result.reward == 1.0
    name = "all" if collapse is combine_all else "any"
    assert result.not_graded == (3 / 4 / 2 / 2, {f"{name}/{name}/judge": "no key"})
    again = type(result).from_dict(result.to_dict())
    assert again.not_graded == result.not_graded
    # A panel may do without a juror: its value says what the others come to.
    panel = SubScore("panel", 1.0, children=[score("a", 1.0), SubScore.skipped("b", "no reply")])
    assert combine_scores([panel]).not_graded == (0.0, {})
