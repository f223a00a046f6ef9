"""``assay fake --judge`` and ``assay fake`` from the outside."""

from __future__ import annotations

import json
import signal
import sys
import urllib.request
from argparse import ArgumentParser, Namespace
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from assay.cli.fake_judge import add as add_fake
from assay.cli.fake_judge import run as serve
from assay.errors import InputError
from assay.testing import FakeJudge
from tests.children import Children
from tests.written_files import write_rows

_PROGRAM = "import sys; from assay.cli.main import main; main(sys.argv[1:])"


def parsed(*given: str) -> Namespace:
    parser = ArgumentParser()
    add_fake(parser)
    return parser.parse_args(["--judge", *given])


@contextmanager
def serving(*given: str, command: str = "fake --judge") -> Generator[list[str]]:
    with Children() as started:
        words = [sys.executable, "-c", _PROGRAM, *command.split(), *given]
        program = started.start(words, stderr=None)
        assert program.stdout is not None
        yield [program.stdout.readline().rstrip() for _ in range(3)]
        program.send_signal(signal.SIGINT)
        assert program.wait() == 0


def ask(base_url: str, text: str = "x") -> str:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()
    with urllib.request.urlopen(f"{base_url}/chat/completions", body, timeout=60) as response:
        reply: Any = json.loads(response.read())
    return str(reply["choices"][0]["message"]["content"])


def test_it_serves_a_script_and_says_where(tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    file.write_text('"plain text"\n\n{"verdict": "MET"}\n')
    with serving(str(file), "--fault", "slow:seconds=0") as said:
        first, openai, anthropic = said
        url = openai.removeprefix("export OPENAI_BASE_URL=")
        assert first == f"serving fake-judge at {url} (Ctrl-C ends it)"
        assert anthropic == f"export ANTHROPIC_BASE_URL={url.removesuffix('/v1')}"
        assert [ask(url), ask(url)] == ["plain text", '{"verdict": "MET"}']


def test_a_port_that_is_taken_is_named() -> None:
    with FakeJudge() as fake:
        port = fake.base_url.removesuffix("/v1").rpartition(":")[2]
        with pytest.raises(InputError, match=f"cannot listen on port {port}"):
            serve(parsed("--port", port))


def test_it_serves_an_agents_model(tmp_path: Path) -> None:
    file = tmp_path / "turns.jsonl"
    lines = [
        {"fault": "529"},
        {"thought": "hm", "calls": [{"name": "bash", "arguments": {"command": "ls"}}]},
        {"calls": [{"name": "patch", "input": "*** Begin"}], "text": "So."},
        {"verdict": "MET"},
    ]
    write_rows(file, lines)
    with serving(str(file), command="fake") as said:
        assert said[0].startswith("serving fake-model at ")
        url = said[1].partition("=")[2]
        with pytest.raises(OSError, match="529"):
            ask(url)
        assert [ask(url) for _ in range(3)] == ["None", "So.", '{"verdict": "MET"}']
