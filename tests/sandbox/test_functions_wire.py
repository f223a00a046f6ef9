"""What a worker says may be any bytes: the host reads a result, or lets the worker die for it."""

from __future__ import annotations

import ctypes
import itertools
import math
import os
import socket
import struct
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.sandbox.functions.inside import calls
from assay.sandbox.functions.inside.calls import UNMADE
from assay.sandbox.functions.inside.confine import Confinement
from assay.sandbox.functions.inside.evaluate import CRASH
from assay.sandbox.functions.inside.wire import BIRTH, Pipes
from assay.sandbox.functions.program import (
    STATUSES,
    FunctionLimits,
    Outcome,
    Results,
    WorkerError,
    read_load,
)
from tests.each import each

_LIMITS = FunctionLimits(output_bytes=100)


def frame(kind: str, content: bytes) -> bytes:
    return struct.pack("<IB", len(content), ord(kind)) + content


def call(
    number: int, status: int = 0, score: float = 0.5, output: bytes = b"", message: bytes = b""
) -> bytes:
    head = struct.pack("<IBdQQI", number, status, score, 1500, 2500, len(output))
    return frame("C", head + output + message)


def fed(data: bytes, count: int, *, step: int = 0) -> Results:
    results = Results(count, _LIMITS)
    for at in range(0, len(data), step or len(data) or 1):
        results.feed(data[at : at + (step or len(data))])
    return results


frames = st.one_of(
    st.binary(max_size=60),
    st.builds(
        call,
        st.integers(0, 3),
        st.integers(0, 255),
        st.floats(),
        st.binary(max_size=120),
        st.binary(max_size=40),
    ),
    st.builds(frame, st.sampled_from("CERxB"), st.binary(max_size=40)),
    st.just(frame("E", b"\0")),
    st.just(frame("E", b"\2")),
)


@given(st.lists(frames, max_size=6), st.integers(1, 3), st.integers(1, 50))
def test_whatever_a_worker_sends_is_a_result_or_its_death(
    sent: list[bytes], count: int, step: int
) -> None:
    data = b"".join(sent)
    try:
        results = fed(data, count, step=step)
    except WorkerError:
        return
    assert len(results.outcomes) <= count
    assert not results.done or len(results.outcomes) == count or results.is_retiring
    for outcome in results.outcomes:
        assert outcome.status in STATUSES
        assert (outcome.score is not None) == (outcome.status == "ok")
        assert outcome.score is None or math.isfinite(outcome.score)
        assert len(outcome.output.encode("utf-8", "replace")) <= 3 * _LIMITS.output_bytes


@given(st.binary(max_size=80))
def test_any_answer_to_a_program_is_read_or_refused(data: bytes) -> None:
    try:
        answer = read_load(data)
    except WorkerError:
        return
    assert answer is None or isinstance(answer[0], bool)


@given(st.integers(1, 200))
def test_frames_may_arrive_in_any_pieces(step: int) -> None:
    data = call(0, output=b"printed") + call(1, 1, message=b"went wrong") + frame("E", b"\0")
    results = fed(data, 2, step=step)
    assert results.done
    assert results.outcomes == [
        Outcome("ok", 0.5, "", "printed", 0.0015, 0.0025),
        Outcome("error", None, "went wrong", "", 0.0015, 0.0025),
    ]


@each("number", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_is_a_bad_return(number: float) -> None:
    (outcome,) = fed(call(0, score=number), 1).outcomes
    assert (outcome.status, outcome.score) == ("bad_return", None)


@each(
    ("name", "data"),
    [
        ("another call's", call(1)),
        ("the same twice", call(0) + call(0)),
        ("more than there are", call(0) + call(1) + call(2)),
        ("an unknown status", call(0, status=8)),
        ("more output than is kept", call(0, output=bytes(101))),
        ("a message without end", call(0, message=bytes(2001))),
        ("a short frame", frame("C", b"\0\0\0\0")),
        ("a frame without end", struct.pack("<IB", 2**31, ord("C"))),
        ("an end before the end", call(0) + frame("E", b"\0")),
        ("something after the end", call(0) + call(1) + frame("E", b"\0") + b"x"),
        ("a call after the end", call(0) + call(1) + frame("E", b"\0") + call(0)),
        ("an answer to another question", frame("R", b"\1\0\0\0\0")),
    ],
)
def test_a_lying_worker_dies(name: str, data: bytes) -> None:
    with pytest.raises(WorkerError):
        fed(data, 2)


@each("made", [0, 1])
def test_a_worker_may_retire_before_the_last_call(made: int) -> None:
    results = fed(call(0) * made + frame("E", b"\2"), 2)
    assert results.done
    assert results.is_retiring
    assert len(results.outcomes) == made


@each(("template", "status"), [("waits", UNMADE), ("is dead", CRASH), ("is refused", CRASH)])
def test_a_call_that_the_template_cannot_fork_for_is_not_made(
    monkeypatch: pytest.MonkeyPatch, template: str, status: int
) -> None:
    """On so busy a machine that it is not its turn for seconds; the call was blamed for a crash."""
    monkeypatch.setattr(calls, "_PATIENCE_MS", 10)
    pipes, libc = Pipes(), ctypes.PyDLL(None)
    its_ends = (pipes.orders[0], pipes.births[1], pipes.deaths[1])
    process = subprocess.Popen(["sleep", "infinity"], pass_fds=its_ends)
    if template == "is refused":
        os.write(pipes.births[1], BIRTH.pack(-1))
    pipes.keep_supervisor_ends()
    confinement = Confinement(libc, b"", namespaced=False, limit_processes=False)
    here, there = socket.socketpair()
    try:
        if template == "is dead":
            process.kill()
            process.wait()
        own = here.fileno(), process.pid, pipes
        made = calls.ForkedCalls(*own, confinement=confinement, keep=9, on_delay=lambda: None)
        made.start(b"{}")
        assert made.reply(2.0, 10.0)[0] == status
        assert made.is_spent == (template != "is refused")
    finally:
        process.kill()
        process.wait()
        here.close()
        there.close()
        for fd in {*itertools.chain(*vars(pipes).values())} - {0, *its_ends}:
            os.close(fd)
