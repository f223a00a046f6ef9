"""`assay demo` from end to end, through the command line.

The package that the examples repair is replaced by a stand-in with the same bug, served from a
directory as a source distribution: so the road is the real one, and no network is needed.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import shutil
import tarfile
from pathlib import Path

import pytest

from assay.cli.demo import examples_directory
from assay.errors import InputError, SandboxUnavailableError
from assay.store.runs import Store
from tests.command_line import Command, numbers_of

EXAMPLES = Path(__file__).parents[2] / "examples"
STAND_IN = Path(__file__).parents[1] / "standins" / "parse.py"


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the examples in a working directory; its package comes from a directory."""
    copy = tmp_path / "examples"
    shutil.copytree(EXAMPLES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    digest = _make_sdist(tmp_path / "sdists", "parse-1.17.0")
    case = copy / "repair" / "parse-number-base" / "case.yaml"
    text = re.sub(r"sha256: \w{64}", f"sha256: {digest}", case.read_text(encoding="utf-8"))
    case.write_text(text, encoding="utf-8")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "sdists"))
    return copy


def _make_sdist(directory: Path, name: str) -> str:
    """Write a source distribution with the stand-in; its SHA-256."""
    content = STAND_IN.read_bytes()
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for file, data in ((f"{name}/parse.py", content), (f"{name}/test_parse.py", b"")):
            info = tarfile.TarInfo(file)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    directory.mkdir()
    archive = gzip.compress(raw.getvalue(), mtime=0)
    (directory / f"{name}.tar.gz").write_bytes(archive)
    return hashlib.sha256(archive).hexdigest()


@pytest.mark.sandbox
@pytest.mark.slow
def test_demo_grades_everything_as_expected_and_the_second_needs_nothing_from_outside(
    examples: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = command.ok("demo", str(examples))
    expected = json.loads((examples / "expected.json").read_text(encoding="utf-8"))
    assert f"{len(expected)} grades as expected" in said
    shown = said.splitlines()
    for attempt in ("partial", "noop", "cheat"):
        assert f"✗ parse-number-base {attempt}" in shown
    assert "example + 0.80" in said
    assert "0.00 because gate old-behaviour failed" in said
    assert "could not be graded: the recorded answer is null" in said
    for line in ("assay report 20", "assay view", "assay init my-suite"):
        assert line in said
    _stored_runs_can_be_reported(command)
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    assert f"{len(expected)} grades as expected" in command.ok("demo", str(examples))


def _stored_runs_can_be_reported(command: Command) -> None:
    assert numbers_of(command.json("report", "demo-repair", status=1))["passed"] == 1
    with Store.open(str(Path.cwd() / ".assay")) as store:
        runs = store.runs()
        assert {run.label for run in runs} == {"demo-repair", "demo-tasks", ""}
        assert all(run.finished for run in runs)


@pytest.mark.sandbox
def test_without_the_package_the_rest_is_graded_and_the_fix_told(
    examples: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("COLUMNS", "200")
    code, shown, _ = command("demo", str(examples))
    assert code == 3
    _every_name_can_be_read(shown, 200)
    said = " ".join(shown.split())
    assert "! repair not run: parse==1.17.0: no source distribution" in said
    assert "set PIP_FIND_LINKS to that directory" in said
    assert "78 grades as expected" in said
    assert "the repair could not be run" in said
    found = re.findall(r"accuracy ([0-9.]+) \(always the commoner label: ([0-9.]+)\)", said)
    assert len(found) == 6
    for accuracy, commoner in found:
        # A few labels are there that the graders get wrong, as in life.
        assert float(commoner) < float(accuracy) < 1.0


def _every_name_can_be_read(shown: str, columns: int) -> None:
    lines = shown.splitlines()
    assert all(len(line) <= columns for line in lines)
    for name in ("answers/orders", "answers/short", "✗ symbol-tungsten", "✓ meeting"):
        assert any(line.startswith(name) for line in lines), (name, shown)


@pytest.mark.sandbox
def test_what_differs_is_named_and_fails(
    examples: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(examples / "repair" / "parse-number-base" / "recordings" / "noop")
    file = examples / "expected.json"
    expected = json.loads(file.read_text(encoding="utf-8"))
    expected["answers/arithmetic/a1"] = 0.25
    expected["answers/arithmetic/a99"] = 1.0
    del expected["answers/arithmetic/a2"]
    file.write_text(json.dumps(expected), encoding="utf-8")
    monkeypatch.setenv("COLUMNS", "300")
    code, said, _ = command("demo", str(examples))
    assert code == 3, "one cell could not be graded"
    assert "4 grades not as expected" in said
    assert "answers/arithmetic/a1 should be 0.25 and is 1" in said
    assert "answers/arithmetic/a99 has no result" in said
    assert "answers/arithmetic/a2 has an unexpected result" in said
    assert "parse-number-base noop should be 0 and is an error: [agent] no recording 'noop'" in said


def test_no_sandbox_is_told_and_nothing_becomes_a_zero(
    examples: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> str:
        raise SandboxUnavailableError("no sandbox here", hint="install one")

    monkeypatch.setattr("assay.sandbox.bubblewrap.find", missing)
    monkeypatch.setenv("COLUMNS", "40")
    code, shown, _ = command("demo", str(examples))
    assert code == 3
    _every_name_can_be_read(shown, 40)
    said = " ".join(shown.split())
    assert "parse-number-base cheat should be 0 and is an error" in said
    assert "no sandbox here (install one)" in said
    assert "assay doctor" in said


def test_missing_expectations_are_refused(examples: Path, command: Command) -> None:
    (examples / "expected.json").unlink()
    code, _, err = command("demo", str(examples))
    assert (code, "expected.json" in err) == (2, True)


def test_shipped_examples_are_found() -> None:
    assert examples_directory() == EXAMPLES.resolve()
    with pytest.raises(InputError, match="no examples"):
        examples_directory("/nonexistent")
