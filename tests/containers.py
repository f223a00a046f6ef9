"""Container images made of this machine's own programs, and a podman of the tests' own.

Nothing is pulled: a small root file system is copied together and imported. podman keeps its images
below a directory of the tests, and runs as it does on a machine without systemd.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

__all__ = ["PASSWD", "Podman", "make_root", "podman"]

_SHELL = "sh bash cat dd id ls mkdir rm touch ln env chmod find head tar grep base64 cut tail"
PASSWD = "root:x:0:0:root:/root:/bin/sh\napp:x:1234:1235::/home/app:/bin/sh\n"
_PYTHON = Path("/usr/bin/python3")
_LEFT_OUT = ("test", "__pycache__", "lib2to3", "idlelib", "config-*", "pydoc_data", "tkinter")


def make_root(root: Path, *, python: bool = False, needs: Iterable[Path] = ()) -> Path:
    """Copy a shell, and perhaps Python, with the libraries they need, below a directory.

    Args:
        root: The directory.
        python: Whether Python is copied, too.
        needs: Programs and libraries whose own libraries are copied, without them and what lies
            beside them, outside of the system's directories.
    """
    for name in ("usr/bin", "usr/lib", "usr/lib64", "etc", "app", "root"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    (root / "etc/passwd").write_text(PASSWD)
    found = [shutil.which(name) for name in _SHELL.split()]
    programs = {Path(path).name: os.path.realpath(path) for path in found if path}
    if python:
        real = _PYTHON.resolve()
        programs["python3"] = str(real)
        library = Path("/usr/lib", real.name)
        ignored = shutil.ignore_patterns(*_LEFT_OUT)
        # Links of the library lead to what another package installs.
        shutil.copytree(library, root / library.relative_to("/"), ignore=ignored)
    for name, path in programs.items():
        shutil.copy2(path, root / "usr/bin" / name)
    for path in _libraries([*programs.values(), *map(str, needs)]):
        if not path.startswith(("/lib", "/usr/")):
            continue
        place = root / Path(os.path.realpath(os.path.dirname(path))).relative_to("/")  # noqa: PTH120
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy2(os.path.realpath(path), place / Path(path).name)
    return root


def _libraries(programs: Iterable[str]) -> set[str]:
    told = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    return {word for word in told.split() if word.startswith("/") and not word.endswith(":")}


class Podman:
    """A podman whose images are the tests' own.

    Attributes:
        program: What starts it.
    """

    def __init__(self, place: Path) -> None:
        self.program = place / "podman"
        options = f"--root {place}/store --runroot {place}/run --tmpdir {place}/tmp"
        options += " --runtime runc --cgroup-manager cgroupfs --storage-driver vfs"
        options += " --events-backend none"
        self.program.write_text(f'#!/bin/sh\nexec podman {options} "$@"\n')
        self.program.chmod(0o755)

    def __call__(self, *words: str, stdin: bytes = b"") -> str:
        """What it prints."""
        done = subprocess.run(
            [str(self.program), *words], input=stdin, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    def add(self, name: str, root: Path | None, *, changes: Sequence[str] = ()) -> str:
        """Import a directory as an image, with lines of a Dockerfile; return its id."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            if root is not None:
                tar.add(root, ".")
        return self.add_archive(name, archive.getvalue(), changes=changes)

    def add_archive(self, name: str, archive: bytes, *, changes: Sequence[str] = ()) -> str:
        """Import a tar archive as an image."""
        words = [word for line in changes for word in ("--change", line)]
        told = self("import", *words, "-", f"localhost/{name}", stdin=archive)
        return told.splitlines()[-1].removeprefix("sha256:")

    def env(self) -> Mapping[str, str]:
        """Variables by which assay finds it."""
        return {"ASSAY_CONTAINERS": str(self.program)}


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    """A podman with images of its own; skips the test where there is none that works."""
    if not shutil.which("podman") or not shutil.which("runc"):
        pytest.skip("podman is not installed (Debian's packages 'podman' and 'runc')")
    if os.geteuid() != 0:
        pytest.skip("the tests' podman needs root")
    if not _PYTHON.exists() or sys.platform != "linux":
        pytest.skip("there is no /usr/bin/python3 to make images of")
    # podman takes no longer path than 50 characters for what it keeps while it runs.
    place = Path(tempfile.mkdtemp(prefix="podman-", dir="/tmp"))
    yield Podman(place)
    shutil.rmtree(place)
