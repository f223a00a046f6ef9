"""The examples of graders inside other tools, in an environment that has those (`make agents`)."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.children import of_peers, printed
from tests.command_line import assay, cells
from tests.real.in_turn import IN_TURN, parts

_ROOT = Path(__file__).parents[2]
_EXAMPLES = _ROOT / "examples" / "plugins"
pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def _printed(
    folder: Path, program: str, *arguments: str, ends: int = 0, peer: str = "evaluators"
) -> str:
    """What a program of the environment prints, run beside a copy of the examples."""
    found = of_peers(peer, program, program)
    shutil.copytree(_EXAMPLES, folder, dirs_exist_ok=True)
    place = str(folder)
    env = {"HOME": place, "TMPDIR": place, "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **_ALONE}
    said = printed([found, *arguments], cwd=folder, env=env, ends=ends, seconds=280)
    return re.sub(r"\x1b\[[0-9;]*m", "", said)


_ALONE = {"COLUMNS": "200", "DEEPEVAL_TELEMETRY_OPT_OUT": "1", "MLFLOW_DISABLE_TELEMETRY": "true"}
_OUTCOMES = ["1.0 None separate", "0.0 None separate", "nan scoring_failed None"]


_SAMPLES = """\
import asyncio

from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelOutput
from inspect_ai.scorer import Target
from inspect_ai.solver import TaskState

from assay.plugins.inspect import scorer

score = scorer("graders.yaml")
for text, kept in (("Lima", None), ("a\\ud800", None), ("Lima", {"raw": b"\\xff"})):
    message = ChatMessageAssistant(content=text, metadata=kept)
    output = ModelOutput(model="m", choices=[ChatCompletionChoice(message=message)])
    state = TaskState("m/m", 1, 1, "?", [message], output=output)
    found = asyncio.run(score(state, Target("Lima")))
    print(found.value, found.explanation.count("it cannot be read: UnicodeDecodeError"))
"""


def test_inspect_scores_a_task_and_a_log_and_assay_grades_the_log(tmp_path: Path) -> None:
    (tmp_path / "samples.py").write_text(_SAMPLES, "utf-8")
    task, read = parts(_printed(tmp_path, "python", "-c", IN_TURN, "inspect_task.py", "samples.py"))
    assert read.splitlines() == ["1.0 0", "0.0 0", "nan 1"], "what cannot be read is unscored"
    mean, *samples = task.splitlines()
    assert mean == "mean 0.5: 2 scored, 1 unscored"
    assert [line for line in samples if line.endswith(("separate", "None"))] == _OUTCOMES
    assert "there is no expected here" in "\n".join(samples)

    (log,) = (tmp_path / "logs").glob("*.eval")
    again = ["score", str(log), "--scorer", "assay/assay", "-S", "grader=graders.yaml"]
    said = _printed(tmp_path, "inspect", *again, "--action", "append", "--overwrite")
    assert said.count("mean    0.500") == 2

    done = assay("grade", str(log), str(log), "graders.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 3
    rewards = sorted(str(cell["reward"]) for cell in cells(done))
    assert rewards == ["0.0", "0.0", "1.0", "1.0", "None", "None"]


def test_pydantic_evals_reports_scores_failures_and_neither(tmp_path: Path) -> None:
    said = _printed(tmp_path, "python", "pydantic_evals_dataset.py").splitlines()
    failure = "GraderError: 'substring' comes from expected: there is no expected here"
    assert said[-4:] == [
        "kenya {'capital': 1.0} {'capital passed': True} []",
        "peru {'capital': 0.0} {'capital passed': False} []",
        f'best {{}} {{}} ["{failure}"]',
        "averages ({'capital': 0.5}, 0.5)",
    ]


_ANSWERS = """\
from assay.plugins.mlflow import scorer

made = scorer("same.yaml", name="same")
choice = {"choices": [{"message": {"role": "assistant", "content": None}}]}
inside = []
inside.append(inside)
for said, right in [
    (5, "5"), (True, "true"), (b"ok", "ok"), ([], "x"), ({}, "x"), (b"\\xff", "x"), (choice, "x"),
    (float("nan"), "x"), ([5], "[5]"), (["Lima"], "Lima"), ("4\\ud800", "4"), (inside, "x"),
]:
    found = made(inputs={"question": "?"}, outputs=said, expectations={"expected": right})
    print(found.value, found.error)
"""


def test_mlflow_records_feedback_errors_and_nothing(tmp_path: Path) -> None:
    (tmp_path / "same.yaml").write_text("- {type: exact_match}\n", "utf-8")
    (tmp_path / "answers.py").write_text(_ANSWERS, "utf-8")
    scripts = ("mlflow_evaluate.py", "answers.py")
    said, attacked = parts(_printed(tmp_path, "python", "-c", IN_TURN, *scripts))
    # An attack: no answer leaves the mean by its type.
    scores = [1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0]
    assert attacked.splitlines() == [f"{score:.1f} None" for score in scores]
    assert "{'capital/mean': np.float64(0.5)}" in said
    found = sorted(line for line in said.splitlines() if line.startswith(("capital ", "never ")))
    error = "('ERROR', \"'substring' comes from expected: there is no expected here\")"
    assert found == [
        "capital 0.0 None separate",
        "capital 1.0 None separate",
        f"capital None {error} None",
    ]
    assert "  parameters: substring: Lima" in said


_EACH_WAY = """\
import sys

from deepeval.cli.main import app

for option in sys.argv[1:]:
    sys.argv = ["deepeval", "test", "run", "test_deepeval.py", option]
    try:
        app()
    except SystemExit as ended:
        print("it ended with", ended.code, flush=True)
"""


def test_deepeval_fails_what_is_wrong_and_raises_what_cannot_be_graded(tmp_path: Path) -> None:
    options = ("--skip-on-missing-params", "--verbose")
    said = _printed(tmp_path, "python", "-c", _EACH_WAY, *options)
    skipped, whole, _ = said.split("it ended with 1\n")
    for said, rate, errors in (
        (skipped, "Pass Rate: 50.0% | Passed: 2 | Failed: 2", 1),
        (whole, "Pass Rate: 40.0% | Passed: 2 | Failed: 3", 2),
    ):
        assert (rate in said, said.count("ERRORED")) == (True, errors), said[-3000:]
        assert "GraderError: 'substring' comes from expected" in said
        assert ("MissingTestCaseParamsError: it does not apply" in said) == (errors == 2)


_MANIFEST = """\
name: manual
validation:
  reward: {floor_margin: 0.5}
  resources: {cpu: 1, memory_mb: 256, disk_mb: 256, episode_timeout_s: 60}
  capabilities: {verifier: {kind: reward_channel}}
  types: {tags: [writing]}
"""
_CASE = """\
id: manual
task: {prompt: Write a README.md that says how to install the project.}
matrix: {harnesses: [replay], models: [reference]}
graders:
  - {type: files, patterns: ["pip install"], files: [README.md]}
"""


_EACH_PACKAGE = """\
import runpy, sys
for package in sys.argv[1:]:
    print("==", package.rpartition("/")[2])
    sys.argv[1] = package
    runpy.run_path("openenv_validation.py")
"""


@pytest.mark.sandbox
def test_openenv_proves_packages_by_their_cases(tmp_path: Path) -> None:
    def package(name: str, case: str = _CASE) -> Path:
        """A package with a case, below `evals/`, that is right."""
        made = tmp_path / name
        place = made / "evals" / "manual"
        for recorded, text in (
            ("reference", "pip install lamps"),
            ("bad-vague", "see the sources"),
        ):
            (place / "recordings" / recorded / "files").mkdir(parents=True)
            (place / "recordings" / recorded / "files" / "README.md").write_text(text)
        (made / "openenv.yaml").write_text(_MANIFEST)
        (place / "case.yaml").write_text(case)
        return made

    right = package("right")
    before = sorted(right.rglob("*"))
    package("lax", _CASE.replace("pip install", "see"))
    package("unread", _CASE.replace("patterns", "paterns"))
    shutil.rmtree(package("empty") / "evals")
    os.mkfifo(package("pipe") / "pipe")
    for name, linked in (("case", "evals/manual"), ("evals", "evals")):
        there = package(name) / linked
        outside = there.rename(tmp_path / f"out-{name}")
        there.symlink_to("../" * (1 + linked.count("/")) + outside.name)
    inside = package("inside") / "evals"
    inside.rename(inside.with_name("moved"))
    inside.symlink_to("moved")

    names = ("right", "lax", "unread", "empty", "pipe", "case", "evals", "inside")
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "each.py").write_text(_EACH_PACKAGE)
    made = [str(tmp_path / name) for name in names]
    said = _printed(tmp_path / "beside", "python", "each.py", *made, peer="openenv")
    told = {part.partition("\n")[0]: part.splitlines()[1:] for part in said.split("== ")[1:]}

    def found(name: str) -> dict[str, str]:
        words = [line.split() for line in told[name]]
        return {one[0].removeprefix("semantic."): one[1] if one[1:] else "" for one in words}

    def refused(name: str) -> str:
        """What is wrong with a package, which each check says."""
        (one,) = {line.partition(" ")[2] for line in told[name][:-1]}
        return one

    checks = ("canary_floor", "floor_gap", "no_solution_leakage", "oracle_max")
    checks = (*checks, "verifier_determinism")
    unseen = {"no_solution_leakage": "skip"}  # what is right is too short to be looked for
    passed = {**dict.fromkeys(checks, "pass"), **unseen, "warn": ""}
    assert (found("right"), found("inside")) == (passed, passed), "a link in the package is one"
    assert sorted(right.rglob("*")) == before
    graded = {"oracle_max": "fail", "canary_floor": "fail", "floor_gap": "pass"}
    assert found("lax") == {**graded, **unseen, "verifier_determinism": "pass", "fail": ""}
    assert found("unread") == {**dict.fromkeys(checks, "error"), "fail": ""}
    assert found("empty") == {**dict.fromkeys(checks, "skip"), "warn": ""}
    assert "pipe` is a named pipe" in refused("pipe")
    for name, up in (("case", "../../"), ("evals", "../")):
        linked = {"case": "evals/manual", "evals": "evals"}[name]
        assert f"{linked} is a link to {up}out-{name}: only a relative link" in refused(name)
