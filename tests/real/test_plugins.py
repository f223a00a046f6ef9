"""The examples of graders inside other tools, in an environment that has those (`make agents`)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.command_line import assay, cells

_ROOT = Path(__file__).parents[2]
_EXAMPLES = _ROOT / "examples" / "plugins"
pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def _printed(folder: Path, program: str, *arguments: str, peer: str = "evaluators") -> str:
    """What a program of the environment prints, run beside a copy of the examples."""
    found = _ROOT / ".bench" / peer / "bin" / program
    if not found.exists():
        pytest.skip(f"{program} is not installed; sh tools/agents.sh installs it")
    shutil.copytree(_EXAMPLES, folder, dirs_exist_ok=True)
    done = subprocess.run(
        [str(found), *arguments],
        cwd=folder,
        env={"HOME": str(folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **_ALONE},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout


_ALONE = {"COLUMNS": "200"}
_OUTCOMES = [
    "1.0 None separate",
    "0.0 None separate",
    "nan scoring_failed None",
]


def test_inspect_scores_a_task_and_a_log_and_assay_grades_the_log(tmp_path: Path) -> None:
    mean, *samples = _printed(tmp_path, "python", "inspect_task.py").splitlines()
    assert mean == "mean 0.5: 2 scored, 1 unscored"
    assert [line for line in samples if line.endswith(("separate", "None"))] == _OUTCOMES
    assert "there is no expected here" in "\n".join(samples)

    (log,) = (tmp_path / "logs").glob("*.eval")
    again = ["score", str(log), "--scorer", "assay/assay", "-S", "grader=graders.yaml"]
    said = _printed(tmp_path, "inspect", *again, "--action", "append", "--overwrite")
    assert said.count("mean    0.500") == 2

    done = assay("grade", str(log), str(log), "graders.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 3
    rewards = sorted(str(cell["reward"]) for cell in cells(done))
    assert rewards == ["0.0", "0.0", "1.0", "1.0", "None", "None"]
