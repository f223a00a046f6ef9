"""On a Mac whatever runs no code works; what runs code is an error that says where it would.

There is no Mac here. These start interpreters that have lost what Python has on Linux alone
(`standins/mac`), on a machine without /proc and without bubblewrap on PATH.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from assay.graders.kinds import COMMANDS, FUNCTIONS, KINDS
from assay.sandbox import bubblewrap
from tests.children import Children
from tests.command_line import COMMAND, environment

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

PRETENCE = Path(__file__).parent / "standins" / "mac"
NO_CODE = "code is run on Linux alone, and this is macOS"

GRADE = """
import asyncio, json
from assay import graders
from assay.testing import FakeJudge
from assay.errors import AssayError

FUNCTION = "async def grade(thread):\\n    return 1.0\\n"

async def outcome(grading):
    try:
        score = await grading
    except AssayError as error:
        return error.message
    return score.value

async def main():
    with FakeJudge() as fake:
        return {
            "exact_match": graders.exact_match("4", "4"),
            "regex_match": graders.regex_match("It is 4", r"\\d"),
            "math_equal": graders.math_equal("1/2", "0.5"),
            "llm_judge": await outcome(graders.LLMJudgeGrader.grade(
                answer="Canberra.", criteria=["The answer names Canberra"], model=fake.model)),
            "bash": await outcome(graders.BashGrader.grade(command="true")),
            "function": await outcome(graders.FunctionGrader.grade(
                answer="4", source=FUNCTION)),
        }

print(json.dumps(asyncio.run(main())))
"""


class Mac:
    """A directory on something like a Mac."""

    def __init__(self, home: Path, children: Children) -> None:
        self.home, self._children = home, children
        programs = home / "bin"
        programs.mkdir()
        for name in ("sh", "bash", "rm", "chmod", "git"):
            if found := shutil.which(name):
                (programs / name).symlink_to(found)
        self._env = {**environment(home), "PATH": str(programs), "PYTHONPATH": str(PRETENCE)}

    def start(self, *words: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        without_proc = ["--dev-bind", "/", "/", "--tmpfs", "/proc", "--die-with-parent"]
        return self._children.start(
            [bubblewrap.find(), *without_proc, "--", *words],
            cwd=self.home,
            env=self._env,
            stdin=stdin,
        )

    def assay(self, *words: str, rows: str = "") -> tuple[int, str]:
        """The exit status of the command, and what it printed."""
        started = self.start(*COMMAND, *words, stdin=subprocess.PIPE)
        out, err = started.communicate(rows, timeout=120)
        return started.returncode, out or err


@pytest.fixture
def mac(tmp_path: Path) -> Any:
    with Children() as children:
        yield Mac(tmp_path, children)


def test_doctor_says_which_kinds_work_without_a_sandbox(mac: Mac) -> None:
    code, said = mac.assay("doctor")
    assert code == 3, said
    words = " ".join(said.split())
    assert f"-- bubblewrap {NO_CODE}" in words
    assert "fix: run assay in a Linux container or virtual machine" in words
    assert "apt-get" not in words.partition("container images")[0]
    working = words.rpartition("Without one these do: ")[2].rstrip(".").split(", ")
    assert {*working} == {*KINDS} - {*COMMANDS, *FUNCTIONS}


def test_what_runs_no_code_is_graded_and_what_runs_code_is_an_error(mac: Mac) -> None:
    started = mac.start(sys.executable, "-c", GRADE)
    out, err = started.communicate(timeout=120)
    assert started.returncode == 0, err
    graded = json.loads(out)
    refused = [graded.pop(name) for name in ("bash", "function")]
    assert set(graded.values()) == {1.0}, graded
    assert all(NO_CODE in message for message in refused), refused


def test_a_suite_is_run_and_rows_are_graded(mac: Mac) -> None:
    assert mac.assay("init", "suite")[0] == 0
    code, said = mac.assay("run", "suite", "--json")
    assert code == 3, said
    cells = cast("list[dict[str, Any]]", json.loads(said)["cells"])
    ends = {(cell["case"], cell["ended"]) for cell in cells}
    assert ends == {("refund", "pass"), ("refund", "fail"), ("totals", "error")}
    rows = (mac.home / "suite" / "answers.jsonl").read_text("utf-8")
    code, said = mac.assay("grade", "-", "suite/graders.yaml", "--label", "correct", rows=rows)
    assert code == 1, said
    assert "✓ 4 passed   ✗ 2 failed   ! 0 errors" in said
    assert not list(mac.home.glob("assay-rows-*"))


def test_a_server_answers_with_the_page(mac: Mac) -> None:
    httpx = pytest.importorskip("httpx")
    served = mac.start(*COMMAND, "serve", "--port", "0", "--json")
    assert served.stdout is not None
    url = json.loads(served.stdout.readline())["url"]
    page = httpx.get(url, headers={"Accept": "text/html"})
    assert page.status_code == 200
    assert "<script" in page.text
    assert httpx.get(f"{url}/healthz").status_code == 200
