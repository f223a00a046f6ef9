"""What ships: a wheel with the web page, so that no user needs Node or a clone, and a small one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Generator, Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from packaging.requirements import Requirement
from tools.index_page import for_index

from tests.children import Children

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


def test_the_page_on_an_index_has_no_link_that_leads_nowhere() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    for base in ("", "https://example.org/assay/blob/v1"):
        shown = for_index(text, base)
        targets = re.findall(r"\]\(([^)\s]+)\)", shown)
        assert all(one.startswith(("https:", "#")) for one in targets), base
        assert "docs/images" not in shown
        assert any(one.startswith(f"{base}/docs/") for one in targets) == bool(base)
    assert for_index("[a](docs/a.md#b), [c](https://c.org)") == "a, [c](https://c.org)"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the wheel and the source distribution."""
    place = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(place)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place


@pytest.mark.slow
def test_the_wheel_has_all_of_the_page_and_nothing_that_builds_it(built: Path) -> None:
    if not (ROOT / "src" / PAGE / "index.html").exists():
        pytest.skip("the page was not built: make web")
    (wheel,) = built.glob("*.whl")
    assert wheel.stat().st_size < MOST_BYTES
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        document = archive.read(f"{PAGE}index.html").decode()
    if (ROOT / "src" / REPORT).exists():
        assert {f"{REPORT}report.js", f"{REPORT}report.css"} <= names
    page = ROOT / "src" / PAGE
    files = {f"{PAGE}{one.relative_to(page)}" for one in page.rglob("*") if one.is_file()}
    assert files == {name for name in names if name.startswith(PAGE)}
    for named in re.findall(r'(?:src|href)="/([^"]+)"', document):
        assert PAGE + named in names
    assert not [name for name in names if "node_modules" in name or name.startswith("web/")]


@pytest.mark.slow
def test_both_distributions_are_whole(built: Path) -> None:
    """What is read as a file beside the code is there, and nothing of this machine."""
    (wheel,), (source,) = built.glob("*.whl"), built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        there = {name for name in archive.namelist() if name.startswith("assay/")}
        (described,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        said = archive.read(described).decode()
    ours = {
        f"assay/{one.relative_to(ROOT / 'src/assay')}"
        for one in (ROOT / "src/assay").rglob("*")
        if one.is_file() and "__pycache__" not in one.parts
    }
    assert ours == {name for name in there if "/_examples/" not in name}
    assert not {name for name in there if "__pycache__" in name}
    assert "License-Expression: Apache-2.0 AND MIT AND BSD-3-Clause\n" in said
    own = {"LICENSE", "src/assay/reports/page/licenses.md", "src/assay/server/page/licenses.md"}
    assert {*re.findall(r"License-File: (.*)", said)} == own, "and those of what is built in"
    assert str(ROOT) not in said
    assert not re.findall(r"(?m)^(?:Home-page|Project-URL): .*(?:localhost|127\.|10\.)", said)
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "LICENSE", "src/assay/py.typed", "examples/expected.json"} <= names
    assert not {name for name in names if name.startswith((".venv", ".git/", "dist/"))}


class Installed:
    """An environment into which the wheel was installed, and an empty directory to work in.

    Args:
        home: Where both are made, by the first step of `action.yml`.
        wheel: What is installed, by pip and without an index.
        children: Start what runs longer.
    """

    def __init__(self, home: Path, wheel: Path, children: Children) -> None:
        self.work, self._venv, self._children = home / "work", home / "assay", children
        self.work.mkdir()
        (home / "bin").mkdir()
        (home / "bin" / "python3").symlink_to(sys.executable)
        self._environment = {
            "PATH": f"{home}/bin:/usr/bin:/bin",
            "HOME": str(self.work),
            "COLUMNS": "100",
            "PIP_NO_INDEX": "1",
            "PIP_NO_DEPS": "1",
            "PIP_FIND_LINKS": str(wheel.parent),
            "RUNNER_TEMP": str(home),
            "ASSAY_VERSION": wheel.name.split("-")[1],
        }
        first = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["runs"]["steps"][0]
        self._run("bash", "-eo", "pipefail", "-c", first["run"])
        self._environment["PATH"] = f"{self._venv}/bin:/usr/bin:/bin"

    def bring(self, extra: str = "") -> None:
        """Have what the wheel asks for, out of the tests' own environment."""
        (site,) = self._venv.glob("lib/python*/site-packages")
        for name in closure("assay", extra) - {"assay"}:
            for top in tops(metadata.distribution(name)):
                if not (site / top.name).exists():
                    (site / top.name).symlink_to(top)
        self._run("pip", "check")

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        done = self.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a program to its end."""
        started = self.start(*words)
        out, err = started.communicate(timeout=240)
        return subprocess.CompletedProcess(words, started.returncode, out, err)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a program of the environment, or another."""
        program = self._venv / "bin" / words[0]
        first = str(program) if program.exists() else words[0]
        return self._children.start([first, *words[1:]], cwd=self.work, env=self._environment)


def closure(name: str, extra: str = "") -> set[str]:
    """The distributions that one needs here, itself included."""
    found: set[tuple[str, str]] = set()
    left = [(name, ""), (name, extra)]
    while left:
        found.add(one := left.pop())
        for text in metadata.requires(one[0]) or ():
            asked = Requirement(text)
            if asked.marker is None or asked.marker.evaluate({"extra": one[1]}):
                left += [(asked.name, more) for more in ("", *asked.extras)]
        left = [one for one in left if one not in found]
    return {name for name, _ in found}


def tops(distribution: metadata.Distribution) -> Iterable[Path]:
    """What it has directly in its directory."""
    first = {one.parts[0] for one in distribution.files or ()} - {"..", "__pycache__"}
    return [Path(str(distribution.locate_file(name))) for name in sorted(first)]


@pytest.fixture
def installed(built: Path, tmp_path: Path) -> Generator[Installed]:
    (wheel,) = built.glob("*.whl")
    with Children() as children:
        yield Installed(tmp_path, wheel, children)


JUDGE = """- {type: exact_match}
- type: llm_judge
  model: "MODEL"
  criteria: [The answer names Canberra]
"""


@pytest.mark.slow
@pytest.mark.sandbox
def test_the_wheel_needs_no_clone(installed: Installed) -> None:
    """Comparisons, a judge and a suite; then with `server` the page, too."""
    installed.bring()
    code = "import assay, sys; print(assay.__file__); sys.exit('fastapi' in sys.modules)"
    where = installed.run("python", "-c", code)
    assert where.stdout.startswith(str(installed.work.parent / "assay"))

    assert installed.run("assay", "init", "suite").returncode == 0
    ran = installed.run("assay", "run", "suite")
    assert ran.returncode == 1, ran.stderr
    assert "✓ 2 passed   ✗ 3 failed   ! 0 errors" in ran.stdout

    fake = installed.start("assay", "fake", "--judge")
    assert fake.stdout is not None
    (url,) = re.findall(r"http://[0-9.:]+/v1", fake.stdout.readline())
    (installed.work / "judge.yaml").write_text(JUDGE.replace("MODEL", f"{url}#judge"), "utf-8")
    row = {"prompt": "The capital of Australia?", "answer": "Canberra", "expected": "Canberra"}
    (installed.work / "rows.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    judged = installed.run("assay", "grade", "rows.jsonl", "judge.yaml")
    assert judged.returncode == 0, judged.stdout + judged.stderr

    shown = installed.run("assay", "demo")
    said = " ".join(shown.stdout.split())
    assert re.search(r"! \d\d grades as expected in .+, but the repair could not be run", said), (
        said
    )
    assert shown.returncode == 3, "its package comes from an index, and there is none here"

    without = installed.run("assay", "serve", "--port", "0")
    assert "pip install 'assay[server]'" in without.stderr
    installed.bring("server")
    served = installed.start("assay", "serve", "--port", "0", "--json")
    assert served.stdout is not None
    url = json.loads(served.stdout.readline())["url"]
    page = httpx.get(url, headers={"Accept": "text/html"}).text
    named: list[Any] = re.findall(r'(?:src|href)="(/[^"]+\.(?:js|css))"', page)
    assert named
    assert {httpx.get(url + name).status_code for name in named} == {200}
