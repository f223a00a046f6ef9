"""`assay init`: the suite that it writes runs as it is, by the commands that it prints."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from pathlib import Path
from typing import cast

import pytest

from assay.cli.main import main
from assay.graders.kinds import load_file
from assay.store.runs import Store
from assay.tasks.blocks import load_harnesses
from assay.tasks.task import Agent, Taskset
from assay.testing import FakeJudge


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.delenv("ASSAY_DB", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    code = ended.value.code
    assert isinstance(code, int)
    return code


def test_everything_that_is_written_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("init", "my-suite") == 0
    said = capsys.readouterr().out
    assert call("validate", "my-suite", "my-suite/graders.yaml") == 0
    assert list(load_harnesses("my-suite/harnesses.yaml")) == ["my-model"]
    written = [str(path) for path in Path("my-suite").rglob("*") if path.is_file()]
    assert sorted(written) == sorted(re.findall(r"^  (my-suite/\S+)", said, re.MULTILINE))


@pytest.mark.sandbox
def test_printed_commands_work(capsys: pytest.CaptureFixture[str]) -> None:
    call("init", "my-suite")
    commands = re.findall(r"^  assay (.+)$", capsys.readouterr().out, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        assert call(*shlex.split(command)) == 1, "some of it fails on purpose"
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
def test_readme_says_how_to_see_it_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    call("init", "my-suite")
    monkeypatch.chdir("my-suite")
    command = "run . --case totals --model good"
    assert f"assay {command}" in Path("README.md").read_text(encoding="utf-8")
    assert call(*command.split()) == 0


@pytest.mark.sandbox
def test_own_model_is_asked_by_the_printed_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call("init", "my-suite")
    monkeypatch.chdir("my-suite")
    capsys.readouterr()
    said = Path("harnesses.yaml").read_text(encoding="utf-8")
    command = re.search(r"^#   assay (.+)$", said, re.MULTILINE)
    assert command is not None
    with FakeJudge(["24.50 less the fee of 5:\n19.50"]) as fake:
        for name, value in fake.environment().items():
            monkeypatch.setenv(name, value)
        assert call(*command[1].split(), "--json") == 0
        assert fake.requests[0].model == "gpt-5-mini"
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert (cell["harness"], cell["reward"], cell["tokens"] > 0) == ("my-model", 1.0, True)


def test_python_tasks_run() -> None:
    call("init", "my-suite")
    tasks = Taskset.from_file("my-suite/tasks.py")
    agent = cast("Agent", vars(load_file("my-suite/tasks.py"))["scripted"])
    job = asyncio.run(tasks.run(agent))
    assert [run.reward for run in job] == [1.0, 1.0, 1.0]


@pytest.mark.sandbox
def test_example_of_a_harness_works_once_it_is_uncommented(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call("init", "my-suite")
    file = Path("my-suite/harnesses.yaml")
    written = file.read_text(encoding="utf-8")
    example = written[written.index("# my-agent:") : written.index("#\n# and run it")]
    text = re.sub(r"^# ", "", example, flags=re.MULTILINE)
    written = written.replace(example, text)
    # The grand total for an answer: a gate and a third of the work, done by `echo`.
    file.write_text(written.replace("argv: [my-agent,", 'argv: [echo, "620",'), encoding="utf-8")
    assert load_harnesses(str(file))["my-agent"].env == {"MY_AGENT_MODE": "batch"}
    capsys.readouterr()
    options = ["--case", "totals", "--harness", "my-agent", "--model", "m"]
    assert call("run", "my-suite", *options, "--json") == 1
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert (cell["harness"], cell["model"], cell["ended"]) == ("my-agent", "m", "fail")
    assert cell["record"]["answer"].startswith("620 --model m --prompt The file sales.csv")


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_nothing_is_overwritten(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    if kind == "file":
        Path("mine").write_text("precious", encoding="utf-8")
    else:
        Path("mine").mkdir()
        Path("mine", "tasks.py").write_text("precious", encoding="utf-8")
    assert call("init", "mine") == 2
    assert "already there" in capsys.readouterr().err
    kept = Path("mine") if kind == "file" else Path("mine", "tasks.py")
    assert kept.read_text(encoding="utf-8") == "precious"
    assert len(list(Path().rglob("*"))) == (1 if kind == "file" else 2)


def test_empty_directory_is_filled() -> None:
    Path("mine").mkdir()
    assert call("init", "mine") == 0
    assert Path("mine", "README.md").is_file()


def test_suite_of_a_read_only_package_can_be_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    (package / "starter" / "evals").mkdir(parents=True)
    (package / "starter" / "evals" / "case.yaml").write_text("", encoding="utf-8")
    for path in sorted(package.rglob("*"), reverse=True):
        path.chmod(0o555 if path.is_dir() else 0o444)
    monkeypatch.setattr("assay.cli.demo.examples_directory", lambda: package)
    assert call("init", "mine") == 0
    for path in (Path("mine"), *Path("mine").rglob("*")):
        assert path.stat().st_mode & 0o200, path


def test_directory_with_a_space_is_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("init", "my suite") == 0
    assert "assay run 'my suite'" in capsys.readouterr().out


def test_place_that_cannot_be_written_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("", encoding="utf-8")
    assert call("init", "file/inside") == 2
    assert "cannot write file/inside" in capsys.readouterr().err


@pytest.mark.sandbox
def test_the_cases_are_proven(capsys: pytest.CaptureFixture[str]) -> None:
    call("init", "my-suite")
    capsys.readouterr()
    assert call("selftest", "my-suite") == 0
    assert "2 cases proven" in capsys.readouterr().out
