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
from tests.children import Children, until
from tests.command_line import COMMAND, environment, sets
from tests.served_environment import serve_process, write_env

_TWO = """
from assay import Environment

one = Environment("first")
two = Environment("second")


@two.template()
async def t():
    yield "p"
    yield 1.0
"""


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
    ("options", "said"), [(("--set", "hud=true"), "HUD_SERVE_PORT="), ((), "templates: t")]
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
    words = [*COMMAND, "serve", "env", "env.py:two", "--workers", "1", "--json"]
    words += sets("with_parent=true")
    served = children.start(words, cwd=tmp_path, env=environment(tmp_path), stdin=subprocess.PIPE)
    said = json.loads(cast("IO[str]", served.stdout).readline())
    assert (said["env"]["name"], said["templates"]) == ("second", ["t"])
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
