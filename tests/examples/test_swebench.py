"""The cases of examples/swebench, run by the command line: honest work passes and nothing else.

Their source distributions are replaced by ones that are made from the recorded repairs by taking
the repair back, and served from a directory: the road is the real one, and nothing is fetched. So
is pytest: the tests run with the one beside assay.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from assay.tasks.case import load_case, load_cases
from tests.command_line import assay, cells

EXAMPLES = Path(__file__).parents[2] / "examples" / "swebench"

XMLTODICT = json.loads((EXAMPLES / "row.json").read_text("utf-8"))["patch"]
COPYING = """\
        def __copy__(self):
            return self

        def __deepcopy__(self, _memo):
            return self

"""

EXPECTED = {
    ("xmltodict-name-injection", "reference"): 1.0,
    ("xmltodict-name-injection", "partial"): 1 / 3,
    ("xmltodict-name-injection", "breaking"): 0.0,
    ("xmltodict-name-injection", "noop"): 0.0,
    ("xmltodict-name-injection", "cheat"): 0.0,
    ("boltons-sentinel-copy", "reference"): 1.0,
    ("boltons-sentinel-copy", "breaking"): 0.0,
    ("boltons-sentinel-copy", "noop"): 0.0,
    ("boltons-sentinel-copy", "cheat"): 0.0,
}


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the cases; their packages come from a directory."""
    copy = tmp_path / "swebench"
    shutil.copytree(EXAMPLES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "sdists").mkdir()
    for name, package in (
        ("xmltodict-name-injection", "xmltodict-0.14.2"),
        ("boltons-sentinel-copy", "boltons-24.0.0"),
    ):
        files = copy / name / "recordings" / "reference" / "files"
        digest = make_sdist(tmp_path, package, files)
        case = copy / name / "case.yaml"
        text = re.sub(r'sha256: "\w{64}"', f'sha256: "{digest}"', case.read_text("utf-8"))
        text = re.sub(r"^environment:\n(  .*\n)+", "", text, flags=re.MULTILINE)
        case.write_text(text, encoding="utf-8")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "sdists"))
    return copy


def make_sdist(place: Path, package: str, repaired: Path) -> str:
    """Write a source distribution of what was there before a repair; its SHA-256."""
    tree = place / package
    shutil.copytree(repaired, tree)
    if package.startswith("xmltodict"):
        argv = ["git", "apply", "-R", "-"]
        subprocess.run(argv, cwd=tree, input=XMLTODICT.encode(), check=True)
    else:
        module = tree / "boltons" / "typeutils.py"
        text = module.read_text("utf-8")
        assert COPYING in text
        module.write_text(text.replace(COPYING, ""), encoding="utf-8")
    (tree / "tests").mkdir()
    for directory in {tree / "tests", *(tree / path.parent for path in sources(tree))} - {tree}:
        (directory / "__init__.py").touch()
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for path in sources(tree):
            data = (tree / path).read_bytes()
            info = tarfile.TarInfo(f"{package}/{path}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    archive = gzip.compress(raw.getvalue(), mtime=0)
    (place / "sdists" / f"{package}.tar.gz").write_bytes(archive)
    return hashlib.sha256(archive).hexdigest()


def sources(tree: Path) -> list[Path]:
    return sorted(path.relative_to(tree) for path in tree.rglob("*.py"))


@pytest.mark.sandbox
@pytest.mark.slow
def test_recordings_get_what_they_deserve_and_what_stands_in_for_the_work_nothing(
    suite: Path, tmp_path: Path
) -> None:
    """Both under the contracts that the first run learns."""
    done = assay("run", str(suite), "--json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr  # some cells do not pass, and none is an error
    found = {(str(c["case"]), str(c["model"])): c for c in cells(done)}
    rewards = {key: cell["reward"] for key, cell in found.items()}
    assert rewards == pytest.approx(EXPECTED)
    assert {str(cell["status"]) for cell in found.values()} == {"graded"}
    done = assay("attack", str(suite), "--cheat", "stand-ins", "--json", cwd=tmp_path)
    attempts = [one for case in json.loads(done.stdout)["cases"] for one in case["checks"]]
    assert {one["name"] for one in attempts} >= {"yes", "nan", "empty", "swallow"}, done.stderr
    assert {one["outcome"] for one in attempts} == {"holds"}, attempts
    lock = json.loads((suite / "xmltodict-name-injection" / "case.lock.json").read_text("utf-8"))
    assert lock["graders"]["swebench"]["isolation"] == "process"


def test_recordings_are_those_of_the_matrix() -> None:
    for case in load_cases([str(EXAMPLES)]):
        recorded = {path.name for path in Path(case.root, "recordings").iterdir()}
        assert {model for _, model in case.matrix.pairs()} == recorded
    assert {(case, model) for case, model in EXPECTED} == {
        (case.id, model) for case in load_cases([str(EXAMPLES)]) for _, model in case.matrix.pairs()
    }
    assert shutil.which("sed"), "the recordings edit with sed"


def test_imported_case_is_still_that_of_its_row() -> None:
    case = load_case(str(EXAMPLES / "xmltodict-name-injection"))
    row = json.loads((EXAMPLES / "row.json").read_text("utf-8"))
    options = case.graders[0].options
    assert options["fail_to_pass"] == json.loads(row["FAIL_TO_PASS"])
    assert options["pass_to_pass"] == json.loads(row["PASS_TO_PASS"])
    assert " ".join(case.task.prompt.split()) == " ".join(row["problem_statement"].split())
