"""Arguments of tools, in both kinds that match calls: what fits, what is told, what is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import GraderError, InputError
from assay.graders.apply import grade_alone
from assay.graders.spec import GraderSpec, read_spec
from assay.graders.tool_arguments import ArgumentMatching, ArgumentRule
from assay.graders.tool_calls import ToolMatcher
from assay.graders.tool_correctness import ToolCorrectnessGrader
from assay.graders.trace import TraceGrader
from assay.scoring.json_safe import Json
from assay.types.codec import Problem
from assay.types.submission import Submission
from assay.types.trace import ToolCall, ToolResult, ToolStep, Trace
from tests.each import each
from tests.graded_traces import graded
from tests.wrong_input import nested


def calls(*booked: dict[str, Any], **extra: Json) -> Trace:
    """A trace of some bookings."""
    found = [ToolCall(name="book", arguments=one, id=str(n)) for n, one in enumerate(booked)]
    steps = [ToolStep(call=call, result=ToolResult(content="ok")) for call in found]
    return Trace(steps=[*steps], extra=extra)


def values(of: Trace, **matcher: Any) -> tuple[float | None, float | None]:
    """The value of each kind that demands one booking."""
    wanted = [{"name": "book", **matcher}]
    by_trace = graded(TraceGrader, of, require_tools=wanted)
    return by_trace.value, graded(ToolCorrectnessGrader, of, expected=wanted).value


PARIS: dict[str, Json] = {"city": "Paris", "nights": 3}


_FITS: list[tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]] = [
    ({"args": PARIS}, [PARIS, {"nights": 3.0, "city": "Paris"}], [{"city": "Paris"}]),
    ({"args": PARIS}, [], [{**PARIS, "x": None}, {**PARIS, "nights": "3"}, {}]),
    ({"args": PARIS, "args_mode": "superset"}, [{**PARIS, "x": 1}], [{"city": "Paris"}]),
    ({"args": PARIS, "args_mode": "subset"}, [{"nights": 3}, {}], [{"x": 1}, {"nights": 4}]),
    ({"args": PARIS, "args_mode": "ignore"}, [{}, {"x": 1}], []),
    ({"args": {"ok": True}}, [{"ok": True}], [{"ok": 1}, {"ok": "true"}, {"ok": None}]),
    ({"args": {"a": {"b": [1, "x"]}}}, [{"a": {"b": [1, "x"]}}], [{"a": {"b": [1]}}]),
    ({"args": {"a": {"b": 1}}, "args_mode": "superset"}, [], [{"a": {"b": 1, "c": 2}}]),
    (
        {"args": {"at": [1.0, 2]}, "args_rules": {"at": {"tolerance": 0.25}}},
        [{"at": [1.25, 2]}, {"at": [0.75, 1.9]}],
        [{"at": [1.26, 2]}, {"at": [1, float("nan")]}, {"at": [True, 2]}, {"at": [10**400, 2]}],
    ),
    (
        {"args": {"q": "The Nile!"}, "args_rules": {"q": {"text": "normalized"}}},
        [{"q": "nile"}, {"q": " THE  NILE"}],
        [{"q": "the blue nile"}, {"q": ["nile"]}, {"q": None}],
    ),
    (
        {"args_rules": {"code": {"pattern": "^[A-Z]{3}$"}}},
        [{"code": "CDG"}],
        [{"code": "cdg"}, {"code": ["CDG"]}, {"code": 3}, {}, {"code": "CDG", "x": 1}],
    ),
    (
        {"args": {"a": 1}, "args_rules": {"unit": {"any_of": ["m", None], "optional": True}}},
        [{"a": 1}, {"a": 1, "unit": "m"}, {"a": 1, "unit": None}],
        [{"a": 1, "unit": "km"}, {"unit": "m"}],
    ),
    (
        {"args": {"a": 1, "at": 5}, "args_rules": {"at": {"ignore": True}}},
        [{"a": 1}, {"a": 1, "at": "x"}],
        [{"at": 5}],
    ),
]


@each(("matcher", "fits", "does_not"), _FITS)
def test_which_arguments_fit(
    matcher: dict[str, Any], fits: list[dict[str, Any]], does_not: list[dict[str, Any]]
) -> None:
    for arguments in fits:
        assert values(calls(arguments), **matcher) == (1.0, 1.0), arguments
    for arguments in does_not:
        assert values(calls(arguments), **matcher) == (0.0, 0.0), arguments


def test_what_is_wrong_with_the_nearest_call_is_told() -> None:
    wanted: list[Any] = [{"name": "book", "args": PARIS}]
    both = calls({"x": 1}, {"city": "Paris", "nights": 4})
    (check,) = (graded(TraceGrader, both, require_tools=wanted).metadata or {})["checks"]  # type: ignore[misc]
    assert isinstance(check, dict)
    assert check["what"] == 'name: book, args: {"city": "Paris", "nights": 3}'
    assert check["why"] == "nights is 4 instead of 3"
    told = (graded(ToolCorrectnessGrader, both, expected=wanted).metadata or {})["unmet"]
    assert told == [f"1. {check['what']}: {check['why']}"]


def test_each_position_with_the_right_arguments_earns_its_part() -> None:
    did = calls({"n": 1}, {"n": 7}, {"n": 3}, {"n": 4})
    wanted: list[Any] = [{"name": "book", "args": {"n": n}} for n in (1, 2, 3, 4)]
    score = graded(ToolCorrectnessGrader, did, expected=wanted, ordered=True)
    assert score.value == 0.75
    assert (score.metadata or {})["unmet"] == ['2. name: book, args: {"n": 2}: n is 1 instead of 2']
    assert graded(TraceGrader, did, require_tools=wanted).value == 0.75
    back = graded(ToolCorrectnessGrader, did, expected=wanted[::-1], ordered=True)
    assert back.value == 0.25


def test_true_and_one_are_two_tools_to_expect() -> None:
    wanted: list[Any] = [{"name": "book", "args": {"n": n}} for n in (1, True)]
    assert graded(ToolCorrectnessGrader, calls({"n": 1}, {"n": 1}), expected=wanted).value == 0.5
    assert graded(ToolCorrectnessGrader, calls({"n": 1}, {"n": True}), expected=wanted).value == 1.0


# Bans


@each(
    ("arguments", "is_banned"),
    [
        ({"to": "eve@x.org"}, True),
        ({"to": "eve@x.org", "more": 1}, True),
        ({"to": " EVE@x.org "}, True),
        ({"to": ["bob@x.org", {"cc": "\uff45ve@x.org"}]}, True),
        ({"_": '{"to": "eve@x.org"'}, True),
        ({"to": "bob@x.org"}, False),
        ({"cc": "eve@x.org"}, False),
    ],
)
@each("ban", [{"args": {"to": "eve@x.org"}}, {"args_rules": {"to": {"pattern": r"eve@x\.org"}}}])
def test_attack_a_ban_is_not_evaded_by_writing(
    ban: dict[str, Any], arguments: dict[str, Any], *, is_banned: bool
) -> None:
    if "\uff45" in str(arguments) and "args" in ban:
        return  # other characters are another text: a pattern also reads what they stand for
    matcher = {"name": "book", "args_mode": "superset", **ban}
    score = graded(TraceGrader, calls(arguments), forbid_tools=[matcher])
    assert score.value == (0.0 if is_banned else 1.0)


def test_a_ban_on_all_arguments_is_refused() -> None:
    with pytest.raises(InputError, match="evades a ban") as caught:
        TraceGrader(forbid_tools=[ToolMatcher(name="book", args={"to": "eve"})])
    assert caught.value.location.field == "forbid_tools[0].args_mode"


def test_arguments_that_the_harness_does_not_tell_are_an_error() -> None:
    untold = Trace(
        steps=[ToolStep(call=ToolCall(name="book"))], extra={"untold": "the tracer keeps none"}
    )
    with pytest.raises(GraderError, match="nothing of the input of calls"):
        values(untold, args={"a": 1})


# What the trace can do


@each(
    "value",
    [
        nested(20_000),
        {"a": nested(20_000)},
        "x" * 5_000_000,
        float("inf"),
        10**5_000,
        None,
    ],
)
@each("rule", [{"any_of": [[[1]], "x", 1, {"a": [1]}]}, {"pattern": "(a*)*b"}, {"tolerance": 1}])
def test_attack_arguments_of_any_size_and_depth(value: Any, rule: dict[str, Any]) -> None:
    args = {"a": 1} if "tolerance" in rule else None
    matcher = {"args": args, "args_rules": {"a": rule}}
    done = calls({"a": value})
    assert values(done, **matcher) == (0.0, 0.0)
    ban = [{"name": "book", "args_mode": "superset", **matcher}]
    assert graded(TraceGrader, done, forbid_tools=ban).status == "scored"


def test_attack_more_than_is_read_fits_no_demand_and_every_ban(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("assay.graders.tool_arguments._MOST_READ", 1_000)
    matcher = {"args_mode": "superset", "args_rules": {"a": {"pattern": "good"}}}
    long = calls({"a": "good " * 500})
    assert values(long, **matcher) == (0.0, 0.0)
    ban = {"name": "book", "args_mode": "superset", "args_rules": {"a": {"pattern": "evil"}}}
    assert graded(TraceGrader, long, forbid_tools=[ban]).value == 0.0


def test_many_tools_and_calls_are_compared_in_time() -> None:
    did = calls(*[{"n": n, "text": "x" * 1_000} for n in range(300)])
    wanted = [{"name": "book", "args_mode": "superset", "args": {"n": n}} for n in range(100)]
    score = graded(ToolCorrectnessGrader, did, expected=wanted)
    assert (score.metadata or {})["paired"] == 100


_LEAVES = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "1", "A b"])
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner),
    max_leaves=5,
)
_ARGUMENTS = st.dictionaries(st.sampled_from("abcd"), _VALUES, max_size=4)


@given(wanted=_ARGUMENTS, said=_ARGUMENTS)
def test_the_modes_agree_with_each_other(wanted: dict[str, Json], said: dict[str, Json]) -> None:
    def fits(mode: Any, given: dict[str, Json] = said) -> bool:
        matcher = ToolMatcher(name="t", args=wanted, args_mode=mode)
        return ArgumentMatching().fits(matcher, given)

    assert fits("ignore")
    assert fits("exact", wanted)
    assert fits("exact") == (fits("subset") and fits("superset"))
    shared = {name: value for name, value in wanted.items() if name in said}
    assert fits("subset", shared)
    assert fits("superset", {**said, **wanted})
    matcher = ToolMatcher(name="t", args=wanted, args_mode="superset")
    if fits("superset"):
        assert ArgumentMatching().may_be(matcher, said), "what fits a demand breaks the same ban"
    for name in wanted:
        without = {key: value for key, value in wanted.items() if key != name}
        assert not fits("exact", without)
        loose = ToolMatcher(name="t", args=wanted, args_rules={name: ArgumentRule(ignore=True)})
        assert ArgumentMatching().fits(loose, without)


# Mistakes of authors, and rows

_MISTAKES: list[tuple[dict[str, Any], str, str]] = [
    ({"args_mode": "subset"}, "args_mode", "compares nothing without args"),
    ({"args": {"a": float("nan")}}, "args", "not JSON"),
    ({"args": {"a": nested(300)}}, "args", "not JSON"),
    ({"args_rules": {"a": {"tolerence": 1}}}, "args_rules.a.tolerence", "mean 'tolerance'"),
    ({"args_rules": {"a": {"pattern": "(?=a)"}}}, "args_rules.a.pattern", "look-ahead"),
    ({"args_rules": {"a": {"any_of": []}}}, "args_rules.a", "any_of is empty"),
    ({"args_rules": {"a": {"any_of": [1], "pattern": "a"}}}, "args_rules.a", "write one"),
    ({"args": {"city": 1}, "args_rules": {"ctiy": {"tolerance": 1}}}, "args_rules.ctiy", "'city'"),
    ({"args_rules": {"a": {"tolerance": 1}}}, "args_rules.a", "has no value in args"),
    ({"args": {"a": 1}, "args_rules": {"a": {"any_of": [1]}}}, "args_rules.a", "says already"),
    ({"args": {"a": "b"}, "args_rules": {"a": {"tolerance": 1}}}, "args_rules.a", "is of numbers"),
]


@each(("matcher", "field", "said"), _MISTAKES)
@each("kind", ["trace", "tool_correctness"])
def test_what_an_author_cannot_mean_is_refused_with_its_place(
    kind: str, matcher: dict[str, Any], field: str, said: str
) -> None:
    option = "require_tools" if kind == "trace" else "expected"
    problems: list[Problem] = []
    read_spec({"type": kind, option: [{"name": "book", **matcher}]}, (), problems, base=".")
    assert [problem.field for problem in problems] == [f"{option}[0].{field}"]
    assert said in problems[0].message + problems[0].hint


def test_the_expected_calls_of_each_row() -> None:
    problems: list[Problem] = []
    spec = read_spec(
        {"type": "tool_correctness", "expected": {"from": "metadata.calls"}}, (), problems, base="."
    )
    assert isinstance(spec, GraderSpec)
    rows: list[tuple[Json, float]] = [
        ([{"name": "book", "args": PARIS}], 1.0),
        ([{"name": "book", "args": {**PARIS, "nights": 2}}], 0.0),
        ([{"name": "book", "args": {"from": "expected"}}], 0.0),
        ([{"name": "book", "args": PARIS, "args_rules": {"nights": {"tolerance": 1}}}], 1.0),
    ]
    for wanted, value in rows:
        work = Submission(answer="", trace=calls(PARIS), metadata={"calls": wanted})
        assert asyncio.run(grade_alone(spec, work)).value == value
    wrong: Json = [{"name": "book", "args_rules": {"nights": {"tolerence": 1}}}]
    work = Submission(answer="", trace=calls(PARIS), metadata={"calls": wrong})
    score = asyncio.run(grade_alone(spec, work))
    assert (score.status, score.value) == ("error", None)
    assert "metadata.calls[0].args_rules.nights.tolerence" in score.reason
    assert "did you mean 'tolerance'" in score.reason
