"""Hostile functions under Docker's default profile, where no namespace can be made: the Landlock
tier, for a container's root and for an ordinary user, attacked in earnest."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TypedDict, cast

import pytest

from assay.sandbox.functions.inside.landlock import version
from tests.attacks.scenes import scenes
from tests.each import each
from tests.sandbox.docker_emulation import interpreter, run_as_docker

TRIES, LIMITS, AT_LOAD = (
    {agent.name: str(agent.files["grade.py"]) for agent in scene.agents}
    for scene in scenes("functions")
)
ATTACKS = {**TRIES, **LIMITS}
FRAME = """
import os, sys

def tries(*attempts):
    got = []
    for number, attempt in enumerate(attempts):
        try:
            attempt()
        except Exception:
            continue
        got.append(number)
    if got:
        print("succeeded:", got)
    return float(bool(got))

{attack}

def grade(payload):
    return float(attack(payload["host"])) if payload["attack"] else 0.25
"""
"""Around each attack: a call that is none must score 0.25, whatever the one before it did."""

USER = 1777
DRIVER = Path(__file__).with_name("landlock_driver.py")
is_root = os.geteuid() == 0
pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.slow,
    pytest.mark.skipif(version() < 6, reason="needs Linux 6.12"),
]


class Found(TypedDict):
    tier: str
    status: str
    score: float | None
    message: str
    output: str
    honest: list[float | None]
    error: str
    harm: list[str]


class Report(TypedDict):
    found: dict[str, Found]
    orphans: int
    left: int
    said: str


@lru_cache(maxsize=2)
def attacked(uid: int) -> subprocess.CompletedProcess[str]:
    """All attacks, in one emulated container."""
    orders = {
        "calls": {name: FRAME.replace("{attack}", code) for name, code in ATTACKS.items()},
        "loads": {
            name: f"import os\n{code}\ndef grade(payload):\n    return 0.25\n"
            for name, code in AT_LOAD.items()
        },
    }
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        return run_as_docker(
            DRIVER.read_text(), uid=uid, stdin=json.dumps({**orders, "place": place})
        )


@pytest.fixture(scope="module", params=["root", "user"])
def report(request: pytest.FixtureRequest) -> Report:
    uid = 0 if request.param == "root" else (USER if is_root else os.getuid())
    if uid == 0 and not is_root:
        pytest.skip("needs root")
    if interpreter(uid) is None:
        pytest.skip("no interpreter that another user may run")
    done = attacked(uid)
    assert done.returncode == 0, done.stderr
    report = cast("Report", json.loads(done.stdout))
    report["said"] = done.stderr
    return report


def test_bubblewrap_is_found_wanting_and_landlock_chosen(report: Report) -> None:
    assert {found["tier"] for found in report["found"].values()} == {"landlock"}
    assert "Landlock instead of bubblewrap" in report["said"]
    assert report["said"].count("instead of bubblewrap") == 1


@each("name", ATTACKS)
def test_an_attack_gains_nothing(name: str, report: Report) -> None:
    found = report["found"][name]
    assert found["score"] != 1.0, found["output"]
    assert found["status"] != "sandbox_error", found["message"]
    assert found["harm"] == []
    assert found["honest"] == [0.25, 0.25]


@each("name", TRIES)
def test_an_attempt_fails_and_the_call_goes_on(name: str, report: Report) -> None:
    found = report["found"][name]
    assert (found["status"], found["score"]) == ("ok", 0.0), found


@each("name", AT_LOAD)
def test_an_attack_while_loading_is_a_program_that_cannot_be_loaded(
    name: str, report: Report
) -> None:
    """Loading runs in a process of its own, too: the worker, which may fork, runs nothing of it."""
    found = report["found"][name]
    assert found["error"]
    assert found["harm"] == []


@each(
    ("name", "status"),
    [
        ("endless_loop", "cpu_timeout"),
        ("endless_sleep", "wall_timeout"),
        ("memory_bomb", "memory"),
        ("abort", "crash"),
        ("exit", "crash"),
        ("fork_bomb", "error"),
    ],
)
def test_what_becomes_of_the_call(name: str, status: str, report: Report) -> None:
    assert report["found"][name]["status"] == status


def test_no_process_is_left_for_others_to_bury(report: Report) -> None:
    """Process 1 of a container often reaps nobody: each zombie would stay for ever."""
    assert report["orphans"] == 0


def test_a_worker_that_is_killed_takes_its_call_along(report: Report) -> None:
    assert report["left"] == 0
