"""``assay serve env``: what it says, what it refuses, and how it ends."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from pathlib import Path
from typing import IO, cast

import pytest

import assay
from assay.types import Run
from tests.channels import serve_process, write_env
from tests.children import Children, until
from tests.command_line import COMMAND, environment
from tests.command_line import assay as command

_TWO = """
from assay import Environment

one = Environment("first")
two = Environment("second")


@two.template()
async def t():
    yield "p"
    yield 1.0
"""


@pytest.mark.parametrize(
    ("source", "options", "said"),
    [
        ("x = 1", (), "has no environment (make one: env = Environment('name'))"),
        ("1/0", (), "cannot be loaded: ZeroDivisionError: division by zero (env.py:1"),
        ("import sys; sys.exit(0)", (), "cannot be loaded: SystemExit"),
        ("import os; os._exit(0)", (), "ended the process that loaded it"),
        ("def (", (), "SyntaxError"),
        (_TWO, (), "has several environments (name one"),
        (_TWO, (":one",), "env.py: the environment 'first' has no template to be served"),
        (_TWO + "t(x=1)", (), "cannot be loaded: template 't': got an unexpected"),
        (_TWO + "t(x=1)", (), "(env.py:12 in <module>)"),
        (_TWO, (":thrid",), "has no environment 'thrid'"),
        (_TWO, (":two", "--host", "0.0.0.0"), "others can reach 0.0.0.0"),
        (_TWO, (":two", "--token-env", "NO_SUCH"), "NO_SUCH is not set"),
        (_TWO, (":two", "--token-env", "SHORT"), "has 5 characters"),
        (_TWO, (":two", "--workers", "0"), "--workers"),
        (_TWO, (":two", "--host", "nowhere.invalid", "--token-env", "LONG"), "cannot listen"),
        (_TWO, (":two", "--set", "log=/nowhere/at/all"), "cannot write /nowhere/at/all"),
        (_TWO, (":two", "--set", "with_parent=true"), "wants a pipe"),
    ],
)
def test_what_cannot_be_served_is_said(
    tmp_path: Path, source: str, options: tuple[str, ...], said: str
) -> None:
    write_env(tmp_path, source)
    name = options[0] if options and options[0].startswith(":") else ""
    rest = options[1:] if name else options
    env = {"SHORT": "abcde", "LONG": "0123456789abcdef"}
    done = command("serve", "env", f"env.py{name}", *rest, cwd=tmp_path, env=env)
    assert done.returncode in (2, 3), done
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    done = command("serve", "env", "missing.py", cwd=tmp_path)
    assert (done.returncode, "there is no file" in done.stderr) == (2, True)


def test_ctrl_c_ends_it_while_the_file_is_loaded(children: Children, tmp_path: Path) -> None:
    source = "import pathlib, time\npathlib.Path('begun').touch()\ntime.sleep(60)\n"
    write_env(tmp_path, source)
    words = [*COMMAND, "serve", "env", "env.py", "--workers", "1"]
    served = children.start(words, cwd=tmp_path, env=environment(tmp_path))
    until((tmp_path / "begun").exists)
    served.send_signal(signal.SIGINT)
    assert served.wait(20) == 0
    assert cast("IO[str]", served.stderr).read() == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--json",), '"templates": ["t"]'),
        (("--set", "hud=true"), "HUD_SERVE_PORT="),
        ((), "templates: t"),
    ],
)
def test_it_says_where_it_serves_and_ends_cleanly(
    children: Children, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    write_env(tmp_path, _TWO)
    words = [*COMMAND, "serve", "env", "env.py:second", "--workers", "1", *options]
    served = children.start(words, cwd=tmp_path, env=environment(tmp_path))
    assert said in cast("IO[str]", served.stdout).readline()
    served.send_signal(signal.SIGTERM)
    assert served.wait(30) == 0
    assert cast("IO[str]", served.stderr).read() == ""


def test_it_ends_with_the_process_that_holds_its_input(children: Children, tmp_path: Path) -> None:
    write_env(tmp_path, _TWO)
    words = [
        *COMMAND,
        "serve",
        "env",
        "env.py:two",
        "--workers",
        "1",
        "--set",
        "with_parent=true",
        "--json",
    ]
    served = children.start(words, cwd=tmp_path, env=environment(tmp_path), stdin=subprocess.PIPE)
    assert json.loads(cast("IO[str]", served.stdout).readline())["env"]["name"] == "second"
    cast("IO[str]", served.stdin).close()
    assert served.wait(30) == 0


def test_what_an_environment_prints_does_not_reach_the_output(
    children: Children, tmp_path: Path
) -> None:
    write_env(tmp_path, "print('noise')\n" + _TWO)
    served = serve_process(children, tmp_path, "--workers", "1", file="env.py:two")

    async def answer(run: Run) -> None:
        run.trace.content = "x"

    async def run() -> float | None:
        async with assay.connect(served.url) as client:
            return (await client.task("t").run(answer)).reward

    assert asyncio.run(run()) == 1.0
    assert (tmp_path / "served.log").read_text() == "noise\n"
    lines = served.audited()
    assert [(line["task"], line["ended"], line["reward"]) for line in lines if line["task"]] == [
        ("t", "graded", 1.0)
    ]
    assert served.audit.stat().st_mode & 0o777 == 0o600
