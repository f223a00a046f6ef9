"""The command as a process: Ctrl-C before there is anything to keep."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

_LOADING = "import os, signal; import assay.__main__ as start; "
_INTERRUPT = "os.kill(os.getpid(), signal.SIGINT); print('went on')"


def said(code: str, *, handler: str = "default_int_handler") -> tuple[int, str, str]:
    begin = f"import signal; signal.signal(signal.SIGINT, signal.{handler}); "
    done = subprocess.run(
        [sys.executable, "-c", begin + _LOADING + code], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_an_interrupt_while_the_command_is_loaded_ends_it_without_a_trace() -> None:
    assert said(_INTERRUPT) == (-signal.SIGINT, "", "")


def test_an_interrupt_that_whoever_started_it_ignores_stays_ignored() -> None:
    assert said(_INTERRUPT, handler="SIG_IGN") == (0, "went on\n", "")


@pytest.mark.parametrize("words", [["doctor"], ["grade", "x.jsonl", "x.yaml"]])
def test_a_command_that_is_loaded_hears_of_the_interrupt(words: list[str]) -> None:
    code = (
        f"import sys; import assay.cli.{words[0]} as command\n"
        f"def run(given): {_INTERRUPT}\n"
        f"command.run = run; sys.argv = {['assay', *words]!r}\n"
        "start.main()"
    )
    code_of_exit, out, err = said(code)
    assert (code_of_exit, out) == (130, "")
    assert err == "interrupted; what was finished is kept\n"
