"""``assay grade``: recorded answers through graders, or through one function."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from assay.cli.judging import add_judging
from assay.cli.options import Outputs, add_outputs, add_workers, bounds, explain, share
from assay.errors import InputError

__all__ = ["add", "run"]

_MORE = """\
A row has `answer` or `messages`, and may have `id`, `question`, `expected` and `metadata`. With
--label the grades are compared with what people said: confusion, accuracy, kappa.
With --function a file with `async def grade(thread: StringThread) -> float` gives the scores; a
row may have `completion` and `metadata` beside its `messages`. Exit status then: 0 every row was
graded, 1 the mean is under --fail-under, 2 bad input or an invalid function, 3 some row could not
be graded.
"""
_EXAMPLES = """\
  assay grade answers.jsonl --graders graders.yaml
  assay grade answers.jsonl --graders graders.yaml --label correct --json
  assay grade answers.jsonl --function grade.py"""


def add(parser: ArgumentParser) -> None:
    """Say what ``assay grade`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    option = parser.add_argument
    option("data", metavar="DATA.jsonl", help="rows of recorded answers")
    by = parser.add_mutually_exclusive_group(required=True).add_argument
    by("--graders", "-g", metavar="FILE", help="YAML file: a list of graders")
    by(
        "--function",
        metavar="FILE.py",
        help="one function, in the sandbox; scores as it gives them",
    )
    option(
        "--isolation",
        choices=("call", "batch"),
        help="with --function: a process for each call, or one for many",
    )
    option("--range", metavar="LOW,HIGH", type=bounds, help="with --function: what it may return")
    option("--label", metavar="FIELD", help="compare with this true/false or numeric field")
    option(
        "--threshold",
        type=share,
        metavar="X",
        help="reward that a row needs to pass: a single grader's own pass_threshold, else 1",
    )
    option(
        "--out",
        metavar="FILE",
        help="write every row with its grade as JSONL; with --function an interrupted run leaves "
        "FILE.partial, and the same command goes on from there",
    )
    add_workers(parser)
    add_judging(parser)
    add_outputs(parser)


def run(given: Namespace) -> int:
    """Grade a dataset."""
    if given.function is not None:
        return _grade_function(given)
    from assay.cli.grade_rows import grade_rows

    _refuse(given, ("isolation", "range"), goes_with="--function")
    return grade_rows(
        given.data,
        graders_file=given.graders,
        label=given.label,
        threshold=given.threshold,
        out=given.out,
        workers=given.workers,
        outputs=Outputs.of(given),
    )


def _grade_function(given: Namespace) -> int:
    from assay.cli.grade_function import FunctionOptions, grade_with_function

    _refuse(given, ("label", "threshold", "junit", "html"), goes_with="--graders")
    _refuse(
        given,
        ("max_cost", "judge_cache"),
        goes_with="--graders",
        why="a function runs in the sandbox and asks no model",
    )
    options = FunctionOptions(
        function=given.function,
        isolation=given.isolation or "call",
        range=given.range,
        out=given.out,
        workers=given.workers,
        json=given.json,
        fail_under=given.fail_under,
    )
    return grade_with_function(given.data, options)


def _refuse(
    given: Namespace, options: Sequence[str], *, goes_with: str, why: str = "leave it out"
) -> None:
    for option in options:
        if getattr(given, option) is not None:
            raise InputError(f"--{option.replace('_', '-')} goes with {goes_with}", hint=why)
