"""Call functions as an ordinary user too, where the tests run as root.

The two take different ways through the kernel.
"""

from __future__ import annotations

import atexit
import functools
import os
import pickle
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import assay.sandbox
from assay.errors import AssayError

__all__ = ["DRIVER", "NOBODY", "SETPRIV", "Drive", "ordinary_user", "surroundings"]

NOBODY = 65534
SETPRIV = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
DRIVER = """
import pickle, sys
from assay.errors import AssayError
while True:
    try:
        call, words, options = pickle.load(sys.stdin.buffer)
    except EOFError:
        break
    try:
        answer = call(words, **options)
    except AssayError as error:
        answer = error
    sys.stdout.buffer.write(pickle.dumps(answer))
    sys.stdout.buffer.flush()
"""

Drive = Callable[[Callable[..., object], list[str], dict[str, object]], object]


@functools.cache
def _sources() -> str:
    """Where assay and these tests are; copied where only their owner gets there, as in a home."""
    packages = [Path(assay.sandbox.__file__).parents[1], Path(__file__).parents[1]]
    if all(one.stat().st_mode & 0o005 == 0o005 for place in packages for one in place.parents):
        return ":".join(str(place.parent) for place in packages)
    copied = Path(tempfile.mkdtemp(prefix="sources-"))
    copied.chmod(0o755)
    atexit.register(shutil.rmtree, copied)
    for place in packages:
        shutil.copytree(place, copied / place.name, ignore=shutil.ignore_patterns("__pycache__"))
    return str(copied)


def surroundings() -> dict[str, str]:
    """The variables of an interpreter that finds assay and these tests."""
    path = os.environ["PATH"]
    return {"PYTHONPATH": _sources(), "PYTHONDONTWRITEBYTECODE": "1", "PATH": path}


@contextmanager
def ordinary_user() -> Generator[Drive]:
    """A process of an ordinary user that calls what can be pickled; skips where there is none."""
    if os.getuid() != 0 or not shutil.which("setpriv") or not Path("/usr/bin/python3").exists():
        pytest.skip("not as root")
    driver = subprocess.Popen(
        [*SETPRIV, "/usr/bin/python3", "-c", DRIVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=surroundings(),
        cwd="/",
    )
    assert driver.stdin
    assert driver.stdout
    orders, answers = driver.stdin, driver.stdout

    def call(
        function: Callable[..., object], words: list[str], options: dict[str, object]
    ) -> object:
        orders.write(pickle.dumps((function, words, options)))
        orders.flush()
        answer = pickle.load(answers)
        if isinstance(answer, AssayError):
            raise answer
        return answer

    with driver:
        try:
            call(assay.sandbox.run_command_sync, ["true"], {"workspace": None})
        except (EOFError, BrokenPipeError):
            pytest.skip("an ordinary user cannot reach an interpreter and these sources")
        yield call
        driver.kill()
