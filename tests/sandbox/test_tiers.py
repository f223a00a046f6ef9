"""Which isolation functions get: proven by a canary, never assumed, never none."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from assay.errors import InputError, SandboxError, SandboxUnavailableError
from assay.sandbox import bubblewrap
from assay.sandbox.functions import (
    FunctionLimits,
    FunctionPool,
    Program,
    TierChoice,
    launch,
    session,
    tiers,
)
from assay.sandbox.functions.inside.landlock import version
from assay.sandbox.functions.tiers import Tier, function_tier, function_tiers
from assay.sandbox.seccomp import ALLOW
from tests.each import each

pytestmark = [pytest.mark.sandbox]
modern = pytest.mark.skipif(version() < 6, reason="needs Linux 6.12")


@pytest.fixture(autouse=True)
def unproven() -> Iterator[None]:
    """Nothing is known before a test, and what it played is forgotten after it."""
    tiers._prove.cache_clear()
    tiers._warn.cache_clear()
    yield
    tiers._prove.cache_clear()
    tiers._warn.cache_clear()


def no_bubblewrap() -> str:
    raise SandboxUnavailableError("there is no bwrap", hint="install bubblewrap")


def no_landlock() -> int:
    return 0


@pytest.fixture
def without_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "find", no_bubblewrap)


@pytest.fixture
def without_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "version", no_landlock)


def test_bubblewrap_where_it_works(caplog: pytest.LogCaptureFixture) -> None:
    assert function_tier() == function_tier("bwrap") == "bwrap"
    assert caplog.records == []


@modern
def test_landlock_can_be_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    assert function_tier("landlock") == "landlock"
    assert caplog.records == []


@modern
@pytest.mark.usefixtures("without_bubblewrap")
def test_landlock_says_once_what_it_lacks(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert [function_tier(), function_tier()] == ["landlock", "landlock"]
    (record,) = caplog.records
    said = record.getMessage()
    assert launch.LOSSES in said
    assert "install bubblewrap" in said


@pytest.mark.usefixtures("without_bubblewrap", "without_landlock")
def test_no_tier_is_an_error_with_both_mends() -> None:
    with pytest.raises(SandboxUnavailableError) as caught:
        function_tier()
    assert "there is no bwrap" in caught.value.message
    assert "no Landlock" in caught.value.message
    assert "install bubblewrap" in caught.value.hint
    assert "Linux 5.13" in caught.value.hint
    report = function_tiers()
    assert report.tier is None
    assert [(check.name, check.ok) for check in report.checks] == [
        ("bwrap", False),
        ("landlock", False),
    ]
    assert all(check.fix for check in report.checks)


@pytest.mark.usefixtures("without_bubblewrap", "without_landlock")
@each("name", ["ASSAY_SANDBOX", "ASSAY_TIER", "ASSAY_NO_SANDBOX"])
async def test_nothing_turns_it_off(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "none")
    pool = FunctionPool(Program(source="def grade(x): return 1.0"))
    with pytest.raises(SandboxUnavailableError):
        await pool.start()
    await pool.close()


@pytest.mark.usefixtures("without_bubblewrap")
def test_what_is_asked_for_is_not_replaced() -> None:
    with pytest.raises(SandboxUnavailableError, match="no bwrap"):
        function_tier("bwrap")


@each("choice", ["none", "", "docker"])
def test_there_are_no_other_tiers(choice: str) -> None:
    with pytest.raises(InputError, match="unknown tier"):
        function_tier(cast("TierChoice", choice))


def test_a_failure_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(bubblewrap, "find", no_bubblewrap)
        with pytest.raises(SandboxUnavailableError):
            function_tier("bwrap")
    assert function_tier("bwrap") == "bwrap"


def open_filters(tier: Tier) -> tuple[bytes, ...]:
    return (ALLOW,) if tier == "bwrap" else (ALLOW, ALLOW)


@pytest.mark.parametrize(
    ("tier", "said"),
    [
        pytest.param("bwrap", "opens sockets", id="bwrap"),
        pytest.param("landlock", "starts processes", id="landlock", marks=modern),
    ],
)
def test_the_canary_sings(tier: Tier, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that takes the filter and does not apply it."""
    monkeypatch.setattr(session, "worker_filters", open_filters)
    with pytest.raises(SandboxUnavailableError, match=said) as caught:
        function_tier(tier)
    assert "do not run untrusted code here" in caught.value.hint


BREEDING = """
import ctypes, os, time

def grade(payload):
    ctypes.CDLL(None).prctl(15, payload.encode(), 0, 0, 0)
    for number in range(8):
        if os.fork() == 0:
            if number % 2:
                os.setsid()
            while True:
                if os.fork() == 0:
                    time.sleep(0.01)
                time.sleep(0.5)
    return 1.0
"""


@modern
def test_forks_that_breed_do_not_outlive_their_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the filter does not hold: without a pid namespace, nothing ends them by itself."""
    mark = f"x{secrets.token_hex(6)}"
    monkeypatch.setattr(session, "worker_filters", open_filters)
    worker = session.start("landlock")
    try:
        worker.load(Program(source=BREEDING), "call", FunctionLimits())
        worker.run([f'"{mark}"'.encode()])
    except SandboxError:
        pass  # it may be given up for what it finds: only what is left of it matters here
    finally:
        worker.kill()
    named = [path for path in Path("/proc").glob("[0-9]*/comm") if reads(path) == mark]
    assert not named


def reads(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def fails(error: Exception) -> Callable[[str], object]:
    def start(tier: str) -> object:
        raise error

    return start


def test_what_breaks_down_is_no_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "start", fails(SandboxError("out of processes")))
    with pytest.raises(SandboxUnavailableError, match="bwrap: out of processes; landlock"):
        function_tier()


def test_report_of_this_machine() -> None:
    report = function_tiers()
    assert report.tier == "bwrap"
    assert [check.name for check in report.checks] == ["bwrap", "landlock"]
    assert all("ms" in check.detail for check in report.checks if check.ok)
