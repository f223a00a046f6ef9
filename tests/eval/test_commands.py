"""Commands that start Python: what a submission puts beside them is not what they import."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import cast

import pytest

from assay.eval.workspaces import commands
from assay.graders.spec import GraderSpec
from assay.graders.testing import runners
from assay.graders.testing.commands import programs_of
from assay.graders.testing.runners import has_module
from assay.tasks import Taskset
from assay.types import Run, Workspace
from tests.each import each
from tests.eval.made_cases import command, make_case

pytestmark = [pytest.mark.sandbox]


def flags_of(run: Run) -> list[str]:
    return [str(flag) for flag in cast("list[str]", run.grade.info.get("flags", []))]


SOURCE = {"app.py": "import json\ndef f():\n    return 1\n", "checks/run.py": "import app, shlex\n"}
SHADOW = "import os\nos._exit(0)\n"
CHECK = "import app, json; assert app.f() == 2 and json.dumps(1)"


async def graded(
    root: Path, line: str, changes: dict[str, str], *, submission: str = "", script: str = ""
) -> Run:
    case = f"""
        source: {{path: ./source}}
        {submission}
        graders:
          - type: command
            cmd: |-
              {line}
    """
    make_case(root, textwrap.dedent(case), SOURCE)
    lines = [
        f"mkdir -p $(dirname {name}); cat > {name} <<'END'\n{text}END\n"
        for name, text in changes.items()
    ]
    agent = command("/bin/sh", "-c", "".join(lines) + script)
    return (await Taskset.from_file(str(root)).run(agent)).runs[0]


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        (f"python3 -c '{CHECK}'", {"json.py": SHADOW}),
        (f"python3 -c '{CHECK}'", {"json/__init__.py": SHADOW}),
        (f"python3 -c '{CHECK}'", {"own/__init__.py": SHADOW}),  # and a link to it
        (
            "python3 -m unittest no_such_tests",
            {"unittest/__init__.py": "", "unittest/__main__.py": SHADOW},
        ),
        ("python3 -m pytest no_such_test.py", {"pluggy.py": SHADOW}),  # what pytest consists of
        ("cd checks && python3 run.py && python3 -c 'assert 0'", {"checks/shlex.py": SHADOW}),
        ("python3 checks/run.py && python3 -c 'assert 0'", {"checks/shlex.py": SHADOW}),
        ("python3 -m doctest app.py && python3 -c 'assert 0'", {"doctest.py": SHADOW}),
    ],
    ids=[
        *("file", "package", "link", "invoked", "part", "below_cd"),
        *("beside_a_script", "invoked_file"),
    ],
)
async def test_attack_a_module_named_like_python_s_own(
    line: str, changes: dict[str, str], tmp_path: Path
) -> None:
    script = "ln -s own json\n" if "own/__init__.py" in changes else ""
    run = await graded(tmp_path, line, changes, script=script)
    assert run.reward == 0.0
    assert any("has the name of one that is not the submission's" in flag for flag in flags_of(run))


@pytest.mark.parametrize(
    ("line", "changes", "submission"),
    [
        ("python3 -m pkg", {"pkg/__main__.py": "print('ok')\n"}, ""),
        ("python3 -c 'import pkg.json'", {"pkg/__init__.py": "", "pkg/json.py": ""}, ""),
        ("test -s calendar.py", {"calendar.py": "x = 1\n"}, ""),
        ("python3 -c 'import calendar; calendar.mine'", {"calendar.py": "mine = 1\n"}, "INCLUDE"),
        ("python3 -c 'assert open(\"html/index.html\")'", {"html/index.html": "x"}, ""),
    ],
    ids=["new_package", "inside_a_package", "no_python", "included", "directory"],
)
async def test_honest_names_are_taken(
    line: str, changes: dict[str, str], submission: str, tmp_path: Path
) -> None:
    given = submission.replace("INCLUDE", "submission: {include: [calendar.py]}")
    run = await graded(tmp_path, line, changes, submission=given)
    assert run.reward == 1.0
    assert flags_of(run) == []


def test_what_the_source_has_is_the_task_s_own(tmp_path: Path) -> None:
    def found(line: str) -> set[str]:
        spec = GraderSpec(type="command", options={"cmd": line})
        return {*commands.stand_ins([spec], ["json.py", "types/a.py"], Workspace(path="x"))}

    assert "shlex" in found("python3 -m app")
    assert not found("python3 -m app") & {"json", "types", "app", "pytest"}
    assert {"pytest", "_pytest", "pluggy", "shlex"} <= found("python3 -m pytest")


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("python3 -m nothing && python3 -m pytest -q", "pytest"),
        ("pytest -q", "pytest"),
        ("! no-such-grep -ri password .", "no-such-grep"),
        ("test -s app.py && timeout 60 no-such-tool || exit 1", "no-such-tool"),
        ("python3 -m nox", "nox"),
        ("bash -c '[[ -s app.py ]] && no-such-tool'", "no-such-tool"),
    ],
)
async def test_a_command_without_its_program_is_an_error_before_the_agent_starts(
    line: str, missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runners, "_own_packages", lambda: tmp_path)  # an assay without pytest
    monkeypatch.setattr(runners, "has_module", _nothing_is_installed)
    if missing == "pytest" and has_module(Workspace(path=str(tmp_path)), "pytest"):
        pytest.skip("the system has one")
    run = await graded(tmp_path, line, {})
    assert run.grade.is_error
    assert run.reward is None
    assert f"needs {missing}" in str(run.grade.content)
    assert run.prompt is None  # nobody was asked for anything


@pytest.mark.parametrize("grader", ["{type: pytest}", "{type: tests, cmd: python3 -m pytest -q}"])
async def test_the_kind_pytest_without_a_pytest_is_an_error_before_the_agent_starts(
    grader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agents of a whole matrix worked, and were paid, before anybody was told."""
    monkeypatch.setattr(runners, "_own_packages", lambda: tmp_path)
    monkeypatch.setattr(runners, "_SYSTEM", str(tmp_path / "no-python"))
    make_case(tmp_path, f"source: {{path: ./source}}\ngraders: [{grader}]\n", SOURCE)
    worked: list[Run] = []

    async def agent(run: Run) -> None:
        worked.append(run)

    (run,) = (await Taskset.from_file(str(tmp_path)).run(agent)).runs
    assert run.reward is None
    assert "no Python with pytest is at hand" in str(run.grade.content)
    assert worked == []


@pytest.mark.parametrize(
    ("line", "body", "reward"),
    [("pytest -q", "return 2", 1.0), ("python3 -m pytest -q", "return 3", 0.0)],
)
async def test_pytest_is_simply_there(line: str, body: str, reward: float, tmp_path: Path) -> None:
    test = "import sys\nsys.path.insert(0, '.')\nfrom app import f\ndef test_f(): assert f() == 2\n"
    changes = {"app.py": f"def f():\n    {body}\n", "checks/test_app.py": test}
    include = "submission: {include: [checks/*]}"
    run = await graded(tmp_path, f"{line} checks", changes, submission=include)
    assert run.reward == reward, run.grade


@each(
    ("line", "programs"),
    [
        ("! grep -ri password .", ("grep",)),
        ("pytest \\\n -q && FOO=1 cargo test 2>&1", ("pytest", "cargo")),
        ("timeout 60 (make; ./x) || exit 1", ("make",)),
        ("ruff check . || exit 1", ("ruff",)),
        ("pytest || python3 -m unittest", ()),
        ("command -v jq && jq . a.json", ()),
        ("if jq . a.json; then true; fi", ()),
        ("test $(jq . a.json) = b", ()),
        ('test "$(jq . a.json)" = b', ("test",)),
        ("env -u HOME jq", ("env",)),
        ("PATH=bin:$PATH tool", ()),
        ("f() { tool; }; f", ()),
        ("bash -c '[[ a == a ]] && jq .'", ("jq", "bash")),
        ("echo 'unclosed", ()),
    ],
)
def test_programs_that_a_line_cannot_do_without(line: str, programs: tuple[str, ...]) -> None:
    assert programs_of(line) == programs


def _nothing_is_installed(workspace: Workspace, name: str) -> bool:
    del workspace, name
    return False
