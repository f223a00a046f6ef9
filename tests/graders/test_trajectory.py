"""The kinds ``trace``, ``tool_correctness`` and ``efficiency``, and how they are cheated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import GraderError, InputError
from assay.graders.base import Grader
from assay.graders.tool_calls import CallMatching, ObservedCall, ToolMatcher, observed_calls
from assay.graders.tool_correctness import ToolCorrectnessGrader, largest_matching, longest_in_order
from assay.graders.trace import EfficiencyGrader, TraceGrader
from assay.graders.usage import RunUsage, totals_of
from assay.scoring.json_safe import Json
from assay.types.submission import Workspace
from assay.types.trace import (
    AgentStep,
    Step,
    SubagentStep,
    ToolCall,
    ToolKind,
    ToolResult,
    ToolStep,
    Trace,
    Usage,
)
from tests.each import each
from tests.graded_traces import checked, did, failing, graded, trace


def failed(name: str) -> ToolStep:
    """A tool call that ended in an error."""
    return replace(did(name), result=ToolResult(content="no such tool", is_error=True))


def denied(name: str, kind: ToolKind = "execute", **arguments: Json) -> ToolStep:
    """A tool call that was not allowed."""
    return replace(did(name, kind, **arguments), permission="denied", result=None)


def used(tokens: int | None = None, cost: float | None = None) -> Json:
    """What an agent says that the run used."""
    return RunUsage(tokens=tokens, cost_usd=cost).to_dict()


BASH, WRITE = did("Bash", command="pytest"), did("Write", "write", file_path="/workspace/a.py")


@each(
    ("options", "broken"),
    [
        ({"require_tools": [{"kind": "execute"}]}, []),
        ({"require_tools": [{"kind": "execute"}, {"name": "run_tests"}]}, ["require_tools"]),
        ({"require_tools": [{"kind": "write", "name": "Bash"}]}, ["require_tools"]),
        ({"require_tools": [{"raw_name": "Write"}]}, []),
        ({"require_tools": [{"kind": "write", "path_glob": "*.py"}]}, []),
        ({"require_tools": [{"kind": "write", "path_glob": "b.py"}]}, ["require_tools"]),
        ({"require_tools": [ToolMatcher(kind="write")]}, []),
        ({"forbid_tools": [{"kind": "fetch"}]}, []),
        ({"forbid_tools": [{"kind": "write"}, {"kind": "fetch"}]}, ["forbid_tools"]),
        ({"max_tool_calls": 2}, []),
        ({"max_tool_calls": 1}, ["max_tool_calls"]),
        ({"max_tool_calls": {"write": 1, "execute": 0, "fetch": 0}}, ["max_tool_calls"]),
        ({"max_tokens": 100, "max_cost_usd": 0.5}, []),
        ({"max_tokens": 99, "max_cost_usd": 0.4}, ["max_tokens", "max_cost_usd"]),
        ({"require_no_denied": True}, []),
        ({"require_tools": [{"kind": "execute"}, {"kind": "write"}], "ordered": True}, []),
        ({"require_tools": [{"kind": "write"}, {"kind": "execute"}], "ordered": True}, ["ordered"]),
    ],
)
def test_assertions(options: dict[str, Any], broken: list[str]) -> None:
    score = checked(trace(BASH, WRITE, usage=used(100, 0.5)), **options)
    assert failing(score) == broken
    assert score.passed is not bool(broken)


def test_the_value_is_the_fraction_that_holds() -> None:
    matchers = [{"kind": kind} for kind in ("execute", "write", "fetch")]
    assert checked(trace(BASH, WRITE), require_tools=matchers, max_tool_calls=5).value == 0.75


_TRACE: list[tuple[dict[str, Any], str]] = [
    ({}, "asserts nothing"),
    ({"require_tools": []}, "asserts nothing"),
    ({"require_no_denied": False}, "asserts nothing"),
    ({"max_tool_calls": {"write": -1}}, "max_tool_calls.write: must be 0 or more"),
    ({"max_tool_calls": {"wrte": 1}}, "did you mean 'write'"),
    ({"max_cost_usd": float("nan")}, "0 or more"),
    ({"max_tokens": float("nan")}, "whole number|0 or more"),
    ({"max_tool_calls": float("inf")}, "whole number|0 or more"),
    ({"require_tools": [{"kind": "execute"}], "ordered": True}, "two require_tools"),
    ({"require_tools": [{}]}, "a tool matcher needs"),
    ({"require_tools": [{"kind": "execute"}] * 1_001}, "at most 1000"),
]
_EFFICIENCY: list[tuple[dict[str, Any], str]] = [
    ({}, "needs a target"),
    ({"target_tokens": 0}, "more than 0"),
    ({"target_cost_usd": -0.1}, "more than 0"),
    ({"target_cost_usd": float("inf")}, "more than 0"),
    ({"target_tokens": float("inf")}, "whole number|more than 0"),
    ({"target_tokens": 5, "pass_threshold": 2}, "pass_threshold"),
]
_CORRECTNESS: list[tuple[dict[str, Any], str]] = [
    ({"expected": []}, "empty"),
    ({"expected": ["execute"] * 1_001}, "at most 1000"),
    ({"expected": ["exec"]}, "did you mean"),
]


@each(
    ("kind", "options", "said"),
    [
        (kind, *row)
        for kind, rows in (
            (TraceGrader, _TRACE),
            (EfficiencyGrader, _EFFICIENCY),
            (ToolCorrectnessGrader, _CORRECTNESS),
        )
        for row in rows
    ],
)
def test_options_that_say_nothing_or_too_much(
    kind: type[Grader], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        kind.check_options(options)
    with pytest.raises((GraderError, InputError), match=said):
        graded(kind, trace(BASH), **options)


def test_no_trace_from_this_harness_is_skipped() -> None:
    hidden = trace(AgentStep(content="x"), said="x", observed=False)
    assert checked(hidden, max_tool_calls=3).status == "skipped"
    assert graded(EfficiencyGrader, hidden, target_tokens=5).status == "skipped"
    assert graded(ToolCorrectnessGrader, hidden, expected=["execute"]).status == "skipped"


def test_seconds_are_of_the_run_or_of_the_steps_and_what_nobody_measured_is_an_error() -> None:
    for budget in ("max_tokens", "max_cost_usd", "max_seconds"):
        with pytest.raises(GraderError, match=f"{budget}: the harness does not measure"):
            checked(trace(BASH), **{budget: 10})
    start, end = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09+00:00"
    steps = trace(replace(BASH, started_at=start), replace(WRITE, ended_at=end))
    assert checked(steps, max_seconds=9).value == 1.0
    assert checked(steps, max_seconds=8).value == 0.0
    assert checked(trace(BASH, usage={"seconds": 3}), max_seconds=3).value == 1.0
    for odd in ("2026-01-01T00:00:09", "yesterday", "1900-01-01T00:00:00Z"):
        other = trace(replace(BASH, started_at=start), replace(WRITE, ended_at=odd))
        with pytest.raises(GraderError, match="does not measure seconds"):
            checked(other, max_seconds=9)


# What counts as a call


def test_a_request_and_its_round_trip_are_one_call_and_one_id_hides_none() -> None:
    call = ToolCall(name="Bash", id="a")
    unnamed = ToolCall(name="Read")
    asked = AgentStep(tool_calls=(call, unnamed, unnamed, ToolCall(name="Grep", id="b")))
    steps = trace(asked, ToolStep(call=unnamed), ToolStep(call=call))
    assert [seen.call.name for seen in observed_calls(steps)] == ["Bash", "Read", "Read", "Grep"]
    steps = trace(AgentStep(tool_calls=(call, call)), *[ToolStep(call=call)] * 3)
    assert len(observed_calls(steps)) == 3
    assert checked(steps, max_tool_calls=2).value == 0.0


def test_calls_of_a_subagent_count() -> None:
    inner = trace(did("Bash"), SubagentStep(subagent=trace(did("WebFetch", "fetch"))))
    steps = trace(SubagentStep(subagent=inner))
    assert [seen.kind for seen in observed_calls(steps)] == ["execute", "fetch"]
    assert checked(steps, forbid_tools=[{"kind": "fetch"}]).value == 0.0


def test_copied_context_is_nobodys_work() -> None:
    copied = replace(BASH, extra={"is_copied_context": True})
    turn = AgentStep(usage=Usage(prompt_tokens=1, completion_tokens=1), extra=copied.extra)
    steps = trace(copied, turn, AgentStep(usage=Usage(prompt_tokens=5, completion_tokens=5)))
    assert observed_calls(steps) == []
    assert totals_of(steps).tokens == 10


def test_a_tool_that_was_asked_for_and_never_ran_is_not_what_was_demanded() -> None:
    for step in (denied("run_tests"), failed("run_tests")):
        assert checked(trace(step), require_tools=[{"name": "run_tests"}]).value == 0.0
        by_name: dict[str, Any] = {"expected": ["run_tests"], "match": "name"}
        assert graded(ToolCorrectnessGrader, trace(step), **by_name).value == 0.0
    unknown = ToolStep(call=ToolCall(name="run_tests"))  # without a recorded result: it ran
    assert checked(trace(unknown), require_tools=[{"name": "run_tests"}]).value == 1.0


def test_attack_calls_that_are_only_asked_for_in_the_last_turn() -> None:
    """Nobody ran them, and where results are told that shows; what hands in the work has none."""
    last = AgentStep(content="Done.", tool_calls=(ToolCall(name="run_tests", id="2"),))
    steps = trace(did("Bash", command="ls"), last)
    node = checked(steps, require_tools=[{"name": "run_tests"}])
    assert node.value == 0.0
    assert "only a call of which no result came" in str(node.metadata)
    assert checked(steps, forbid_tools=[{"name": "run_tests"}]).value == 0.0
    by_name: dict[str, Any] = {"expected": ["Bash", "run_tests"], "match": "name"}
    assert graded(ToolCorrectnessGrader, steps, **by_name).value == 0.5
    ends = ("submit_answer", "attempt_completion", "mcp__env__submit", "transferToHumanAgent")
    work = ("submit_order", "complete_refund", "stop_service", "transfer_funds", "answer_ticket")
    for name in (*ends, "transfer_to_human_agents", "handoff", "task_done", "FinalAnswer", *work):
        handed_in = AgentStep(tool_calls=(ToolCall(name=name, id="2"),))
        steps = trace(did("Bash", command="ls"), handed_in)
        node = checked(steps, require_tools=[{"name": name}])
        assert node.value == float(name not in work), name


def test_a_denied_call_is_still_a_call_and_still_banned() -> None:
    steps = trace(denied("Bash", command="curl x"))
    for banned in (
        {"forbid_tools": [{"name": "Bash"}]},
        {"max_tool_calls": 0},
        {"require_no_denied": True},
    ):
        assert checked(steps, **banned).value == 0.0


# Paths


@each(
    "path",
    [
        "tests/a.py",
        "./tests/a.py",
        "/workspace/tests/a.py",
        "//workspace//tests/a.py",
        "src/../tests/a.py",
        "/workspace/src/../tests//a.py",
        "../workspace/tests/a.py",
        "file:///workspace/tests/a.py",
        "/home/me/work/tests/a.py",
    ],
)
@each("glob", ["tests/*", "./tests/*.py", "/workspace/tests/a.py"])
def test_a_path_written_in_another_way_is_the_same_path(path: str, glob: str) -> None:
    if path.startswith("/home") and glob.startswith("/workspace"):
        return
    steps = trace(did("Edit", "write", edits=[{"to": path}]), session={"cwd": "/home/me/work"})
    matcher = {"kind": "write", "path_glob": glob}
    assert checked(steps, forbid_tools=[matcher]).value == 0.0
    assert checked(steps, require_tools=[matcher]).value == 1.0


@each("path", ["src/a.py", "tests2/a.py", "/tests/a.py", "../tests/a.py", ""])
def test_another_path_is_another_path(path: str) -> None:
    steps = trace(did("Edit", "write", path=path))
    assert checked(steps, forbid_tools=[{"path_glob": "tests/*"}]).value == 1.0


def test_a_banned_path_behind_more_words_than_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.graders.tool_calls._MOST_WORDS", 1_000)
    steps = trace(did("Bash", command="x " * 2_000 + "tests/a.py"))
    assert checked(steps, forbid_tools=[{"path_glob": "tests/*"}]).value == 0.0
    assert checked(steps, forbid_tools=[{"kind": "write", "path_glob": "tests/*"}]).value == 1.0


@each("name", ["input", "command"])
def test_attack_input_too_deep_or_too_long_to_print_is_no_error(name: str) -> None:
    deep: Json = 10**5_000
    for _ in range(20_000):
        deep = [deep]
    values: list[Json] = [deep, 10**5_000, [10**5_000, deep, ["http://x.org"]]]
    for value in values:
        steps = trace(did("mcp__a__b", None, **{name: value}))
        assert checked(steps, forbid_tools=[{"path_glob": "tests/*"}]).status == "scored"
    linked = trace(did("mcp__a__b", None, **{name: values[-1]}))
    assert checked(linked, forbid_tools=[{"kind": "fetch"}]).value == 0.0


# Nothing, and not everything


@each("steps", [trace(), trace(Step(source="user")), trace(AgentStep(content=" "), said="")])
def test_doing_nothing_keeps_every_budget_and_earns_nothing(steps: Trace) -> None:
    budgets: dict[str, Any] = {"max_tool_calls": 5, "max_tokens": 9, "require_no_denied": True}
    steps.extra["usage"] = used(0, 0.0)
    assert checked(steps, **budgets).value == 0.0
    for changes in (None, ()):
        workspace = Workspace(path="/w", changes=changes)
        cheap = graded(EfficiencyGrader, steps, target_tokens=5, answer="", workspace=workspace)
        assert (cheap.value, cheap.passed) == (0.0, False)


def test_work_without_tools_is_work() -> None:
    steps = trace(usage=used(0, 0.0))
    workspace = Workspace(path="/w", changes=("a.py",))
    assert checked(steps, workspace=workspace, max_tool_calls=5).value == 1.0
    assert checked(trace(said="42"), max_tool_calls=5).value == 1.0
    targets = {"target_cost_usd": 0.3, "target_tokens": 2000, "target_tool_calls": 20}
    assert graded(EfficiencyGrader, steps, workspace=workspace, **targets).value == 1.0


def test_cutting_off_the_recorder() -> None:
    cut = trace(BASH, incomplete="the stream was cut off", usage=used())
    options: dict[str, Any] = {"max_tool_calls": 5, "max_tokens": 10**9, "require_no_denied": True}
    kinds = {"require_tools": [{"kind": "execute"}], "forbid_tools": [{"kind": "fetch"}]}
    score = checked(cut, **options, **kinds)
    assert failing(score) == ["forbid_tools", "max_tool_calls", "max_tokens", "require_no_denied"]
    cheap = graded(EfficiencyGrader, cut, target_tokens=10**9, target_tool_calls=9)
    assert cheap.value == 0.0
    right = graded(ToolCorrectnessGrader, cut, expected=["execute"])
    assert right.value == pytest.approx(2 / 3)


# Efficiency


@each(
    ("options", "value", "passed"),
    [
        ({"target_tokens": 100}, 1.0, True),
        ({"target_tokens": 50}, 0.5, False),
        ({"target_tokens": 50, "target_tool_calls": 5}, 0.75, False),
        ({"target_tokens": 50, "target_tool_calls": 5, "pass_threshold": 0.75}, 0.75, True),
        ({"target_cost_usd": 0.1, "target_tokens": 100}, 1.0, True),
    ],
)
def test_efficiency(options: dict[str, Any], value: float, *, passed: bool) -> None:
    score = graded(EfficiencyGrader, trace(BASH, usage=used(100)), **options)
    assert (score.value, score.passed) == (value, passed)


def test_an_unknown_quantity_is_left_out_and_said() -> None:
    score = graded(
        EfficiencyGrader, trace(BASH, usage=used(100)), target_cost_usd=0.1, target_tokens=50
    )
    assert score.value == 0.5
    assert (score.metadata or {})["not_measured"] == ["cost_usd"]
    for untold in (trace(BASH), trace(BASH, usage={"cost_usd": None})):
        with pytest.raises(GraderError, match="unknown is not 0"):
            graded(EfficiencyGrader, untold, target_cost_usd=0.1)


@each("tokens", [-5, True, "0", float("nan"), float("inf")])
def test_attack_a_negative_or_false_amount_is_no_error_that_an_agent_can_choose(
    tokens: Json,
) -> None:
    wrong = trace(BASH, usage={"tokens": tokens, "cost_usd": 0.5})
    assert (totals_of(wrong).tokens, totals_of(wrong).refused) == (None, ("tokens",))
    assert graded(EfficiencyGrader, wrong, target_tokens=5).value == 0.0
    score = checked(wrong, max_tokens=5, max_cost_usd=1.0, max_tool_calls=1)
    assert failing(score) == ["max_tokens"]
    with pytest.raises(GraderError, match="unknown is not 0"):
        checked(wrong, max_seconds=5)


def test_totals_are_summed_only_where_every_turn_tells_its_part() -> None:
    told = AgentStep(usage=Usage(prompt_tokens=3, completion_tokens=4, cost_usd=0.5))
    free = AgentStep(usage=Usage(llm_call_count=0))
    inner = SubagentStep(subagent=trace(told))
    assert totals_of(trace(told, free, inner)) == RunUsage(tokens=14, cost_usd=1.0)
    assert totals_of(trace(told, AgentStep())) == RunUsage()
    assert totals_of(trace(told, AgentStep(usage=Usage(prompt_tokens=3)))) == RunUsage()
    negative = AgentStep(usage=Usage(prompt_tokens=-3, completion_tokens=4))
    assert totals_of(trace(told, negative)).tokens is None
    assert failing(checked(trace(BASH, told, negative), max_tokens=99)) == ["max_tokens"]


# Tool correctness


@each(
    ("expected", "options", "value"),
    [
        (["execute", "write"], {}, 1.0),
        (["execute", "write"], {"ordered": True}, 1.0),
        (["write", "execute"], {}, 1.0),
        (["write", "execute"], {"ordered": True}, 0.5),
        (["execute"], {}, 2 / 3),
        (["execute", "write", "fetch"], {}, 0.8),
        (["fetch"], {}, 0.0),
        (["Bash", "Write"], {"match": "name"}, 1.0),
        ([{"path_glob": "a.py"}, "execute"], {}, 1.0),
        ([{"path_glob": "b.py"}, "execute"], {}, 0.5),
        (["execute"], {"measure": "recall"}, 1.0),
        (["execute", "execute"], {"measure": "recall"}, 0.5),
        (["execute", "write", "fetch"], {"measure": "recall"}, 2 / 3),
        (["execute", "write", "fetch"], {"measure": "precision"}, 1.0),
        (["execute"], {"measure": "precision"}, 0.5),
        (["write", "execute"], {"measure": "recall", "ordered": True}, 0.5),
    ],
)
def test_tool_correctness(
    expected: Sequence[Json], options: Mapping[str, Any], value: float
) -> None:
    score = graded(ToolCorrectnessGrader, trace(BASH, WRITE), expected=expected, **options)
    assert score.value == pytest.approx(value)
    assert score.passed is (value == 1.0)


@each("measure", ["recall", "precision"])
def test_an_agent_that_calls_nothing_has_left_nothing_out(measure: str) -> None:
    score = graded(ToolCorrectnessGrader, trace(), expected=["execute"], measure=measure)
    assert not score.value


@given(st.lists(st.integers(0, 15), max_size=6))
def test_the_largest_matching_is_the_largest(masks: list[int]) -> None:
    padded = [*masks, *[0] * 4]
    best = max(
        sum(1 for bit, column in enumerate(order) if padded[column] >> bit & 1)
        for order in permutations(range(len(padded)), 4)
    )
    assert largest_matching(4, masks) == best


@given(st.lists(st.integers(0, 255), max_size=12))
def test_the_longest_in_order_is_the_longest(masks: list[int]) -> None:
    lengths = [[0] * 9 for _ in range(len(masks) + 1)]
    for row, mask in enumerate(masks):
        for bit in range(8):
            both = lengths[row][bit] + (mask >> bit & 1)
            lengths[row + 1][bit + 1] = max(both, lengths[row][bit + 1], lengths[row + 1][bit])
    assert longest_in_order(8, masks) == lengths[-1][-1]
    assert longest_in_order(8, masks) <= largest_matching(8, masks)


def test_ten_thousand_calls_are_matched_in_time() -> None:
    kinds: tuple[ToolKind, ...] = ("read", "write", "execute", "search")
    steps = trace(*[did(f"t{n % 300}", kinds[n % 4], path=f"{n}.py") for n in range(10_000)])
    expected = [{"name": f"t{n % 300}"} if n % 2 else {"kind": kinds[n % 4]} for n in range(1_000)]
    score = graded(ToolCorrectnessGrader, steps, expected=expected, ordered=True)
    assert (score.metadata or {})["paired"] == 1_000


def test_a_matcher_says_what_it_matches() -> None:
    assert str(ToolMatcher(kind="write", path_glob="a*")) == "kind: write, path_glob: a*"
    matching = CallMatching(trace())
    call = ObservedCall(call=ToolCall(name="bash", raw_name="Bash"))
    assert matching.meets(ToolMatcher(raw_name="Bash"), call)
    assert matching.meets(ToolMatcher(kind="other"), call)
    assert not matching.meets(ToolMatcher(raw_name="bash"), call)
