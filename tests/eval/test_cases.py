"""A case from its source to its grade: sources, set-up, environments, harnesses."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from assay.agents import EchoAgent
from assay.errors import InputError
from assay.eval.planning import options_of
from assay.eval.rollout import Cell, rollout
from assay.eval.workspaces import provision
from assay.eval.workspaces.case_session import case_session
from assay.tasks import Agent, Taskset
from assay.tasks.case import load_case
from assay.tasks.task import case_task
from assay.types import Run
from tests.each import each
from tests.eval.made_cases import command, make_case


async def run_case(root: Path, agent: Agent | None = None) -> Run:
    """Run a case once with an agent."""
    job = await Taskset.from_file(str(root)).run(agent or EchoAgent())
    return job.runs[0]


_STUBBED = '''
    def add(a, b):
        """Add.

        Both are numbers.
        """
        total = a + b  # a comment
        return total


    class Box:
        def add(self, a): return a  # inline


    def other():
        return 1  # kept
'''


@pytest.mark.sandbox
async def test_set_up_takes_bodies_away_and_runs_commands(tmp_path: Path) -> None:
    case = make_case(
        tmp_path,
        """
        source: {path: source}
        setup: {stub: [{file: lib.py, function: add}], run: ["echo ready > state.txt"]}
        graders:
          - type: command
            cmd: |
              grep -q ready state.txt && python3 - <<'END'
              import lib
              assert lib.other() == 1 and "Both are" in lib.add.__doc__
              for call in (lambda: lib.add(1, 2), lambda: lib.Box().add(1)):
                  try:
                      call()
                  except NotImplementedError:
                      continue
                  raise SystemExit(1)
              END
        """,
        {"lib.py": textwrap.dedent(_STUBBED)},
    )
    run = await run_case(case)
    assert run.reward == 1.0, run.grade


@pytest.mark.sandbox
@each(
    ("setup", "said"),
    [
        ("{stub: [{file: lib.py, function: ad}]}", "no function 'ad'"),
        ('{run: ["echo broken here >&2; exit 3"]}', "broken here"),
    ],
)
async def test_a_set_up_that_fails_is_our_error_not_the_agents_zero(
    setup: str, said: str, tmp_path: Path
) -> None:
    text = f"source: {{path: source}}\nsetup: {setup}"
    run = await run_case(make_case(tmp_path, text, {"lib.py": "def add(): pass\n"}))
    assert (run.reward, run.grade.is_error, run.prompt) == (None, True, None)
    assert said in str(run.grade.content)


@pytest.mark.sandbox
async def test_the_agent_sees_neither_the_case_nor_the_host_nor_a_grader_what_others_changed(
    tmp_path: Path,
) -> None:
    secret = tmp_path / "hidden"
    secret.mkdir()
    (secret / "oracle.txt").write_text("oracle", "utf-8")
    case = make_case(
        tmp_path,
        """
        graders:
          - {type: exact_match, expected: "no"}
          - {type: command, cmd: "touch mark; test -e mark"}
          - {type: command, cmd: "test ! -e mark"}
        """,
    )
    probe = f'cat {secret}/oracle.txt 2>/dev/null || cat ../*/oracle.txt 2>/dev/null || echo "no"'
    run = await run_case(case, command("/bin/sh", "-c", probe))
    assert (run.reward, run.trace.content) == (1.0, "no")


@pytest.mark.sandbox
async def test_a_harness_that_cannot_start_is_an_error_and_exit_127_of_an_agent_is_not(
    tmp_path: Path,
) -> None:
    case = make_case(tmp_path, "graders: [{type: exact_match, expected: good}]")
    missing = await run_case(case, command("no-such-agent"))
    assert (missing.reward, missing.grade.is_error) == (None, True)
    assert "no program 'no-such-agent'" in str(missing.grade.content)
    gave_up = await run_case(case, command("/bin/sh", "-c", "exit 127"))
    assert gave_up.reward == 0.0


@pytest.mark.sandbox
async def test_places_in_a_prompt_are_not_filled_in_and_unknown_ones_refused(
    tmp_path: Path,
) -> None:
    case = make_case(
        tmp_path,
        """
        task: {prompt: "say {model} and {workspace}"}
        graders: [{type: contains, substring: "say {model} and {workspace}"}]
        """,
    )
    run = await run_case(case, command("echo", "{prompt}", "{workspace}"))
    assert run.reward == 1.0
    assert str(run.trace.content).endswith("/workspace")
    with pytest.raises(InputError, match="did you mean 'model'"):
        command("x", "{modle}")


@pytest.mark.sandbox
@pytest.mark.slow
async def test_a_virtual_environment_is_built_once_and_seen_by_agent_and_grader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Sequence[str]] = []

    async def without_pip(argv: Sequence[str], timeout_s: float) -> None:
        asked.append(argv)  # pip alone takes ten times as long as all else
        await run_here([*argv, "--without-pip"], timeout_s)

    run_here = provision._run_here
    monkeypatch.setattr(provision, "_run_here", without_pip)
    case = make_case(
        tmp_path,
        """
        environment: {kind: pip-venv, env: {COLOUR: blue}, commands: ["echo built > built.txt"]}
        graders:
          - {type: command, cmd: "python -c 'import sys; sys.exit(sys.prefix == sys.base_prefix)'"}
          - {type: command, cmd: "test $COLOUR = blue && test -e built.txt"}
        """,
    )
    cache = tmp_path / "cache"
    loaded = load_case(str(case))

    async def look() -> None:
        async with case_session(loaded, cache=str(cache)) as session:
            assert session.workspace is not None
            assert session.workspace.env["COLOUR"] == "blue"

    await asyncio.gather(look(), look())  # two cells that need one at once
    task = case_task(loaded)
    cell = Cell(
        task=task,
        agent=EchoAgent(),
        session=case_session(loaded, cache=str(cache)),
        options=options_of(task),
    )
    run = await rollout(cell)
    assert run.reward == 1.0, json.dumps(run.to_dict())
    (built,) = [path for path in (cache / "environments").iterdir() if path.is_dir()]
    assert asked == [[sys.executable, "-m", "venv", "--copies", str(built)]]


async def test_an_environment_that_cannot_be_built_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a uv that only refuses: real tools take seconds to make what pip then fails in."""
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text('#!/bin/sh\n[ "$1" = venv ] && exec mkdir "$2"\necho "no $6 here" >&2; exit 2\n')
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", f"{uv.parent}:{os.environ['PATH']}")
    case = make_case(tmp_path, "environment: {kind: uv, requirements: [no-such-requirement]}")
    run = await run_case(case)
    assert run.grade.is_error
    assert "no no-such-requirement here" in str(run.grade.content)


async def test_an_editable_build_saw_none_of_the_environments_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build that asks git for its version has no repository: a variable tells it."""
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    python = venv / "bin" / "python"
    python.write_text('#!/bin/sh\necho "$VERSION $*" > /workspace/built\n')
    python.chmod(0o755)

    async def made(*_: object) -> Path:
        return venv

    monkeypatch.setattr(provision, "_virtual_environment", made)
    text = """
        source: {path: source}
        environment: {kind: pip-venv, install: editable, env: {VERSION: '9.2'}}
    """
    case = load_case(str(make_case(tmp_path, text, {"kit.py": ""})))
    workspace = await provision.lay_out(case, tmp_path / "left", str(tmp_path / "cache"))
    built = Path(workspace.path, "built").read_text()
    assert built.startswith("9.2 -m pip install")
    assert "--editable /workspace" in built
