"""What tests leave behind fails the run that they are part of."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.each import each
from tests.processes import living, marker

_ROOT = Path(__file__).parents[1]
_WATCHED = """
from tests.leftovers import watch

def pytest_configure():
    watch(patience={patience})
"""
_DAEMON = """
import subprocess

def test_that_starts_a_daemon():
    # Out of its session, without a name for what it belongs to, and nobody waits for it.
    subprocess.run(["env", "-i", "setsid", "-f", "/bin/sleep", "{mark}"], check=True)
"""
_FILE = """
import tempfile

def test_that_forgets_a_file():
    tempfile.mkdtemp(prefix="forgotten-")
"""
_ENDING = """
import subprocess

def test_whose_daemon_is_about_to_end():
    subprocess.run(["setsid", "-f", "/bin/sleep", "0.1"], check=True)
"""
_KILLED = """
import pathlib, tempfile

def test_that_kills_who_looks_for_a_directory():
    pathlib.Path(tempfile.gettempdir(), "j276iq27").write_bytes(b"blat")
"""


def run(place: Path, tests: str, patience: float) -> subprocess.CompletedProcess[str]:
    (place / "conftest.py").write_text(_WATCHED.format(patience=patience), "utf-8")
    (place / "test_it.py").write_text(tests, "utf-8")
    (place / "pytest.ini").write_text("[pytest]\n", "utf-8")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(_ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_process_and_a_file_are_named_and_ended(tmp_path: Path) -> None:
    mark = marker()
    done = run(tmp_path, _DAEMON.format(mark=mark) + _FILE, 0)
    assert done.returncode == 1
    assert "2 passed" in done.stdout
    assert f"/bin/sleep {mark}" in done.stderr
    assert "file forgotten-" in done.stderr
    assert not living(mark)


@each("tests, status", [(_ENDING, 0), (_KILLED, 0), ("def test_bad(): assert False", 1)])
def test_what_has_ended_is_not(tmp_path: Path, tests: str, status: int) -> None:
    done = run(tmp_path, tests, 60)
    assert (done.returncode, done.stderr) == (status, "")
