"""Which Python `make … PYTHON=` means."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.each import each

TOOLS = Path(__file__).parents[1] / "tools"


def program(file: Path, body: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{body}\n", "utf-8")
    file.chmod(0o755)
    return file


def asked(command: str, home: Path) -> tuple[int, str]:
    """What a function of `python.sh` says where PATH has only `bin`, and pyenv only `pyenv`."""
    ran = subprocess.run(
        ["/bin/sh", "-c", f". {TOOLS}/python.sh; {command}"],
        env={"PATH": f"{home}/bin:/usr/bin:/bin", "PYENV_ROOT": f"{home}/pyenv", "HOME": "/"},
        check=False,
        capture_output=True,
        text=True,
    )
    return ran.returncode, (ran.stdout + ran.stderr).strip().replace(str(home), "~")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    program(tmp_path / "bin/python3.71", "exit 0")
    program(tmp_path / "bin/python3.72", "exit 127")  # pyenv's, where that version is not chosen
    program(tmp_path / "bin/python3.73", "exit 1")  # it says that it is older than 3.11
    for version in ("3.72.2", "3.72.10", "3.72.10-dev", "3.7.2", "3.71.1"):
        program(
            tmp_path / f"pyenv/versions/{version}/bin/python3",
            '[ "${2#*print}" = "$2" ] || echo .venv-3.72',
        )
    return tmp_path


@each(
    ("asked_for", "found"),
    [
        ("3.71", "~/bin/python3.71"),
        ("3.71.1", "~/pyenv/versions/3.71.1/bin/python3"),
        ("3.72", "~/pyenv/versions/3.72.10/bin/python3"),
        ("3.72.2", "~/pyenv/versions/3.72.2/bin/python3"),
        ("3.73", ""),
        ("3.74", ""),
        ("~/bin/python3.71", "~/bin/python3.71"),
        ("~/bin/python3.73", ""),
        ("~/bin/nothing", ""),
    ],
)
def test_a_python_is_found_on_path_and_under_pyenv(asked_for: str, found: str, home: Path) -> None:
    said = asked(f"find_python {asked_for.replace('~', str(home))}", home)
    assert said == (0 if found else 1, found)


def test_each_python_that_is_asked_for_has_an_environment_of_its_own(home: Path) -> None:
    assert asked("venv_of", home) == (0, ".venv")
    assert asked("venv_of 3.72", home) == (0, ".venv-3.72")
    code, said = asked("venv_of 3.74", home)
    assert code == 1
    assert said == "there is no Python 3.74 on PATH or under pyenv, or it is older than 3.11"
