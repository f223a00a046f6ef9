"""agentevals' own tests of trajectory match, by the kind ``tool_correctness``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from assay.agents.transcripts import read_transcript
from assay.graders import ToolCorrectnessGrader
from bench.proof.material import Case, Difference, Source
from bench.proof.their_tests import Inexpressible, StandIns
from bench.proof.their_tests import cases as cases_of

ABOUT = "tool_correctness passes the trajectories that agentevals' own tests say match"
SOURCE = Source("langchain-ai/agentevals", "946ad15b9f2ce9bc9843edd2bb773bd07d78ca7e", "MIT")
AGREE, OF = 86, 112
DIFFERENCES = (
    Difference(
        "*",
        "by design",
        "The author hands over a function of Python that compares arguments. A definition is data; "
        "such a comparison is a `function` grader that takes the trace.",
        said="needs a function*",
    ),
    Difference(
        "*",
        "assay",
        "One field inside of an argument is compared and the rest of the argument is not.",
        said="needs a part of an argument*",
    ),
    Difference(
        "*:test_trajectory_with_different_tool_message_order:3",
        "by design",
        "Calls are compared in the order in which they were asked for, also those of one turn.",
    ),
)
_MODES: Mapping[str, Mapping[str, Any]] = {
    "strict": {"ordered": True},
    "unordered": {},
    "superset": {"measure": "recall"},
    "subset": {"measure": "precision"},
}


def cases(directory: Path) -> Iterator[Case]:
    """Each test of both files, of which the second awaits its evaluator."""
    for name in ("test_trajectory", "test_trajectory_async"):
        file = directory / "python/tests" / f"{name}.py"
        if file.is_file():
            yield from cases_of(file, _STAND_INS)


def _sync(**told: object) -> Callable[..., dict[str, object]]:
    def evaluated(**given: object) -> dict[str, object]:
        return asyncio.run(_evaluated(told, given))

    return evaluated


def _async(**told: object) -> Callable[..., Awaitable[dict[str, object]]]:
    def evaluated(**given: object) -> Awaitable[dict[str, object]]:
        return _evaluated(told, given)

    return evaluated


async def _evaluated(told: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, object]:
    """The verdict of `tool_correctness` on ``outputs``, as agentevals writes one."""
    mode = told.get("trajectory_match_mode", "strict")
    expected = [
        _matcher(call["function"], told)
        for message in given["reference_outputs"]
        for call in message.get("tool_calls") or ()
    ]
    trace = read_transcript(json.dumps({"messages": given["outputs"]})).trace
    score = await ToolCorrectnessGrader.grade(
        trace=trace, match="name", expected=expected, **_MODES[mode]
    )
    key = f"trajectory_{mode}_match"
    return {"key": key, "score": score.value == 1.0, "comment": None, "metadata": None}


def _matcher(call: Mapping[str, str], told: Mapping[str, Any]) -> dict[str, object]:
    """What is expected of a call, where the tool may have a rule of its own."""
    name, args = call["name"], json.loads(call["arguments"])
    mode = told.get("tool_args_match_mode", "exact")
    rules: Mapping[str, object] = told.get("tool_args_match_overrides", {})
    rule = rules.get(name)
    if callable(rule):
        raise Inexpressible("a function that compares arguments")
    if isinstance(rule, list):
        keys = cast("list[str]", rule)
        if any("." in key for key in keys):
            raise Inexpressible("a part of an argument, compared alone")
        args, mode = {key: args[key] for key in keys}, "superset"
    return {"name": name, "args": args, "args_mode": rule if isinstance(rule, str) else mode}


def _message(**told: object) -> dict[str, object]:
    return told


def _said_by_model(content: str, tool_calls: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    calls = [
        {
            "id": call["id"],
            "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
        }
        for call in tool_calls
    ]
    return {"role": "assistant", "content": content, "tool_calls": calls}


_STAND_INS = StandIns(
    {
        "agentevals.trajectory.match": {
            "create_trajectory_match_evaluator": _sync,
            "create_async_trajectory_match_evaluator": _async,
        },
        "agentevals.types": {"EvaluatorResult": _message, "ChatCompletionMessage": _message},
        "langchain_core.messages": {
            "HumanMessage": partial(_message, role="user"),
            "AIMessage": _said_by_model,
            "ToolMessage": partial(_message, role="tool"),
        },
    }
)
