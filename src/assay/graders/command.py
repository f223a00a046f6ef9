"""Graders whose verdict is the exit status of a command.

`BashGrader` is for Python code on a machine of one's own; `CommandGrader` is the declared kind
``command`` and always runs in the sandbox.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from assay.errors import GraderError, InputError
from assay.graders.base import Grader
from assay.scoring.json_safe import Json, record_evidence
from assay.scoring.results import SubScore
from assay.types.codec import Filled, Seconds
from assay.types.submission import Workspace

if TYPE_CHECKING:
    from assay.sandbox import CommandResult

_LONGEST = 7 * 86_400.0
"""Seconds that stand for "for ever": the system's clocks take no infinity."""

_NOT_FOUND = re.compile(
    r"(?:line \d+|sh): (?:\d+: )?([^:\n]+): "
    r"(?:(?:command )?not found|No such file|Permission denied)"
)
"""What bash and dash say on exit status 126 or 127."""

_ALWAYS = re.compile(
    r"\s*(?:(?:(?!\bexit\b)[^;\n])*\|\|\s*)?"
    r"(?:true|:|exit 0|/bin/true|/usr/bin/true|echo\b[^&|;\n]*)\s*"
)
"""A shell line that comes to nothing but one of these, or that ends in one of them on failure."""

_SHELL_STARTUP = ("BASH_ENV", "ENV", "PROMPT_COMMAND", "SHELLOPTS", "BASHOPTS")


class BashGrader(Grader):
    """Runs a shell command with ``/bin/bash -lc`` and scores by its exit code.

    Scored 0: a non-zero exit, death by a signal, running over ``timeout_seconds`` (the output so
    far is kept). An error: no bash, or a ``cwd`` that is not a directory.

    Standard input is closed and the whole process tree is killed when the command ends. HOME is
    the caller's, unless it lies in the graded directory: then an empty one, so that no dot-file of
    the work decides the exit. The programs of Python's environment and of the caller's PATH, but
    for places in the graded directory, come before those of the login shell's. The clean
    environment is the sandbox's.
    """

    name: ClassVar[str] = "BashGrader"
    assurance = "status"

    @classmethod
    async def compute_score(
        cls,
        command: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        timeout_seconds: float | None = 600,
        *,
        home: str | os.PathLike[str] | None = None,
        sandbox: bool = False,
    ) -> SubScore:
        """Run the command.

        Args:
            command: Shell command to run.
            cwd: Working directory; the current one by default.
            timeout_seconds: Seconds until it is killed and scored 0; None waits for a week.
            home: Directory to use as HOME instead.
            sandbox: Run it isolated, without network and on a copy-on-write view of ``cwd``,
                instead of on this machine.

        Returns:
            A node with 1.0 if it exited 0, else 0.0. Its ``info`` has ``stdout``, ``stderr``,
            ``exit_code``, where it ran out of time ``timed_out`` and ``timeout``, and where the
            shell did not find a program ``program_missing`` with its name.

        Raises:
            InputError: Without a command, or with an empty one.
            GraderError: If bash or ``cwd`` is missing.
            SandboxError: If the sandbox failed.
        """
        if command is None or not command.strip():
            raise InputError("BashGrader requires command: an empty one exits 0 for everybody")
        directory = _directory(cwd)
        if timeout_seconds is not None and not timeout_seconds > 0:
            raise InputError("timeout_seconds must be more than 0", hint="None: no limit")
        argv = ["/bin/bash", "-lc", command]
        if sandbox:
            workspace = Workspace(path=str(directory))
            result = await _run_isolated(argv, workspace, timeout_seconds)
        else:
            result = await _run_on_host(argv, directory, timeout_seconds, home)
        value, evidence = _verdict(result, expect_exit=0, timeout=timeout_seconds)
        return SubScore(
            cls.name, value, metadata=record_evidence(evidence), assurance=cls.assurance
        )


@dataclass(frozen=True, kw_only=True)
class CommandGrader(Grader):
    """Passes if a command in the sandboxed workspace exits as expected.

    It is run with ``/bin/sh -c`` in the workspace, without network. The sandbox has the system's
    programs, the case's environment, toolchains that the line names, and pytest. Scored 0: another
    exit status, a signal, running over ``timeout_s``, flooding its output. An error: a sandbox that
    does not work. What the command changes is thrown away.

    Attributes:
        cmd: Shell command.
        expect_exit: The exit status of a pass.
        timeout_s: Seconds until it is killed and scored 0.
    """

    name: ClassVar[str] = "command"
    assurance = "status"

    cmd: Annotated[str, Filled("a command that does nothing passes for everybody")]
    expect_exit: int = 0
    timeout_s: Seconds = 300.0

    @classmethod
    def pays_for_nothing(cls, options: Mapping[str, Json]) -> Sequence[str]:
        """Where the line looks at nothing, or takes back what it found."""
        made = cls.of(options)
        if made.expect_exit == 0 and _ALWAYS.fullmatch(made.cmd):
            return (f"its command {made.cmd!r} exits 0 whatever the work is",)
        return ()

    async def score(self, workspace: Workspace) -> tuple[float, dict[str, Json]]:
        """Run it in the workspace."""
        from assay.graders.testing.runners import equipped

        place = equipped(self.cmd, workspace)
        result = await _run_isolated(["/bin/sh", "-c", self.cmd], place, self.timeout_s)
        return _verdict(result, expect_exit=self.expect_exit, timeout=self.timeout_s)


def _directory(cwd: str | os.PathLike[str] | None) -> Path:
    directory = Path(cwd) if cwd is not None else Path.cwd()
    if not directory.is_dir():
        kind = "is not a directory" if directory.exists() else "does not exist"
        raise GraderError(f"cwd {str(directory)!r} {kind}")
    return directory


async def _run_on_host(
    argv: list[str],
    cwd: Path,
    timeout: float | None,
    home: str | os.PathLike[str] | None,
) -> CommandResult:
    import tempfile

    from assay.sandbox import Limits, remove_tree, run_on_host

    if not os.access(argv[0], os.X_OK):
        raise GraderError(
            f"{argv[0]} is missing", hint="install bash, or grade on Linux, macOS or WSL"
        )
    env = {
        name: value
        for name, value in os.environ.items()
        if name not in _SHELL_STARTUP and not name.startswith("BASH_FUNC_")
    }
    limits = Limits(wall_seconds=min(timeout or _LONGEST, _LONGEST))
    shell, option, command = argv
    # A login shell sets PATH anew. What is put before it stands on the command's own line, so that
    # its messages count lines as its author does.
    argv = [shell, option, f'PATH="$ASSAY_PATH${{PATH:+:$PATH}}"; unset ASSAY_PATH; {command}']
    own = os.environ.get("PATH", os.defpath).split(":")
    graded = os.path.realpath(cwd)
    env["PATH"] = ":".join(place for place in own if not _is_of(graded, place))
    env["ASSAY_PATH"] = ":".join(filter(None, (_virtual_environment(), env["PATH"])))
    home = home or _home_outside(graded)
    if home is not None:
        return await run_on_host(argv, cwd=str(cwd), env={**env, "HOME": str(home)}, limits=limits)
    empty = f"{tempfile.gettempdir()}/assay-home-{os.urandom(8).hex()}"
    os.mkdir(empty, 0o700)  # noqa: PTH102 - `tempfile.mkdtemp` takes thrice as long
    try:
        return await run_on_host(argv, cwd=str(cwd), env={**env, "HOME": empty}, limits=limits)
    finally:
        try:
            os.rmdir(empty)  # noqa: PTH106 - as above
        except OSError:
            await remove_tree(empty)


def _virtual_environment() -> str:
    """Where Python's virtual environment, if it is one, has its programs."""
    return f"{sys.prefix}/bin" if sys.prefix != sys.base_prefix else ""


def _is_of(graded: str, place: str) -> bool:
    """Whether what is graded, in a directory without links, could have written what is there."""
    real = os.path.realpath(place)
    return not place.startswith("/") or f"{real}/".startswith(f"{graded.rstrip('/')}/")


def _home_outside(graded: str) -> str | None:
    """The caller's HOME, unless its dot-files may be those of what is graded."""
    home = os.environ.get("HOME")
    return None if not home or _is_of(graded, home) else home


async def _run_isolated(
    argv: list[str], workspace: Workspace, timeout: float | None
) -> CommandResult:
    from assay.sandbox import Limits, run_command

    return await run_command(
        argv,
        workspace=workspace,
        limits=Limits(wall_seconds=min(timeout or _LONGEST, _LONGEST)),
    )


def _verdict(
    result: CommandResult, *, expect_exit: int, timeout: float | None
) -> tuple[float, dict[str, Json]]:
    passed = result.status == "exited" and result.exit_code == expect_exit
    evidence: dict[str, Json] = {
        "exit_code": result.exit_code,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "seconds": round(result.seconds, 3),
        "sandbox": result.tier,
    }
    missing = _NOT_FOUND.search(result.stderr) if result.exit_code in (126, 127) else None
    if missing:
        evidence["program_missing"] = missing[1].strip()
    if result.truncated:
        evidence["truncated"] = True
    if result.status == "timed_out":
        evidence |= {"timed_out": True, "timeout": timeout}
    if result.status == "output_limit":
        evidence["output_limit"] = True
    return (1.0 if passed else 0.0), evidence
