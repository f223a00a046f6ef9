"""`assay init`: the suite that it writes runs as it is, by the commands that it prints."""

from __future__ import annotations

import asyncio
import re
import shlex
from pathlib import Path
from typing import cast

import pytest

from assay.graders.kinds import load_file
from assay.store.runs import Store
from assay.tasks.blocks import load_harnesses
from assay.tasks.task import Agent, Taskset
from assay.testing import FakeJudge
from tests.command_line import Command, cells_of
from tests.written_files import write_files


@pytest.fixture
def said(command: Command) -> str:
    """What is said of the suite that is written."""
    return command.ok("init", "my-suite")


def test_everything_that_is_written_is_valid(command: Command, said: str) -> None:
    command.ok("validate", "my-suite", "my-suite/graders.yaml")
    assert list(load_harnesses("my-suite/harnesses.yaml")) == ["my-model"]
    written = [str(path) for path in Path("my-suite").rglob("*") if path.is_file()]
    assert sorted(written) == sorted(re.findall(r"^  (my-suite/\S+)", said, re.MULTILINE))


@pytest.mark.sandbox
def test_printed_commands_work(command: Command, said: str) -> None:
    printed = re.findall(r"^  assay (.+)$", said, re.MULTILINE)
    assert len(printed) == 2
    for line in printed:
        assert command(*shlex.split(line))[0] == 1, "some of it fails on purpose"
    with Store.open(str(Path.cwd() / ".assay")) as store:
        answers, matrix = store.runs()
        rewards = {cell.model: cell.reward for cell in store.cells(matrix.id)}
        assert rewards == {
            "reference": 1.0,
            "wrong-fee": 0.0,
            "good": 1.0,
            "wrong": pytest.approx(0.3),
            "none": 0.0,
        }
        graded = {cell.case: cell.reward for cell in store.cells(answers.id)}
        assert graded == {"1": 1.0, "2": 1.0, "3": 1.0, "4": 0.0, "5": 1.0, "6": 0.0}


@pytest.mark.sandbox
@pytest.mark.usefixtures("said")
def test_readme_says_how_to_see_it_pass_and_how_to_ask_an_own_model(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("my-suite")
    passes = "run . --case totals --model good"
    assert f"assay {passes}" in Path("README.md").read_text(encoding="utf-8")
    command.ok(*passes.split())
    harnesses = Path("harnesses.yaml").read_text(encoding="utf-8")
    asks = re.search(r"^#   assay (.+)$", harnesses, re.MULTILINE)
    assert asks is not None
    with FakeJudge(["24.50 less the fee of 5:\n19.50"]) as fake:
        for name, value in fake.environment().items():
            monkeypatch.setenv(name, value)
        (cell,) = cells_of(command.json(*asks[1].split()))
        assert fake.requests[0].model == "gpt-5-mini"
    assert (cell["harness"], cell["reward"], cell["tokens"] > 0) == ("my-model", 1.0, True)


@pytest.mark.usefixtures("said")
def test_python_tasks_run() -> None:
    tasks = Taskset.from_file("my-suite/tasks.py")
    agent = cast("Agent", vars(load_file("my-suite/tasks.py"))["scripted"])
    job = asyncio.run(tasks.run(agent))
    assert [run.reward for run in job] == [1.0, 1.0, 1.0]


@pytest.mark.sandbox
@pytest.mark.usefixtures("said")
def test_example_of_a_harness_works_once_it_is_uncommented(command: Command) -> None:
    file = Path("my-suite/harnesses.yaml")
    written = file.read_text(encoding="utf-8")
    example = written[written.index("# my-agent:") : written.index("#\n# and run it")]
    text = re.sub(r"^# ", "", example, flags=re.MULTILINE)
    written = written.replace(example, text)
    # The grand total for an answer: a gate and a third of the work, done by `echo`.
    file.write_text(written.replace("argv: [my-agent,", 'argv: [echo, "620",'), encoding="utf-8")
    assert load_harnesses(str(file))["my-agent"].env == {"MY_AGENT_MODE": "batch"}
    options = ("--case", "totals", "--harness", "my-agent", "--model", "m")
    (cell,) = cells_of(command.json("run", "my-suite", *options, status=1))
    assert (cell["harness"], cell["model"], cell["ended"]) == ("my-agent", "m", "fail")
    assert cell["answer"].startswith("620 --model m --prompt The file sales.csv")


def test_nothing_is_overwritten_and_an_empty_directory_is_filled(command: Command) -> None:
    Path("file").write_text("precious", encoding="utf-8")
    write_files(Path("full"), {"tasks.py": "precious"})
    for taken, kept in (("file", "file"), ("full", "full/tasks.py")):
        code, _, err = command("init", taken)
        assert (code, "already there" in err) == (2, True)
        assert Path(kept).read_text(encoding="utf-8") == "precious"
    assert len(list(Path().rglob("*"))) == 3
    code, _, err = command("init", "file/inside")
    assert (code, "cannot write file/inside" in err) == (2, True)
    Path("my suite").mkdir()
    assert "assay run 'my suite'" in command.ok("init", "my suite")
    assert Path("my suite", "README.md").is_file()


def test_suite_of_a_read_only_package_can_be_changed(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    write_files(package, {"starter/evals/case.yaml": ""})
    for path in sorted(package.rglob("*"), reverse=True):
        path.chmod(0o555 if path.is_dir() else 0o444)
    monkeypatch.setattr("assay.cli.demo.examples_directory", lambda: package)
    command.ok("init", "mine")
    for path in (Path("mine"), *Path("mine").rglob("*")):
        assert path.stat().st_mode & 0o200, path


@pytest.mark.sandbox
@pytest.mark.usefixtures("said")
def test_the_cases_are_proven(command: Command) -> None:
    assert "2 cases proven" in command.ok("selftest", "my-suite")
