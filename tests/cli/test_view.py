"""`assay view`: the page on the store at hand, in one command that leaves nothing."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from assay.cli.view import _place
from assay.store.records import RunRecord
from assay.store.runs import Store
from tests.cli.opened_pages import SILENT
from tests.command_line import COMMAND, environment

RUN = "20261123-040506-ab12"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory with a stored run."""
    with Store.open(str(tmp_path / ".assay")) as store:
        store.create_run(
            RunRecord(id=RUN, created_at="2026-11-23T04:05:06Z", label="nightly", planned=0)
        )
    return tmp_path


@contextmanager
def viewing(
    home: Path, *arguments: str, **env: str
) -> Generator[tuple[subprocess.Popen[str], list[str]]]:
    """The command as a process, and what it said so far."""
    process = subprocess.Popen(
        [*COMMAND, "view", *arguments],
        cwd=home,
        env={**environment(home), **SILENT, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process, [process.stdout.readline() for _ in range(1 + ("--json" not in arguments))]
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_without_a_run_the_overview_is_opened(home: Path) -> None:
    assert _place(str(home / ".assay"), None) == ""


def test_a_run_is_opened_in_the_browser_and_ctrl_c_leaves_nothing(home: Path) -> None:
    seen, browser = home / "seen", home / "browser.sh"
    os.mkfifo(seen)
    browser.write_text('#!/bin/sh\necho "$1" >"$(dirname "$0")/seen"\n')
    browser.chmod(0o755)
    with viewing(home, "latest", BROWSER=f"{browser} %s") as (process, said):
        link = seen.read_text("utf-8").strip()
        assert link in said[1]
        parts = urlsplit(link)
        assert parts.hostname == "127.0.0.1"
        assert parse_qs(parts.query)["next"] == [f"/runs/{RUN}"]
        with httpx.Client() as browsing:
            answer = browsing.get(link)
            assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{RUN}")
            me = browsing.get(f"http://{parts.netloc}/api/v1/me")
            assert me.json()["role"] == "admin"
        assert httpx.get(link).status_code == 403, "it works once"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "")
    with socket.create_server(("127.0.0.1", parts.port or 0)):
        pass
    left = {path.name for path in home.iterdir()}
    assert left == {".assay", "seen", "browser.sh"}


def test_without_a_screen_it_prints_the_link_and_says_it_to_programs(
    home: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    words = ("nightly", "--db", str(home / ".assay"), "--json", "--no-open")
    with viewing(elsewhere, *words) as (process, (line,)):
        said = json.loads(line)
        assert said["key"] is None
        assert httpx.get(said["login"]).headers["location"] == f"/runs/{RUN}"
        process.terminate()
        assert process.wait(30) == 0
