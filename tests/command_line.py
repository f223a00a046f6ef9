"""Run the `assay` command on cases written for a test: in this process, or as one of its own.

A command that starts in a process of its own costs half a second of CPU before it does anything.
What a test asks is nearly always what the command prints, stores and exits with; signals, kills,
terminals and what is read once in a process are asked of a real one (`tests/children.py`).
"""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TextIO, cast
from unittest import mock

import pytest

from assay.models import client as model_client

__all__ = [
    "COMMAND",
    "Command",
    "assay",
    "assay_process",
    "cells",
    "cells_of",
    "echo_case",
    "environment",
    "numbers_of",
    "result",
    "sets",
    "summary",
    "write_case",
]

COMMAND = [sys.executable, "-m", "assay"]

_READ_ONCE = frozenset({"PATH", "TMPDIR"})
"""Variables that a process reads once, and keeps what it found."""


def assay(
    *arguments: str, cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, with its state in `cwd`.

    It runs in this process, on streams, a directory and an environment of its own; with a variable
    that is read once it gets a process.
    """
    if _READ_ONCE & (env or {}).keys():
        return assay_process(*arguments, cwd=cwd, env=env)
    from assay.cli.main import main

    with _as_if_alone(arguments, cwd, {**environment(cwd), **(env or {})}) as streams:
        code = _exit_status(lambda: main(arguments))
        said = [_text_of(stream) for stream in streams]
    return subprocess.CompletedProcess(["assay", *arguments], code, *said)


def assay_process(
    *arguments: str, cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end as a process, with its state in `cwd`."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env={**environment(cwd), **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def sets(*given: str) -> list[str]:
    """Words that set one field each, ``NAME=VALUE``."""
    return [word for one in given for word in ("--set", one)]


class Command:
    """Calls `assay` in this process, in the test's own directory and environment.

    Args:
        capsys: What it prints is read from it.
        first: The word of the command, which need not be said.
        but: Words of other commands, which may be called as well.
    """

    def __init__(self, capsys: pytest.CaptureFixture[str], first: str = "", *but: str) -> None:
        self._capsys = capsys
        self._first = [first] if first else []
        self._but = but

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """The exit status, and what is on standard output and on standard error."""
        from assay.cli.main import main

        self._capsys.readouterr()
        code = _exit_status(lambda: main([*([] if words[0] in self._but else self._first), *words]))
        said = self._capsys.readouterr()
        return code, said.out, said.err

    def ok(self, *words: str) -> str:
        """What is on standard output of a command that succeeds."""
        code, out, err = self(*words)
        assert code == 0, err
        return out

    def json(self, *words: str, status: int = 0) -> dict[str, Any]:
        """The one JSON object that it prints."""
        code, out, err = self(*words, "--json")
        assert code == status, err
        return cast("dict[str, Any]", json.loads(out))


def _exit_status(call: Callable[[], None]) -> int:
    """What the interpreter would exit with."""
    try:
        call()
    except SystemExit as ending:
        if isinstance(ending.code, int | None):
            return ending.code or 0
        sys.stderr.write(f"{ending.code}\n")
        return 1
    except Exception:
        traceback.print_exc(file=sys.stderr)
        return 1
    return 0


@contextmanager
def _as_if_alone(
    arguments: Sequence[str], cwd: Path, env: Mapping[str, str]
) -> Generator[tuple[TextIO, TextIO]]:
    """Streams and surroundings as in a new process; whatever the command sets is set back."""
    before = Path.cwd()
    log = logging.getLogger("assay")
    handlers, level = list(log.handlers), log.level
    signals = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    client = list(model_client._OWN)
    with ExitStack() as stack:
        out, err = (stack.enter_context(_stream()) for _ in range(2))
        stack.enter_context(mock.patch.dict(os.environ, env, clear=True))
        stack.enter_context(mock.patch.object(sys, "argv", ["assay", *arguments]))
        given = stack.enter_context(Path(os.devnull).open(encoding="utf-8"))
        for name, stream in (("stdin", given), ("stdout", out), ("stderr", err)):
            stack.enter_context(mock.patch.object(sys, name, stream))
        model_client._OWN.clear()
        os.chdir(cwd)
        try:
            yield out, err
        finally:
            os.chdir(before)
            model_client._OWN[:] = client
            log.handlers[:] = handlers
            log.setLevel(level)
            for number, handler in signals.items():
                signal.signal(number, handler)


def _stream() -> TextIO:
    """A stream with a descriptor: what writes below Python finds one."""
    return io.TextIOWrapper(io.FileIO(os.memfd_create("stream"), "r+"), "utf-8", newline="")


def _text_of(stream: TextIO) -> str:
    """What was written."""
    if stream.closed:  # by a command whose reader has gone
        return ""
    stream.flush()
    with io.FileIO(os.dup(stream.fileno())) as file:
        file.seek(0)
        return file.readall().decode()


def environment(cwd: Path) -> dict[str, str]:
    return {**os.environ, "ASSAY_DB": str(cwd / ".assay"), "COLUMNS": "100"}


def write_case(root: Path, text: str, name: str = "c1") -> Path:
    """Write a case below ``root/evals``."""
    case = root / "evals" / name
    case.mkdir(parents=True, exist_ok=True)
    (case / "case.yaml").write_text(textwrap.dedent(text), "utf-8")
    return case


_ECHO = """
    id: {id}
    task: {{prompt: "hello"}}
    matrix: {{harnesses: [echo], models: [m], trials: {trials}}}
    graders:
      - {{type: files, patterns: ["{pattern}"]}}
"""


def echo_case(root: Path, *, trials: int = 1, pattern: str = "hello", name: str = "c1") -> Path:
    """A case that `echo` passes if the pattern is in the prompt."""
    return write_case(root, _ECHO.format(id=name, trials=trials, pattern=pattern), name)


def result(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The one JSON object on standard output."""
    return cast("dict[str, Any]", json.loads(done.stdout))


def cells_of(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The cells of a report, each with what its record has."""
    return [{**row, **row["record"]} for row in told["cells"]]


def numbers_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """The overview of a report, with what its totals have."""
    overview = told["overview"]
    return {**overview, **overview["totals"], **overview["totals"]["ends"]}


def cells(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """The cells of a JSON report."""
    return cells_of(result(done))


def summary(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The summary of a JSON report."""
    return numbers_of(result(done))
