"""Directories for a while: what is in use stays, and what killed processes left goes."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from assay.graders.testing.hidden import lay_out
from assay.sandbox.functions import tiers
from assay.scratch import _held, scratch, scratch_beside, to_end


def test_what_a_killed_process_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    base = str(tmp_path)
    with scratch("x-", base) as place:
        left = Path(f"{place}-left")
    (left / "session").mkdir(parents=True)
    (tmp_path / "y-other").mkdir()
    (tmp_path / "x-link").symlink_to(tmp_path / "y-other")
    with scratch("x-", base) as first, scratch("x-", base) as second:
        assert not left.exists()
        assert first.is_dir()
        assert second.is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x-link", "y-other"]


def test_a_directory_that_another_removes_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, make, made = str(tmp_path), tempfile.mkdtemp, list[str]()
    with ExitStack() as others:

        def slow(prefix: str, dir: str) -> str:  # noqa: A002 - its name there
            made.append(make(prefix=prefix, dir=dir))
            if len(made) == 1:
                shutil.rmtree(made[0])
            elif len(made) == 2:  # is about to
                others.enter_context(_held(Path(made[1])))
                others.callback(shutil.rmtree, made[1])
            return made[-1]

        monkeypatch.setattr("tempfile.mkdtemp", slow)
        with scratch("x-", base) as place:
            assert [Path(one).is_dir() for one in made] == [False, True, True]
            assert str(place) == made[2]
    assert list(tmp_path.iterdir()) == []


def test_deny_deep_temporary_directories_are_removed_and_nobodys_result(tmp_path: Path) -> None:
    base = str(tmp_path)
    with scratch("y-", base) as place:
        left = Path(shutil.copy2(__file__, tmp_path / "x-file"))
        (place.parent / "x-left").mkdir()
        _deepen(place.parent / "x-left")
    with scratch("x-", base):
        assert not (tmp_path / "x-left").exists()
    assert list(tmp_path.iterdir()) == [left]


async def test_what_cannot_be_removed_is_told_and_raises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    async with scratch_beside("x-") as place:
        monkeypatch.setattr("assay.scratch._REMOVE", "echo busy >&2; exit 1")
    assert place.is_dir()
    assert caplog.messages == [f"{place} could not be removed: busy"]


def _deepen(place: Path) -> None:
    """Deeper than Python recurses, at paths longer than the kernel takes."""
    opened = os.open(place, os.O_RDONLY)
    for _ in range(1_100):
        os.mkdir("deeper", dir_fd=opened)
        inner = os.open("deeper", os.O_RDONLY, dir_fd=opened)
        os.close(opened)
        opened = inner
    os.close(opened)


KILLED = """
import sys
from assay.graders.testing.hidden import lay_out
from assay.sandbox.functions import tiers

def tried(tier, secret):
    print(secret, flush=True)
    sys.stdin.read()

tiers._release_canary = tried
tiers.function_tiers()
"""


@pytest.mark.sandbox
def test_what_was_killed_while_it_proved_its_sandbox_leaves_nothing_for_ever() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip()).parent
        process.send_signal(signal.SIGKILL)
    assert left.is_dir()
    tiers._prove.cache_clear()
    tiers.function_tiers()
    assert not left.exists()


async def test_who_is_cancelled_waits_for_what_a_thread_still_writes(tmp_path: Path) -> None:
    """It came after its directory was removed, and stayed for ever."""
    begun, may_go = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_go.wait(60)
        (tmp_path / "late").touch()

    task = asyncio.create_task(to_end(work))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    may_go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (tmp_path / "late").exists()


def test_hidden_files_of_a_version_that_did_not_lock_them_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    in_use = tmp_path / "assay-layer-of-a-run"
    in_use.mkdir()
    with lay_out({}):
        assert in_use.exists()
