"""The gold calls of the Berkeley Function-Calling Leaderboard, and each with one thing wrong."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from assay.graders import ToolCorrectnessGrader, TraceGrader
from assay.graders.tool_arguments import ArgumentRule
from assay.graders.tool_calls import ToolMatcher
from assay.scoring.json_safe import Json
from assay.types.trace import AnyStep, ToolCall, ToolStep, Trace
from bench.proof.material import Case, Difference, Source

ABOUT = "tool_correctness and trace pass 2,501 right answers, and none with an argument wrong"
SOURCE = Source("bfcl-eval", "2026.3.23", "Apache-2.0", registry="PyPI")
AGREE, OF = 81_023, 81_060
DIFFERENCES = (
    Difference(
        "*/trace",
        "by design",
        "One call may be what `trace` demands twice. `tool_correctness` gives each its own.",
        said="less expected, 1.0",
    ),
)
_SETS = (
    "simple_python",
    "simple_java",
    "simple_javascript",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
)
_OPTIONAL = ""
"""What stands among the right values of an argument that may be left out."""

_Args: TypeAlias = dict[str, Json]


def cases(directory: Path) -> Iterator[Case]:
    """Each gold answer, each other right value in it, and each thing made wrong in it."""
    for name in _SETS:
        file = directory / f"bfcl_eval/data/possible_answer/BFCL_v4_{name}.json"
        lines = file.read_text("utf-8").splitlines() if file.is_file() else ()
        with asyncio.Runner() as runner:
            for line in lines:
                entry = json.loads(line)
                yield from _answer(runner, entry["id"], entry["ground_truth"])


def _answer(
    runner: asyncio.Runner, name: str, truth: Sequence[Mapping[str, Mapping[str, list[Any]]]]
) -> Iterator[Case]:
    """The gold calls of one question, in a run of an agent that made them, and in others."""
    wanted = [
        (tool, {arg: _expanded(values) for arg, values in args.items() if values})
        for call in truth
        for tool, args in call.items()
    ]
    expected = [_matcher(*call) for call in wanted]
    gold = [(tool, {arg: values[0] for arg, values in args.items()}) for tool, args in wanted]
    runs = [("gold", True, gold)]
    for place, (tool, args) in enumerate(wanted):
        for what, is_right, changed in _changed(gold[place][1], args):
            calls = [*gold[:place], (tool, changed), *gold[place + 1 :]]
            runs.append((f"{place}.{what}", is_right, calls))
    graders = (ToolCorrectnessGrader(expected=[*expected]), TraceGrader(require_tools=expected))
    for what, is_right, calls in runs:
        steps: list[AnyStep] = [
            ToolStep(call=ToolCall(name=tool, arguments=args)) for tool, args in calls
        ]
        for grader in graders:
            scored = runner.run(grader.score(Trace(steps=steps)))
            value = scored[0] if isinstance(scored, tuple) else None
            said = f"{'1' if is_right else 'less'} expected, {value}"
            yield Case(f"{name}/{what}/{grader.name}", (value == 1.0) == is_right, said)


def _matcher(tool: str, args: Mapping[str, list[Json]]) -> ToolMatcher:
    rules = {
        arg: ArgumentRule(any_of=values, optional=_OPTIONAL in values)
        for arg, values in args.items()
    }
    return ToolMatcher(name=tool, args=None if rules else {}, args_rules=rules)


def _changed(gold: _Args, args: Mapping[str, list[Json]]) -> Iterator[tuple[str, bool, _Args]]:
    """The arguments of a gold call with one of them changed: how, and whether that is right."""
    for arg, values in args.items():
        others = {key: value for key, value in gold.items() if key != arg}
        yield f"{arg}=none", _OPTIONAL in values, others
        for number, value in enumerate(values[1:], 1):
            yield f"{arg}=right{number}", True, {**others, arg: value}
        for what, value in _wrong(values):
            yield f"{arg}={what}", False, {**others, arg: value}
    yield "another", False, {**gold, "another_argument": 1}


def _wrong(values: Sequence[Json]) -> Iterator[tuple[str, Json]]:
    """Values that are like a right one, and are none: a changed one, and one of another type."""
    right = values[0]
    changed: Json
    if isinstance(right, bool):
        changed = not right
    elif isinstance(right, int | float):
        changed = right + 1
    elif isinstance(right, str):
        changed = f"{right} instead"
    elif isinstance(right, list):
        changed = right[:-1] if right else [0]
    else:
        changed = {**right, "another_field": 1} if isinstance(right, dict) else 0
    other: Json = [right] if isinstance(right, str) else json.dumps(right)
    for what, value in (("changed", changed), ("type", other)):
        if value not in values:
            yield what, value


def _expanded(values: Sequence[Any]) -> list[Json]:
    """The right values of an argument; an object is written with the right values of each field."""
    return [one for value in values for one in _each(value)]


def _each(value: Json) -> Iterator[Json]:
    if isinstance(value, dict):
        fields = [_field(name, values) for name, values in value.items()]
        for chosen in itertools.product(*fields):
            yield dict(itertools.chain.from_iterable(one.items() for one in chosen))
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        yield from map(list, itertools.product(*(list(_each(one)) for one in value)))
    else:
        yield value


def _field(name: str, values: Json) -> list[dict[str, Json]]:
    """What an object may have in one field; nothing, where it may be left out."""
    listed = values if isinstance(values, list) else [values]
    return [{} if one == _OPTIONAL else {name: one} for one in _expanded(listed)]
