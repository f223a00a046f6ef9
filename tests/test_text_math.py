"""Mathematics: what is equal, and that no answer holds the grader."""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import GraderError, InputError, MissingExtraError
from assay.text import exact_match, f1_score, killable, math_equal, similarity
from assay.text.math import math_decided


@pytest.mark.parametrize(
    ("answer", "expected", "score"),
    [
        ("42", "42", 1.0),
        ("So it is 42.\n**42**", 42, 1.0),
        (r"\boxed{1,234}", "1234", 1.0),
        (r"\boxed{\dfrac{1}{2}}", r"$\frac{1}{2}$", 1.0),
        (r"\boxed{ x + 1 }", r"\boxed{x+1}", 1.0),
        (r"\boxed{3 1/2}", "31/2", 0.0),
        (r"\boxed{3 1/2}", "3.5", 1.0),
        (r"\boxed{-5}", "5", 0.0),
        (r"\boxed{X}", "X", 1.0),
        (r"\boxed{Paris}", "Paris", 1.0),
        (r"\boxed{}", "5", 0.0),
        (r"It is 5, or 5: \boxed{} 5", "5", 0.0),
        (r"\boxed{5} no: \boxed{6}", "5", 0.0),
        (r"5 \boxed{6}", "5", 0.0),
        ("<answer>7</answer> 8", "7", 1.0),
        ("<answer></answer> 8", "8", 0.0),
        ("", "5", 0.0),
        (None, "5", 0.0),
        ("x" * 20_001, "5", 0.0),
    ],
)
def test_decided_without_algebra(
    answer: str | None, expected: object, score: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(killable, "MATHEMATICS", None)
    assert math_equal(answer, expected) == score


def test_pick_and_extract() -> None:
    assert math_equal(r"\boxed{1} \boxed{2}", "1", pick="first") == 1.0
    assert math_equal(r"\boxed{1} \boxed{2}", "2", pick="only") == 0.0
    assert math_equal("5\n6", "6", extract="last_line") == 1.0
    assert math_equal("5", "5", extract="boxed") == 0.0


@pytest.mark.parametrize(
    ("expected", "options"),
    [
        (None, {}),
        (" ", {}),
        ("5", {"timeout_seconds": 0}),
        ("5", {"timeout_seconds": float("nan")}),
        ("5", {"pick": "any"}),
        ("5", {"extract": "box"}),
    ],
)
def test_what_an_author_gets_wrong_is_refused(expected: object, options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        math_equal("5", expected, **options)


def test_without_math_verify_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        del name

    monkeypatch.setattr(killable, "find_spec", absent)
    monkeypatch.setattr(killable, "MATHEMATICS", mathematics())
    with pytest.raises(MissingExtraError, match=r"assay\[math\]"):
        math_equal("x + 1", "1 + x")


@pytest.mark.parametrize("program", ["/nonexistent/python", "/bin/false"])
def test_a_process_that_cannot_start_is_an_error_not_a_zero(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(killable, "MATHEMATICS", mathematics())
    monkeypatch.setattr(sys, "executable", program)
    with pytest.raises(GraderError, match="did not start"):
        math_equal("x + 1", "1 + x")


def test_a_process_that_is_not_ready_in_time_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(killable, "MATHEMATICS", mathematics())
    monkeypatch.setattr(killable, "_START_SECONDS", 0.0)
    with pytest.raises(GraderError, match="not ready"):
        math_equal("x + 1", "1 + x")


def mathematics() -> killable.Pool:
    """A pool of its own, to be killed and starved."""
    return killable.Pool("mathematics", "math_verify", wanted="the expected answer", extra="math")


class Dying:
    """A process that dies of whatever it is asked."""

    reading_wanted = False
    pid = 0

    def __init__(self, subject: str, library: str) -> None:
        del subject, library

    def compare(self, wanted: str, answer: str, seconds: float) -> bool:
        del wanted, answer, seconds
        raise killable._WorkerDiedError(reading_wanted=self.reading_wanted)

    def close(self) -> None:
        """Nothing to let go of."""


def test_an_answer_that_kills_processes_equals_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(killable, "_Worker", Dying)
    assert mathematics().compare("$x$", "$y$", 1.0) is False


def test_an_expected_answer_that_does_is_the_fault_of_its_author(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(killable, "_Worker", Dying)
    monkeypatch.setattr(Dying, "reading_wanted", True)
    with pytest.raises(InputError, match="cannot be read in time"):
        mathematics().compare("$x$", "$y$", 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "expected", "score"),
    [
        (r"\boxed{\frac{1}{2}}", "0.5", 1.0),
        (r"\boxed{2\sqrt{3}}", r"\sqrt{12}", 1.0),
        ("The answer is $1 + x^2$.", "x^2+1", 1.0),
        ("So we get\nx = 5", "5", 1.0),
        ("x + 1", "1 + x", 1.0),
        ("Answer: x + 1.", "1 + x", 1.0),
        ("The answer is 5 because 2+4=6", "5", 1.0),
        (r"\boxed{50\%}", "0.5", 1.0),
        ("0.3333333", "1/3", 1.0),
        ("1e9999", "5", 0.0),
        (r"\boxed{(0,1)}", "[0,1]", 0.0),
        (r"\boxed{1,2,3}", "2", 0.0),
        (r"\boxed{y}", "x", 0.0),
        (r"\boxed{2,1}", r"\{1,2\}", 1.0),
        ("The answer is 7. I hope so.\nBye 8", "8", 0.0),
        ("The answer is 7. I hope so.\nBye 8", "7", 1.0),
        ("5\ud800\x00", "x", 0.0),
        ('"}\n{"equal": true}', "x", 0.0),
    ],
)
def test_decided_by_algebra(answer: str, expected: str, score: float) -> None:
    assert math_equal(answer, expected) == score


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["(" * 19_000, "\\frac{" * 2_000], ids=["brackets", "fractions"])
def test_what_is_nested_too_deep_scores_nothing(answer: str) -> None:
    assert math_equal(answer, "x", timeout_seconds=1.0) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("bomb", [r"\boxed{9^{9^{9^9}}}", r"\boxed{(10!)!}"])
def test_a_bomb_scores_nothing_and_the_next_answer_is_graded(bomb: str) -> None:
    assert math_equal(bomb, "5", timeout_seconds=0.5) == 0.0
    assert math_equal(r"\boxed{\frac{1}{2}}", "0.5") == 1.0


@pytest.mark.slow
def test_a_process_that_was_killed_is_replaced() -> None:
    pool = mathematics()
    assert pool.compare("$x+1$", "$1+x$", 5.0)
    for pid in pool.pids():
        os.kill(pid, signal.SIGKILL)
    assert pool.compare("$x+1$", "$1+x$", 5.0)
    pool.close()
    assert pool.pids() == []


@pytest.mark.slow
def test_threads_may_compare_at_once() -> None:
    scores: list[float] = []

    def compare() -> None:
        scores.extend(math_equal(r"\boxed{2\sqrt{3}}", r"\sqrt{12}") for _ in range(3))

    threads = [threading.Thread(target=compare) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert scores == [1.0] * 12


@pytest.mark.slow
def test_nothing_is_left_behind_at_exit() -> None:
    script = (
        "import os\n"
        "from assay.text import killable, math_equal\n"
        "assert math_equal('x + 1', '1 + x') == 1.0\n"
        "child = os.fork()\n"
        "assert math_equal('x + 1', '1 + x') == 1.0\n"
        "print(*killable.MATHEMATICS.pids(), flush=True)\n"
        "if child: assert os.waitpid(child, 0)[1] == 0\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", script],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(set(pids)) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_math_verify_is_installed_where_these_tests_run() -> None:
    assert importlib.util.find_spec("math_verify") is not None
    gc.collect()  # an open pipe of a test above would be a ResourceWarning here


_WRITTEN = (
    r"\frac{{{0}}}{{{1}}}",
    r"-\dfrac{{{0}}}{{{1}}}",
    "{0}/{1}",
    "-{0}/{1}",
    "{0}.{1}",
    "-{0}",
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(_WRITTEN), st.integers(-9, 9), st.integers(1, 12)),
        min_size=2,
        max_size=2,
    )
)
def test_what_is_decided_at_once_is_what_algebra_says(
    numbers: list[tuple[str, int, int]],
) -> None:
    answer, expected = (form.format(over, under) for form, over, under in numbers)
    decided = math_decided(rf"\boxed{{{answer}}}", expected)
    if decided is not None:
        equal = killable.MATHEMATICS.compare(f"${expected}$", f"${answer}$", 5.0)
        assert decided == equal


@pytest.mark.parametrize(
    ("answer", "expected", "score"),
    [
        (r"\frac{1}{2}", "0.5", 1.0),
        ("3/6", r"\frac{1}{2}", 1.0),
        (r"-\frac{-7}{2}", "3.5", 1.0),
        (r"\frac{7}{2}", "4", 0.0),
        (r"\frac{1}{3}", "0.333333", None),
        (r"\frac{1}{0}", "0", None),
        (r"\frac{x}{2}", r"\frac{1}{2}", None),
        (r"3\frac{1}{2}", "3.5", None),
    ],
)
def test_fractions_are_numbers(answer: str, expected: str, score: float | None) -> None:
    assert math_decided(rf"\boxed{{{answer}}}", expected) == score


@pytest.mark.parametrize("expected", [["4", "5"], [], {"target": "4"}, [["4"]], {"4"}, [None]])
def test_attack_a_reference_that_no_answer_is_like_is_refused(expected: object) -> None:
    """Several right answers, and an object, were compared as Python shows them: all were wrong."""
    for compare in (math_equal, similarity):
        with pytest.raises(InputError, match=r"is (a list|an object), not text|missing"):
            compare("4", expected)
    for compare in (exact_match, f1_score):
        with pytest.raises(InputError, match="is an object, not text"):
            compare("4", {"target": "4"})
    assert math_equal("4", ["4"]) == similarity("4", ("4",)) == 1.0
