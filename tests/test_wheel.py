"""What ships: the wheel has the web page, so that no user needs Node, and is small."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = "assay/server/page/"
REPORT = "assay/reports/page/"
MOST_BYTES = 4_000_000


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
