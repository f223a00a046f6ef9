"""Graders that run commands: real processes, since the attacks are on how those are run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.errors import GraderError
from assay.graders import BashGrader, SubScore
from assay.graders.command import CommandGrader
from assay.sandbox import probe, remove_tree
from assay.scoring import Json
from assay.types import Workspace
from tests.each import each
from tests.processes import living, marker


def evidence(node: SubScore) -> dict[str, Json]:
    return dict(node.metadata or {})


async def bash(command: str, cwd: Path, **options: object) -> SubScore:
    return await BashGrader.grade(1.0, None, gate=False, command=command, cwd=cwd, **options)


@each(
    ("command", "value", "code"),
    [
        ("true", 1.0, 0),
        ("exit 3", 0.0, 3),
        ("kill -9 $$", 0.0, -9),
        ("[[ a == a ]]", 1.0, 0),  # bash, not sh
    ],
)
async def test_the_exit_code_is_the_score(
    command: str, value: float, code: int, workspace: Path
) -> None:
    node = await bash(command, workspace)
    assert (node.value, evidence(node)["exit_code"]) == (value, code)
    assert "timed_out" not in evidence(node)


async def test_what_is_kept_beside_the_score(workspace: Path) -> None:
    node = await bash("echo out; echo err >&2; pwd >> log; exit 1", workspace)
    kept = evidence(node)
    assert (kept["stdout"], kept["stderr"], kept["exit_code"]) == ("out\n", "err\n", 1)
    assert kept["sandbox"] == "none"
    assert kept["_parameters"] == {
        "command": "echo out; echo err >&2; pwd >> log; exit 1",
        "cwd": str(workspace),
    }
    assert (workspace / "log").read_text() == f"{workspace}\n"


async def test_over_its_time_it_is_a_0(workspace: Path, tmp_path: Path) -> None:
    # What a login shell of this machine runs first may leave a lock when it is killed.
    (home := tmp_path / "home").mkdir()
    node = await bash("sleep 60", workspace, timeout_seconds=0.5, home=home)
    kept = evidence(node)
    assert (node.value, kept["timed_out"], kept["timeout"]) == (0.0, True, 0.5)
    assert kept["exit_code"] is None


async def test_a_time_of_nothing_and_a_missing_directory_are_errors_and_no_limit_is_none(
    workspace: Path,
) -> None:
    for seconds in (0, -1, float("nan")):
        with pytest.raises(GraderError, match="timeout_seconds must be more than 0"):
            await bash("true", workspace, timeout_seconds=seconds)
    for seconds in (None, float("inf"), 1e300):
        assert (await bash("true", workspace, timeout_seconds=seconds)).value == 1.0
    (workspace / "file").touch()
    for name, why in (("gone", "does not exist"), ("file", "is not a directory")):
        with pytest.raises(GraderError, match=f"{name}' {why}"):
            await bash("true", workspace / name)


@pytest.fixture
def open_stdin() -> Iterator[None]:
    """A standard input on which nothing ever comes, as under a supervisor."""
    reader, writer = os.pipe()
    saved = os.dup(0)
    os.dup2(reader, 0)
    yield
    os.dup2(saved, 0)
    for descriptor in (saved, reader, writer):
        os.close(descriptor)


@pytest.mark.usefixtures("open_stdin")
async def test_a_command_that_reads_its_input_gets_the_end_of_it(workspace: Path) -> None:
    assert (await bash("cat", workspace, timeout_seconds=20)).value == 1.0


async def test_very_much_output_is_cut_and_bounded(workspace: Path) -> None:
    node = await bash("head -c 3000000 /dev/zero | tr '\\0' x", workspace)
    kept = evidence(node)
    assert node.value == 1.0
    assert kept["truncated"] is True
    assert len(str(kept["stdout"])) < 70_000


# --- attacks on the verdict -----------------------------------------------------------------------


async def test_attack_dot_file_that_exits_0(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in (".bash_profile", ".bash_login", ".profile", ".bashrc"):
        (workspace / file).write_text("exit 0\n")
    monkeypatch.setenv("HOME", str(workspace))
    assert (await bash("false", workspace)).value == 0.0


@pytest.mark.parametrize(
    ("variable", "value", "fails"),
    [
        ("BASH_ENV", "{workspace}/start", "bash -c false"),
        ("ENV", "{workspace}/start", "sh -c false"),
        ("BASH_FUNC_expr%%", "() {{ return 0; }}", "expr 1 = 2"),
        ("SHELLOPTS", "noexec", "false"),
    ],
)
async def test_attack_start_up_file_function_or_shell_options_of_the_environment(
    variable: str, value: str, fails: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "start").write_text("exit 0\n")
    monkeypatch.setenv(variable, value.format(workspace=workspace))
    assert (await bash(fails, workspace)).value == 0.0


async def test_attack_home_in_the_graded_directory_or_one_that_cannot_be_removed(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is replaced by an empty one that goes: whatever is left in it makes no error of a 0."""
    (workspace / "home").mkdir()
    (workspace / "home" / "file").touch()
    monkeypatch.setenv("HOME", str(workspace / "home"))
    (workspace / "deep.py").write_text(
        "import os\nos.chdir(os.environ['HOME'])\n"
        "for _ in range(1100):\n    os.mkdir('d')\n    os.chdir('d')\n"
    )
    node = await bash(
        'ls -A "$HOME"; echo "$HOME"\n'
        "mkdir $HOME/locked; touch $HOME/locked/f; chmod 000 $HOME/locked\n"
        "/usr/bin/env python3 deep.py; false",
        workspace,
    )
    assert node.value == 0.0
    home = str(evidence(node)["stdout"]).strip()
    assert "\n" not in home
    assert not Path(home).exists()


async def test_a_home_that_was_asked_for_is_used(workspace: Path) -> None:
    node = await bash(f'[ "$HOME" = "{workspace}" ]', workspace, home=workspace)
    assert node.value == 1.0
    assert workspace.is_dir()


async def test_the_caller_s_home_and_programs_are_there_as_in_a_login_shell(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").write_text("#!/bin/sh\necho found\n")
    (tmp_path / "bin" / "tool").chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    node = await bash("tool && env", workspace)
    assert node.value == 1.0
    assert f"HOME={tmp_path}\n" in str(evidence(node)["stdout"])
    assert "ASSAY_PATH" not in str(evidence(node)["stdout"])


@pytest.mark.parametrize("place", ["", ".", "bin", "{workspace}/bin"])
async def test_a_program_that_the_graded_directory_holds_stands_in_for_no_other(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    for stand_in in (workspace / "false", workspace / "bin" / "false"):
        stand_in.parent.mkdir(exist_ok=True)
        stand_in.write_text("#!/bin/sh\nexit 0\n")
        stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place.format(workspace=workspace)}:{os.environ['PATH']}")
    monkeypatch.chdir(workspace)
    node = await bash("command env false", workspace)
    assert (node.value, evidence(node)["exit_code"]) == (0.0, 1)


async def test_a_virtual_environment_s_pytest_is_found(workspace: Path) -> None:
    node = await bash("command -v pytest", workspace)
    assert evidence(node)["stdout"] == f"{sys.prefix}/bin/pytest\n"


async def test_a_program_that_the_shell_does_not_find_is_named(workspace: Path) -> None:
    assert evidence(await bash("no-such-program -q", workspace))["program_missing"] == (
        "no-such-program"
    )
    assert "program_missing" not in evidence(await bash("exit 127", workspace))


async def test_removing_a_tree_that_is_gone_is_no_error(workspace: Path) -> None:
    await remove_tree(str(workspace / "gone"))


# --- in the sandbox -------------------------------------------------------------------------------


async def command(cmd: str, workspace: Path, **options: object) -> SubScore:
    place = Workspace(path=str(workspace), env={"GIVEN": "yes"})
    return await CommandGrader.grade(1.0, None, gate=False, cmd=cmd, workspace=place, **options)


class TestIsolated:
    pytestmark = pytest.mark.sandbox

    async def test_bash_in_the_sandbox_changes_nothing(self, workspace: Path) -> None:
        (workspace / ".bash_profile").write_text("exit 0\n")
        node = await bash("touch made; false", workspace, sandbox=True)
        assert node.value == 0.0
        assert evidence(node)["sandbox"] == probe().tier
        assert not (workspace / "made").exists()
        assert (await bash("touch made", workspace, sandbox=True)).value == 1.0

    @each(
        ("cmd", "expect_exit", "value"),
        [
            ("exit 3", 3, 1.0),
            ("exit 0", 3, 0.0),
            ('[ "$GIVEN" = yes ] && [ "$PWD" = /workspace ]', 0, 1.0),
            ('[ "$(wc -l < /proc/net/dev)" = 3 ]', 0, 1.0),  # a loopback, and no network
            ("kill -9 $$", 0, 0.0),
        ],
    )
    async def test_a_command_passes_if_it_exits_as_expected(
        self, cmd: str, expect_exit: int, value: float, workspace: Path
    ) -> None:
        node = await command(cmd, workspace, expect_exit=expect_exit)
        assert (node.name, node.value) == ("command", value)

    async def test_over_its_time_it_is_a_0(self, workspace: Path) -> None:
        mark = marker()
        node = await command(f"echo early; sleep {mark}", workspace, timeout_s=1.0)
        kept = evidence(node)
        assert (node.value, kept["timed_out"], kept["timeout"]) == (0.0, True, 1.0)
        assert kept["stdout"] == "early\n"
        assert living(mark) == []

    async def test_attack_flood_of_output_is_a_0_and_not_an_error(self, workspace: Path) -> None:
        node = await command("yes flooding the pipe", workspace)
        assert (node.value, evidence(node)["output_limit"]) == (0.0, True)
