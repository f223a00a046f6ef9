"""`assay doctor` says what isolates functions here, and what a call of one may use."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from assay.graders.testing import runners
from assay.sandbox.functions import FunctionLimits
from assay.sandbox.functions.inside.landlock import version
from tests.command_line import assay
from tests.containers import Podman

pytestmark = [pytest.mark.sandbox]

NO_ENGINE = {"ASSAY_CONTAINERS": "/nowhere/podman"}


def test_both_tiers_the_limits_and_what_is_missing_are_shown(tmp_path: Path) -> None:
    env = {**NO_ENGINE, "COLUMNS": "200", "OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}
    done = assay("doctor", cwd=tmp_path, env=env)
    assert done.stdout, done.stderr
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "ok function graders tier bwrap" in lines
    names = [" ".join(line.split()[1:2]) for line in lines]
    assert {"bwrap", "landlock", "limits"} <= set(names)
    assert any("2 s CPU, 10 s wall, 1024 MiB, 16 processes" in line for line in lines)
    extras = {name for name, *_ in (line.split()[2:] for line in lines if " extra " in line)}
    assert extras == {"acp", "data", "languages", "math", "mcp", "otel", "server", "similarity"}
    assert "cases with a container cannot run" in done.stdout
    assert "apt-get install podman" in done.stdout
    assert done.returncode == 0, "it is needed by those cases alone"
    told = " ".join(lines)
    assert "judges are errors unless their model is a URL; model_judge is skipped" in told


def test_what_is_wrapped_stays_in_its_entry(tmp_path: Path) -> None:
    done = assay("doctor", cwd=tmp_path, env={**NO_ENGINE, "COLUMNS": "60"})
    lines = done.stdout.splitlines()
    assert lines[0].startswith("ok   python  ")
    assert all(line[:4] in ("ok  ", "--  ", "miss", "    ") for line in lines[:-2])
    assert max(map(len, lines)) <= 60


def test_limits_for_programs(tmp_path: Path) -> None:
    done = assay("doctor", "--json", cwd=tmp_path, env=NO_ENGINE)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert report["function_limits"] == asdict(FunctionLimits())
    (found,) = [row for row in report["findings"] if row["name"] == "function graders"]
    assert found["detail"] == "tier bwrap"


@pytest.mark.skipif(version() < 6, reason="needs Linux 6.12")
def test_without_bubblewrap_the_fix_is_said(tmp_path: Path) -> None:
    """Cases cannot be graded, functions can; the reader learns which is which."""
    done = assay("doctor", cwd=tmp_path, env={"PATH": str(tmp_path)})
    assert done.returncode == 3
    assert done.stdout, done.stderr
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "ok function graders tier landlock" in lines
    assert "-- bwrap bubblewrap (bwrap) is not installed" in lines
    assert any("apt-get install bubblewrap" in line for line in lines)


def test_a_command_is_run_in_an_image_to_prove_that_cases_can(
    podman: Podman, tmp_path: Path
) -> None:
    done = assay("doctor", cwd=tmp_path, env={**podman.env(), "COLUMNS": "200"})
    line = next(line for line in done.stdout.splitlines() if "container images" in line)
    assert line.startswith("ok   container images       podman version ")
    assert "a command in an image took" in line
    assert podman("images", "--quiet") == "", "nothing is left in the engine"


def test_without_pytest_the_cost_and_the_fix_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything worked, it said, where no hidden test could run: a wheel brings no pytest."""
    monkeypatch.setattr(runners, "_own_packages", lambda: tmp_path)
    monkeypatch.setattr(runners, "_SYSTEM", str(tmp_path / "no-python"))
    said = " ".join(assay("doctor", cwd=tmp_path, env=NO_ENGINE).stdout.split())
    assert "-- pytest not found costs you: hidden tests for pytest cannot run" in said
    assert "fix: pip install pytest" in said
