"""What others of a machine or a cluster could take or be given, without a cluster."""

from __future__ import annotations

import os
import pickle
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from assay.errors import InputError
from assay.eval.cluster.joining import _address_here, connected
from assay.eval.cluster.limits import WithinLimits, for_others
from assay.eval.cluster.sent_graders import SentGraders
from assay.graders.spec import GraderSpec
from assay.models import ModelSettings
from tests.each import each


@contextmanager
def listener() -> Generator[str]:
    """An address where something says what Ray's control store says first."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            there, _ = server.accept()
            with there:
                there.recv(64)
                there.sendall(b"\0\0\0\x04")

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which Ray notes the cluster that this machine has joined."""
    (tmp_path / "ray").mkdir()
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return tmp_path / "ray" / "ray_current_cluster"


@pytest.mark.timeout(60)
def test_a_pipe_in_the_place_of_the_noted_cluster_holds_up_nothing(noted: Path) -> None:
    os.mkfifo(noted)
    assert _address_here() is None
    silent = os.open(noted, os.O_RDWR)
    try:
        assert _address_here() is None
    finally:
        os.close(silent)


def test_a_cluster_that_another_user_has_noted_is_not_joined(
    noted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    if not os.getuid():
        noted.touch()
        os.chown(noted, 4711, -1)
    monkeypatch.setattr("os.getuid", lambda: 4712)
    with listener() as address:
        noted.write_text(address)
        refusal = pytest.raises(InputError, match="another user of this machine")
        with refusal as refused, connected("ray"):
            pass
    assert address in refused.value.hint


@each(
    ("address", "is_elsewhere"),
    [
        ("192.0.2.1:6379", True),
        ("127.0.0.1:1", False),
        ("no address", False),
        ("nobody.test", False),
    ],
)
def test_nobody_grades_here_alone_because_the_cluster_elsewhere_is_away(
    noted: Path, monkeypatch: pytest.MonkeyPatch, address: str, *, is_elsewhere: bool
) -> None:
    def is_away(address: str) -> None:
        raise InputError(f"there is no Ray cluster at {address}")

    monkeypatch.setattr("assay.eval.cluster.joining.require_head", is_away)
    noted.write_text(address)
    if is_elsewhere:
        with pytest.raises(
            InputError, match=f"has joined the cluster at {address}, which does not"
        ):
            _address_here()
    else:
        assert _address_here() is None


def test_a_graders_file_is_written_nowhere_but_below_the_workers_own_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("assay.eval.cluster.sent_graders._IN_SANDBOX", ())
    file = tmp_path / "f.py"
    source = "async def grade(answer):\n    return 1.0\n"
    for path in (f"{tmp_path}/{'../' * 40}{file}", "f.py", f"{tmp_path}/gone/../f.py"):
        file.write_text(source)
        sent = SentGraders.of([GraderSpec(type="function", options={"file": path})])
        file.unlink()  # as on another machine
        place = tmp_path / "place"
        (spec,) = sent.unpacked(str(place))
        assert not file.exists()
        assert spec.options["file"] == f"{place}{file}"
        assert Path(f"{place}{file}").read_text() == source


def test_keys_do_not_travel_and_each_machine_has_its_own() -> None:
    here = {"OPENAI_API_KEY": "sk-of-here", "OPENAI_BASE_URL": "https://judge.example/v1"}
    settings = ModelSettings.from_environment(here)
    work = WithinLimits(print, for_others(settings))
    assert b"sk-of-here" not in pickle.dumps(work)
    there = for_others(settings).with_keys({"OPENAI_API_KEY": "sk-of-there"})
    assert there.secrets == {**here, "OPENAI_API_KEY": "sk-of-there"}
    other = for_others(settings).with_keys({"OPENAI_BASE_URL": "https://other.example/v1"})
    assert other.secrets == {"OPENAI_BASE_URL": here["OPENAI_BASE_URL"]}
