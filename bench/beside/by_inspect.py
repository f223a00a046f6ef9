"""Inspect: its scorers in a real evaluation; code by a scorer like the one in its documentation.

Its local sandbox stands for the one in Docker: a container holds the agent, and the tests run in
it, too.
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

from typing import Any

import inspect_ai
from asked import ASKED, COMMAND, answer, cases
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, Scorer, Target, accuracy, choice, exact, match, math, scorer
from inspect_ai.solver import TaskState, generate, multiple_choice
from inspect_ai.util import sandbox

_CHOICES = ["Lyon", "Paris", "Rome", "Madrid"]


@scorer(metrics=[accuracy()])
def passes() -> Scorer:
    """Writes the hidden tests into the sandbox and runs them."""

    async def score(_state: TaskState, _target: Target) -> Score:
        await sandbox().write_file("test_cart.py", ASKED["hidden"])
        done = await sandbox().exec(COMMAND.split(), timeout=60)
        return Score(value="C" if done.success else "I")

    return score


_HOW: dict[str, tuple[Any, Any]] = {
    "number": (match(numeric=True), generate()),
    "text": (exact(), generate()),
    "choice": (choice(), multiple_choice()),
    "math": (math(), generate()),
    "code": (passes(), generate()),
}


def _paid(kind: str) -> dict[str, bool | str]:
    graded, solved = _HOW[kind]
    asked = {case["id"]: case for case in cases(kind)}
    told: dict[str, bool | str] = {}
    samples = [_sample(case) for case in asked.values()]
    said = iter([_said(case["answer"]) for case in asked.values()])
    [log] = inspect_ai.eval(
        Task(
            dataset=samples,
            solver=solved,
            scorer=graded,
            sandbox="local" if kind == "code" else None,
        ),
        model=get_model("mockllm/model", custom_outputs=said),
        max_samples=1,
        max_connections=1,
        fail_on_error=False,
        display="none",
        log_dir="logs",
    )
    for sample in log.samples or []:
        name = str(sample.id)
        if sample.error is not None:
            told[name] = sample.error.message
        else:
            told[name] = next(iter((sample.scores or {}).values())).value == "C"
    return told


def _said(text: str) -> ModelOutput:
    said = ModelOutput.from_content("mockllm", text)
    said.usage = ModelUsage()  # which it would count with a file from the network
    return said


def _sample(case: dict[str, Any]) -> Sample:
    code = case["kind"] == "code"
    files = {"cart.py": ASKED["given"], **case["files"]} if code else {}
    return Sample(
        id=case["id"],
        input="(the question)",
        target="" if code else str(case["expected"]),
        choices=_CHOICES if case["kind"] == "choice" else None,
        files={name: text for name, text in files.items() if text is not None},
    )


told: dict[str, bool | str] = {}
for kind in filter(cases, _HOW):
    told |= _paid(kind)
answer(told)
