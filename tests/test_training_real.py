"""Rewards in the trainers themselves, on CPU, each in an environment of its own (`make agents`)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).parent.parent
_SCRIPTS = Path(__file__).parent / "trainers"
_ALONE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "CUDA_VISIBLE_DEVICES": "",
    "WANDB_DISABLED": "true",
    "TRL_EXPERIMENTAL_SILENCE": "1",
}
pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

_EXACT = "- type: exact_match\n"


def _run(package: str, script: str, folder: Path, *arguments: str) -> Any:
    python = _ROOT / ".bench" / package / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{package} is not installed; sh tools/agents.sh installs it")
    (folder / "graders.yaml").write_text(_EXACT)
    done = subprocess.run(
        [str(python), str(_SCRIPTS / script), *arguments],
        cwd=folder,
        env={"HOME": str(folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **_ALONE},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.parametrize(
    ("trainer", "form"), [("GRPO", "text"), ("GRPO", "chat"), ("RLOO", "text")]
)
@pytest.mark.sandbox
def test_trl_takes_two_steps(tmp_path: Path, trainer: str, form: str) -> None:
    """Half of the prompts break one grader: TRL is given no reward for them, and goes on."""
    steps = _run("trl", "with_trl.py", tmp_path, trainer, form, str(tmp_path))
    assert len(steps) == 2
    for step in steps:
        assert step["spread/error_rate"] in (0.0, 0.5, 1.0)
        assert step["length/error_rate"] == 0.0
        assert 0.0 < step["rewards/length/mean"] <= 0.16
    graded = [step for step in steps if step["spread/error_rate"] < 1.0]
    assert all(0.0 < step["rewards/spread/mean"] <= 0.16 for step in graded)


@pytest.mark.parametrize("manager", ["naive", "dapo"])
def test_verls_reward_loop_asks_it(tmp_path: Path, manager: str) -> None:
    file = tmp_path / "my_reward.py"
    file.write_text(
        "from assay.training.verl import reward_function\n"
        "compute_score = reward_function('graders.yaml')\n"
    )
    model = tmp_path / "model"
    given = _run("verl", "with_verl.py", tmp_path, str(file), str(model), manager)
    assert [score for score, _ in given] == [1.0, 0.0]
    keys = {"score", "graded", "flagged", "seconds"}
    assert [keys <= extra.keys() for _, extra in given] == [True, True]


def test_verifiers_scores_a_trace_and_drops_what_cannot_be_graded(tmp_path: Path) -> None:
    (tmp_path / "my_reward.py").write_text(
        "from assay.training.verifiers import reward_function\n"
        "reward = reward_function('graders.yaml')\n"
    )
    right, wrong, raised = _run("verifiers", "with_verifiers.py", tmp_path, str(tmp_path))
    assert (right, wrong) == (2.0, 0.0)
    assert "1 of 1 answers have no reward" in raised


def test_skyrl_steps_through_a_graded_environment(tmp_path: Path) -> None:
    (tmp_path / "my_reward.py").write_text(
        "from assay.training.skyrl import environment\nGraded = environment('graders.yaml')\n"
    )
    assert _run("skyrl-gym", "with_skyrl.py", tmp_path, str(tmp_path)) == [
        [1.0, True, 1.0],
        [0.0, True, 1.0],
    ]
