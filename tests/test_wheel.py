"""What ships: the wheel has the web page, so that no user needs Node, and is small."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = "assay/server/page/"
REPORT = "assay/reports/page/"
MOST_BYTES = 4_000_000


FIRST_SAFE = {"aiohttp": (3, 13, 3), "h11": (0, 16), "starlette": (0, 49, 1), "fastapi": (0, 121)}
"""The versions since which no known fault lets a stranger in or stops what listens."""


def test_no_version_from_before_a_fix_of_security_is_let_in() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *project["optional-dependencies"]["server"]]
    lowest = {
        name: tuple(int(part) for part in least.split("."))
        for name, _, least in (one.partition(">=") for one in asked)
        if name in FIRST_SAFE
    }
    assert lowest.keys() == FIRST_SAFE.keys()
    assert all(lowest[name] >= least for name, least in FIRST_SAFE.items())


def test_the_wheel_has_all_of_the_page_and_nothing_that_builds_it(tmp_path: Path) -> None:
    if not (ROOT / "src" / PAGE / "index.html").exists():
        pytest.skip("the page was not built: make web")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.iterdir()
    assert wheel.stat().st_size < MOST_BYTES
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        document = archive.read(f"{PAGE}index.html").decode()
    if (ROOT / "src" / REPORT).exists():
        assert {f"{REPORT}report.js", f"{REPORT}report.css"} <= names
    built = ROOT / "src" / PAGE
    files = {f"{PAGE}{one.relative_to(built)}" for one in built.rglob("*") if one.is_file()}
    assert files == {name for name in names if name.startswith(PAGE)}
    for named in re.findall(r'(?:src|href)="/([^"]+)"', document):
        assert PAGE + named in names
    assert not [name for name in names if "node_modules" in name or name.startswith("web/")]
