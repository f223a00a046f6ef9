"""Commands on the host: nothing isolated, but nothing left behind either."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.sandbox import CommandResult, Limits, run_on_host
from tests.children import Children, alone, until
from tests.each import each
from tests.processes import living, marker


def on_host(words: list[str], **more: Any) -> CommandResult:
    return asyncio.run(run_on_host(words, **more))


def bash(line: str, *, env: dict[str, str] | None = None, **limits: float) -> CommandResult:
    words = ["/bin/bash", "-c", line]
    return on_host(words, env=env, limits=Limits(**limits))  # pyright: ignore[reportArgumentType] - ints where it says so


@pytest.fixture
def mark() -> str:
    """An argument for `sleep` by which its process can be found."""
    return marker()


@each(("line", "code"), [("true", 0), ("exit 7", 7), ("kill -9 $$", -9), ("exit 137", 137)])
def test_exit_codes_are_exact(line: str, code: int) -> None:
    result = bash(line)
    assert (result.status, result.exit_code, result.tier) == ("exited", code, "none")


def test_output_directory_and_environment_which_is_inherited_unless_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["/bin/bash", "-c", "pwd; echo $GIVEN$HOME >&2; cat"]
    result = on_host(words, cwd=str(tmp_path), env={"GIVEN": "x"})
    assert (result.stdout, result.stderr) == (f"{tmp_path}\n", "x\n")
    monkeypatch.setenv("INHERITED", "yes")
    assert bash("echo $INHERITED").stdout == "yes\n"
    assert bash("echo $INHERITED", env={}).stdout == "\n"


@pytest.mark.slow
def test_time_out_keeps_what_was_written(mark: str) -> None:
    result = bash(f"echo before; trap '' TERM; sleep {mark}", wall_seconds=3)
    assert (result.status, result.exit_code, result.stdout) == ("timed_out", None, "before\n")
    assert living(mark) == []


def test_endless_output_is_stopped() -> None:
    result = bash("yes", output_kill_bytes=1 << 20)
    assert (result.status, result.exit_code, result.truncated) == ("output_limit", None, True)


def test_background_child_holding_stdout_does_not_delay(mark: str) -> None:
    result = bash(f"sleep {mark} & echo started", wall_seconds=15)
    assert (result.status, result.stdout) == ("exited", "started\n")
    assert result.seconds < 10
    assert living(mark) == []


ESCAPES = {
    "session": "setsid sleep {mark} & sleep 0.05",
    "daemon": "(setsid setsid sleep {mark} >/dev/null 2>&1 &) ; sleep 0.05",
    "fork without exec": """python3 -c '
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 64)
        os.execv("/bin/sleep", ["sleep", "{mark}"])
    os._exit(0)
os.wait()'""",
    "parent": "setsid env -i bash -c 'sleep {mark}; true' & sleep 0.05; true",
}


@each("escape", [name for name in ESCAPES if name != "parent"])
def test_escape_from_the_session(escape: str, mark: str) -> None:
    assert bash(ESCAPES[escape].replace("{mark}", mark)).exit_code == 0
    assert living(mark) == []


@each("escape", ["session", "daemon", "parent"])
def test_escape_from_the_session_of_a_command_out_of_time(escape: str, mark: str) -> None:
    line = ESCAPES[escape].replace("{mark}", mark) + "; sleep 60"
    assert bash(line, wall_seconds=0.5).status == "timed_out"
    until(lambda: not living(mark))  # killed, of which nobody can wait for the one without marks


@pytest.mark.slow
@pytest.mark.versions
def test_command_within_a_command(mark: str) -> None:
    inner = f"setsid sleep {mark} & sleep 60"
    code = (
        "import asyncio; from assay.sandbox import run_on_host; "
        f"asyncio.run(run_on_host(['/bin/bash', '-c', {inner!r}]))"
    )
    words = [sys.executable, "-c", code]
    result = on_host(words, limits=Limits(wall_seconds=2))
    assert result.status == "timed_out", result.stderr
    assert living(mark) == []


def test_neighbours_are_left_alone(mark: str, children: Children) -> None:
    neighbour = children.start(["sleep", mark])
    until(lambda: living(mark))
    bash("setsid sleep 60 & true")
    assert neighbour.poll() is None


def test_programs_own_children_are_not_adopted() -> None:
    """The host process must not become a subreaper: foreign orphans would be its zombies."""
    alone(
        """
        import asyncio
        import os
        from pathlib import Path
        from assay.sandbox import run_on_host

        asyncio.run(run_on_host(["/bin/bash", "-c", "(setsid sleep 60 &)"]))
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        stats = (Path(f"/proc/{pid}/stat").read_text() for pid in children)
        states = {stat.split(")")[-1].split()[0] for stat in stats}
        assert "Z" not in states, states
        """
    )
