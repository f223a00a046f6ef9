"""The examples of trainers, each in its trainer's own environment on CPU (`make agents`).

Where a trainer does not install without GPUs, its example calls the hook as the trainer does.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.children import Children, of_peers, printed
from tests.real.in_turn import IN_TURN, parts
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
    "OMP_NUM_THREADS": "1",  # for models this small, more of them mostly wait, and busily
}
pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def _printed(package: str, folder: Path, *scripts: Sequence[str]) -> list[list[str]]:
    """The lines that each example prints; without a package, in assay's own environment."""
    python = of_peers(package, package) if package else sys.executable
    place = str(folder)  # also for what trainers leave in a directory for a while
    env = {"HOME": place, "TMPDIR": place, "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **_ALONE}
    given = ["\t".join([str(_EXAMPLES / script), *words]) for script, *words in scripts]
    said = printed([python, "-c", IN_TURN, *given], cwd=folder, env=env, seconds=280)
    return [part.strip().splitlines() for part in parts(said)]


def _steps(lines: list[str]) -> list[Any]:
    return [ast.literal_eval(line) for line in lines[-2:]]


@pytest.mark.sandbox
def test_trl_takes_two_steps_with_rewards_and_with_an_environment(tmp_path: Path) -> None:
    with Children() as children:
        served = serve_process(children, tmp_path, file=str(_EXAMPLES / "bank.py"))
        *rewarded, file, url = _printed(
            "trainers",
            tmp_path,
            ("trl_rewards.py", "GRPO", "chat"),
            ("trl_rewards.py", "RLOO", "text"),
            ("trl_environment.py",),
            ("trl_environment.py", f"tcp://127.0.0.1:{served.port}"),
        )
    # Half of the prompts break one grader: TRL is given no reward for them, and goes on.
    for step in (step for lines in rewarded for step in _steps(lines)):
        assert (step["spread/error_rate"], step["length/error_rate"]) == (0.5, 0.0)
        assert 0.0 < step["rewards/spread/mean"] <= 0.17
        assert 0.0 < step["rewards/length/mean"] <= 0.176
    for steps in (_steps(file), _steps(url)):
        # One goal in four breaks its grader: those rollouts have no reward.
        assert sorted(step["save/error_rate"] for step in steps) == [0.0, 0.5]
        whole = next(step for step in steps if step["save/error_rate"] == 0.0)
        assert whole["rewards/save/mean"] == 0.562  # (0 + 0 + 5 + 10 + 15 + 20 + 20 + 20) / 20 / 8
        for step in steps:
            assert (step["tools/call_frequency"], step["tools/failure_frequency"]) == (1.0, 0.25)
            assert step["grad_norm"] > 0


def test_verls_reward_loop_asks_it_and_what_raises_leaves_its_group(tmp_path: Path) -> None:
    managers = [("verl_reward.py", name) for name in ("naive", "dapo")]
    for said in _printed("trainers", tmp_path, *managers):
        assert said[-3:] == [
            "1.0 {'graded': 1.0, 'flagged': 0.0}",
            "0.0 {'graded': 1.0, 'flagged': 0.0}",
            "failure: 3 of 4 samples, advantages [1.155, -0.577, -0.577]",
        ]


def test_verifiers_scores_a_trace_and_drops_what_cannot_be_graded(tmp_path: Path) -> None:
    ((right, wrong, raised),) = _printed("trainers", tmp_path, ("verifiers_task.py",))
    assert (right, wrong) == ("2.0", "0.0")
    assert raised.startswith("no reward: ")
    assert "1 of 1 answers have no reward" in raised


def test_skyrl_steps_through_a_graded_environment(tmp_path: Path) -> None:
    (said,) = _printed("trainers", tmp_path, ("skyrl_environment.py",))
    assert said == [
        "1.0 {'done': True, 'graded': 1.0}",
        "0.0 {'done': True, 'graded': 1.0}",
        "0.0 {'done': True, 'graded': 0.0}",
        "logged: {'graded': 0.667, 'flagged': 0.0}",
    ]


def test_tinkers_cookbook_leaves_out_what_cannot_be_graded(tmp_path: Path) -> None:
    (said,) = _printed("trainers", tmp_path, ("tinker_groups.py",))
    assert said[-2:] == [
        "raise: [0.0, 1.0, 1.0], [-0.667, 0.333, 0.333], 1 left out",
        "group_mean: [0.0, 0.667, 1.0, 1.0], [-0.667, 0.0, 0.333, 0.333], 0 left out",
    ]


def test_openrlhfs_executor_asks_it(tmp_path: Path) -> None:
    with Children() as children:
        graders = str(_EXAMPLES / "graders.yaml")
        words = ["-m", "assay", "serve", "grader", graders, "--port", "0"]
        process = children.start([sys.executable, *words], cwd=tmp_path)
        assert process.stdout is not None
        line = next(line for line in process.stdout if line.startswith("serving "))
        served = f"{line.split(' at ')[1].split()[0]}/get_reward"
        function, asked = ("openrlhf_reward.py",), ("openrlhf_reward.py", served)
        for said in _printed("openrlhf", tmp_path, function, asked):
            assert said == [
                "{'reward': 1.0, 'scores': 1.0, 'graded': 1.0}",
                "{'reward': 0.0, 'scores': 0.0, 'graded': 1.0}",
                "{'reward': 0.0, 'scores': 0.0, 'graded': 0.0}",
            ]


def test_adaptives_client_and_recipe_ask_a_stored_grader_by_its_version(tmp_path: Path) -> None:
    (said,) = _printed("trainers", tmp_path, ("adaptive_recipe.py",))
    name, rewards, refused, own = said
    assert (name, rewards, own) == ("served: exact", "[1.0, 0.0]", "[1.0, None]")
    assert refused.startswith("not graded: 500 not graded: item 0")


def test_slime_and_nemo_gym_are_answered_as_they_were_recorded(tmp_path: Path) -> None:
    slime, gym = _printed("", tmp_path, ("slime_reward.py",), ("nemo_gym_verify.py",))
    assert slime == ["[1.0, 0.0, 0.5] [False, False, True]"]
    mark = "'mask_sample': True, '_ng_failure_class': 'judge_failed'"
    row = "'instance_config': {'mask_sample': True}"
    assert gym == ["{'reward': 1.0}", "{'reward': 0.0}", f"{{'reward': 0.0, {mark}, {row}}}"]


def test_two_trainers_ask_one_server_which_is_killed_between_their_steps(tmp_path: Path) -> None:
    ((*steps, metric),) = _printed("", tmp_path, ("reward_service.py",))
    assert sorted(steps[:2]) == ["trl  [1.0, 0.0, None]", "verl [1.0, 0.0, 'GraderError']"]
    assert sorted(steps[2:]) == ["trl  [0.0, 0.0, None]", "verl [0.0, 0.0, 'GraderError']"]
    assert metric == 'assay_project_grades_total{outcome="ok",project="default"}'
