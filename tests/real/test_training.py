"""The examples of trainers, each in its trainer's own environment on CPU (`make agents`).

Where a trainer does not install without GPUs, its example calls the hook as the trainer does.
"""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.children import Children, printed
from tests.served_environment import serve_process

_ROOT = Path(__file__).parents[2]
_EXAMPLES = _ROOT / "examples" / "training"
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


def _printed(package: str, script: str, folder: Path, *arguments: str) -> list[str]:
    """The lines that an example prints; without a package, in assay's own environment."""
    python = str(_ROOT / ".bench" / package / "bin" / "python") if package else sys.executable
    if not Path(python).exists():
        pytest.skip(f"{package} is not installed; sh tools/agents.sh installs it")
    env = {"HOME": str(folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **_ALONE}
    words = [python, str(_EXAMPLES / script), *arguments]
    return printed(words, cwd=folder, env=env, seconds=280).strip().splitlines()


def _steps(lines: list[str]) -> list[Any]:
    return [ast.literal_eval(line) for line in lines[-2:]]


@pytest.mark.parametrize("arguments", [("GRPO", "chat"), ("RLOO", "text")])
@pytest.mark.sandbox
def test_trl_takes_two_steps(tmp_path: Path, arguments: tuple[str, str]) -> None:
    """Half of the prompts break one grader: TRL is given no reward for them, and goes on."""
    for step in _steps(_printed("trl", "trl_rewards.py", tmp_path, *arguments)):
        assert (step["spread/error_rate"], step["length/error_rate"]) == (0.5, 0.0)
        assert 0.0 < step["rewards/spread/mean"] <= 0.17
        assert 0.0 < step["rewards/length/mean"] <= 0.176


@pytest.mark.parametrize("place", ["file", "url"])
def test_trls_model_plays_an_environment_with_its_tools(tmp_path: Path, place: str) -> None:
    with Children() as children:
        arguments: list[str] = []
        if place == "url":
            served = serve_process(children, tmp_path, file=str(_EXAMPLES / "bank.py"))
            arguments = [f"tcp://127.0.0.1:{served.port}"]
        steps = _steps(_printed("trl", "trl_environment.py", tmp_path, *arguments))
    # One goal in four breaks its grader: those rollouts have no reward.
    assert sorted(step["save/error_rate"] for step in steps) == [0.0, 0.5]
    whole = next(step for step in steps if step["save/error_rate"] == 0.0)
    assert whole["rewards/save/mean"] == 0.562  # (0 + 0 + 5 + 10 + 15 + 20 + 20 + 20) / 20 / 8
    for step in steps:
        assert (step["tools/call_frequency"], step["tools/failure_frequency"]) == (1.0, 0.25)
        assert step["grad_norm"] > 0


@pytest.mark.parametrize("manager", ["naive", "dapo"])
def test_verls_reward_loop_asks_it_and_what_raises_leaves_its_group(
    tmp_path: Path, manager: str
) -> None:
    assert _printed("verl", "verl_reward.py", tmp_path, manager)[-3:] == [
        "1.0 {'graded': 1.0, 'flagged': 0.0}",
        "0.0 {'graded': 1.0, 'flagged': 0.0}",
        "failure: 3 of 4 samples, advantages [1.155, -0.577, -0.577]",
    ]


def test_verifiers_scores_a_trace_and_drops_what_cannot_be_graded(tmp_path: Path) -> None:
    right, wrong, raised = _printed("verifiers", "verifiers_task.py", tmp_path)
    assert (right, wrong) == ("2.0", "0.0")
    assert raised.startswith("no reward: ")
    assert "1 of 1 answers have no reward" in raised


def test_skyrl_steps_through_a_graded_environment(tmp_path: Path) -> None:
    assert _printed("skyrl-gym", "skyrl_environment.py", tmp_path) == [
        "1.0 {'done': True, 'graded': 1.0}",
        "0.0 {'done': True, 'graded': 1.0}",
        "0.0 {'done': True, 'graded': 0.0}",
        "logged: {'graded': 0.667, 'flagged': 0.0}",
    ]


def test_tinkers_cookbook_leaves_out_what_cannot_be_graded(tmp_path: Path) -> None:
    assert _printed("tinker-cookbook", "tinker_groups.py", tmp_path)[-2:] == [
        "raise: [0.0, 1.0, 1.0], [-0.667, 0.333, 0.333], 1 left out",
        "group_mean: [0.0, 0.667, 1.0, 1.0], [-0.667, 0.0, 0.333, 0.333], 0 left out",
    ]


@pytest.mark.parametrize("how", ["function", "served"])
def test_openrlhfs_executor_asks_it(tmp_path: Path, how: str) -> None:
    with Children() as children:
        arguments: list[str] = []
        if how == "served":
            graders = str(_EXAMPLES / "graders.yaml")
            words = ["-m", "assay", "serve", "grader", graders, "--port", "0"]
            process = children.start([sys.executable, *words], cwd=tmp_path)
            assert process.stdout is not None
            line = next(line for line in process.stdout if line.startswith("serving "))
            arguments = [f"{line.split(' at ')[1].split()[0]}/get_reward"]
        assert _printed("openrlhf", "openrlhf_reward.py", tmp_path, *arguments) == [
            "{'reward': 1.0, 'scores': 1.0, 'graded': 1.0}",
            "{'reward': 0.0, 'scores': 0.0, 'graded': 1.0}",
            "{'reward': 0.0, 'scores': 0.0, 'graded': 0.0}",
        ]


def test_adaptives_client_and_recipe_ask_a_stored_grader_by_its_version(tmp_path: Path) -> None:
    name, rewards, refused, own = _printed("adaptive-sdk", "adaptive_recipe.py", tmp_path)
    assert (name, rewards, own) == ("served: exact", "[1.0, 0.0]", "[1.0, None]")
    assert refused.startswith("not graded: 500 not graded: item 0")


def test_slime_is_called_as_it_was_recorded(tmp_path: Path) -> None:
    assert _printed("", "slime_reward.py", tmp_path) == ["[1.0, 0.0, 0.5] [False, False, True]"]


def test_nemo_gym_is_answered_as_it_was_recorded(tmp_path: Path) -> None:
    mark = "'mask_sample': True, '_ng_failure_class': 'judge_failed'"
    row = "'instance_config': {'mask_sample': True}"
    assert _printed("", "nemo_gym_verify.py", tmp_path) == [
        "{'reward': 1.0}",
        "{'reward': 0.0}",
        f"{{'reward': 0.0, {mark}, {row}}}",
    ]


def test_two_trainers_ask_one_server_which_is_killed_between_their_steps(tmp_path: Path) -> None:
    *steps, metric = _printed("", "reward_service.py", tmp_path)
    assert sorted(steps[:2]) == ["trl  [1.0, 0.0, None]", "verl [1.0, 0.0, 'GraderError']"]
    assert sorted(steps[2:]) == ["trl  [0.0, 0.0, None]", "verl [0.0, 0.0, 'GraderError']"]
    assert metric == 'assay_project_grades_total{outcome="ok",project="default"}'
