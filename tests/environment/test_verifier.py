"""Tasks whose grade is that of another task."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from assay.environment import Answer, Environment
from assay.errors import InputError, TemplateError
from assay.tasks import Task, Taskset
from assay.types import Run
from tests.each import each

Steps = AsyncGenerator[Any, Any]

WORK = Environment("work")
CHECKS = Environment("checks")


@WORK.template()
async def double(number: int = 2) -> Steps:
    answer = yield f"Double {number}."
    if answer == "break":
        raise TemplateError("it broke")
    if answer == "unknown":
        yield {"score": None, "isError": True, "content": "nobody knows"}
    else:
        yield {"score": 1.0, "content": f"{answer} it is"}


@CHECKS.template(returns=dict[str, Any])
async def check(right: str = "4") -> Steps:
    frame: Answer[dict[str, Any]] = yield "no agent reads this"
    assert frame.ok
    assert (frame.content["score"], frame.content["done"]) == (1.0, True)
    yield float(frame.content["answer"] == right)


@CHECKS.template()
async def breaks() -> Steps:
    yield "p"
    raise KeyError("the verifier's own")


def answering(answer: str) -> Any:
    async def agent(run: Run) -> None:
        assert "no agent" not in run.prompt_text
        run.trace.content = answer

    return agent


@each(
    "answer, verifier, reward, why",
    [
        ("4", check(), 1.0, None),
        ("5", check(), 0.0, None),
        ('5", "answer": "4', check(), 0.0, None),  # an answer that would be the frame
        ("\ud800", check(), 0.0, None),  # half a character kept the frame from being read
        ("break", check(), None, "it broke"),  # nothing that was not graded is verified
        ("unknown", check(), None, "nobody knows"),
        ("4", breaks(), None, "the verifier's own"),
    ],
)
async def test_the_verifiers_grade_replaces_the_tasks_own(
    answer: str, verifier: Task, reward: float | None, why: str | None
) -> None:
    (run,) = (await double().verified_by(verifier).run(answering(answer))).runs
    assert run.reward == reward
    if why is None:
        assert run.grade.info["verified"] == {
            "score": 1.0,
            "content": f"{answer} it is".encode("utf-8", "replace").decode(),
            "done": True,
        }
    else:
        assert why in f"{run.trace.error} {run.grade.content}"


def test_a_verifier_is_kept_in_rows_and_found_again(tmp_path: Path) -> None:
    (tmp_path / "env.py").write_text(
        "from assay import Environment\n"
        "first, second = Environment('work'), Environment('checks')\n"
        "@first.template\nasync def double(number: int = 2):\n    yield 'p'\n    yield 1.0\n"
        "@second.template\nasync def check(right: str = '4'):\n    yield 'p'\n    yield 1.0\n"
    )
    file = str(tmp_path / "rows.jsonl")
    Taskset("t", [double(3).verified_by(check("6"))]).to_file(file)
    (row,) = [json.loads(line) for line in Path(file).read_text().splitlines()]
    assert row["verifier"]["args"] == {"right": "6"}
    (task,) = Taskset.from_file(file, env=str(tmp_path / "env.py"))
    assert task.verifier is not None
    assert (task.verifier.env, task.verifier.id, task.verifier.args) == (
        "checks",
        "check",
        {"right": "6"},
    )
    with pytest.raises(InputError, match=r"rows.jsonl:1: verifier: the environment 'checks'"):
        Taskset.from_file(file, env=WORK)


def test_a_verifier_is_not_verified() -> None:
    with pytest.raises(InputError, match="the verifier of 'double' has a verifier itself"):
        double().verified_by(check().verified_by(check("5")))
