"""Mathematics: what is equal, and that no answer holds the grader."""

from __future__ import annotations

import gc
import importlib.util
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import GraderError, InputError, MissingExtraError
from assay.text import exact_match, f1_score, killable, math_equal, similarity
from assay.text.math import math_decided
from assay.turns import LateError, WorkTurn, taking
from assay.warm_process import WarmProcess
from tests.children import until
from tests.each import each
from tests.processes import is_running


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


_A_PATTERN = "a pattern needs more than plain letters"


def test_pick_and_extract() -> None:
    assert math_equal(r"\boxed{1} \boxed{2}", "1", pick="first") == 1.0
    assert math_equal(r"\boxed{1} \boxed{2}", "2", pick="only") == 0.0
    assert math_equal("5\n6", "6", extract="last_line") == 1.0
    assert math_equal("5", "5", extract="boxed") == 0.0
    assert math_equal("5", r"\(5\)", form="computed") == 1.0


@each(
    ("expected", "options", "said"),
    [
        (" ", {}, r"expected is blank (write the right answer, such as '\frac{1}{2}')"),
        ("5", {"timeout_seconds": 0}, "timeout_seconds must be a finite number above 0, not 0"),
        (
            "5",
            {"timeout_seconds": float("nan")},
            "timeout_seconds must be a finite number above 0, not nan",
        ),
        ("5", {"pick": "any"}, "unknown pick 'any' (valid: first, last, only)"),
        ("5", {"extract": "box"}, f"unknown extract 'box' (did you mean 'boxed'?; {_A_PATTERN})"),
        ("5", {"form": "compute"}, "unknown form 'compute' (did you mean 'computed'?)"),
        ("5", {"form": "ani"}, "unknown form 'ani' (did you mean 'any'?)"),
    ],
)
def test_what_an_author_gets_wrong_is_refused(
    expected: object, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError) as refused:
        math_equal("5", expected, **options)
    assert str(refused.value) == said


def test_without_math_verify_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        del name

    monkeypatch.setattr(killable, "find_spec", absent)
    monkeypatch.setattr(killable, "MATHEMATICS", mathematics())
    with pytest.raises(MissingExtraError, match=r"assay\[math\]"):
        math_equal("x + 1", "1 + x")


def test_a_process_that_does_not_start_in_time_is_an_error_not_a_zero(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for program in ("/nonexistent/python", "/bin/false"):
        monkeypatch.setattr(killable, "MATHEMATICS", mathematics())
        with monkeypatch.context() as patch:
            patch.setattr(sys, "executable", program)
            with pytest.raises(GraderError, match="did not start"):
                math_equal("x + 1", "1 + x")
    monkeypatch.setattr(killable, "_START_SECONDS", 0.0)
    with pytest.raises(GraderError, match="not ready"):
        killable.Pool("schemas", "jsonschema_rs", wanted="the schema").compare("{}", "1", 5.0)


def mathematics() -> killable.Pool:
    """A pool of its own, to be killed and starved."""
    return killable.Pool("mathematics", "math_verify", wanted="the expected answer", extra="math")


class Dying:
    """A process that dies of whatever it is asked."""

    reading_wanted = False

    def compare(self, wanted: str, answer: str, seconds: float) -> bool:
        del wanted, answer, seconds
        raise killable._WorkerDiedError(reading_wanted=self.reading_wanted)

    def let_go(self) -> None:
        """Nothing to let go of."""


def test_an_answer_that_kills_processes_equals_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(killable._Template, "fork", Dying)
    assert mathematics().compare("$x$", "$y$", 1.0) is False
    monkeypatch.setattr(Dying, "reading_wanted", True)  # an expected one is its author's fault
    with pytest.raises(InputError, match="cannot be read in time"):
        mathematics().compare("$x$", "$y$", 1.0)


@pytest.mark.slow
@each(
    ("answer", "expected", "score"),
    [
        (r"\boxed{\frac{1}{2}}", "0.5", 1.0),
        (r"\boxed{2\sqrt{3}}", r"\sqrt{12}", 1.0),
        ("The answer is $1 + x^2$.", "x^2+1", 1.0),
        ("So we get\nx = 5", "5", 1.0),
        ("So we get\n5 = x", "5", 1.0),
        ("5", r"5 = x_{1}", 1.0),
        ("2+3 = x", "5", 0.0),
        ("5 = x + 1", "5", 0.0),
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
@each(
    ("answer", "score"),
    [
        *((said, 0.0) for said in ("The answer is not 42.", "The answer is not $42$")),
        *((said, 0.0) for said in ("It isn\u2019t 42", "Not \\(42\\)!")),
        *((said, 1.0) for said in ("The answer is 42, not 41.", "It is not much: $42$")),
    ],
)
def test_attack_a_formula_that_is_denied_was_paid(answer: str, score: float) -> None:
    """What denies something else denies none."""
    assert math_equal(answer, "42") == score


@pytest.mark.slow
@each(
    "bomb",
    ["(" * 19_000, "\\frac{" * 2_000, r"\boxed{9^{9^{9^9}}}", r"\boxed{(10!)!}"],
)
def test_a_bomb_scores_nothing_and_the_next_answer_is_graded(bomb: str) -> None:
    assert math_equal(bomb, "5", timeout_seconds=0.3, form="any") == 0.0
    assert math_equal(r"\boxed{\frac{1}{2}}", "0.5") == 1.0


def test_a_process_that_was_killed_is_replaced() -> None:
    pool = killable.Pool("schemas", "jsonschema_rs", wanted="the schema")  # begins at once
    assert pool.compare("{}", "1", 5.0)
    first, *_ = pool.pids()
    for which in (slice(1), slice(1, None), slice(None), slice(1, None)):
        pool._idle.append(pool._template.fork())  # as after two comparisons at once
        for pid in pool.pids()[which]:
            os.kill(pid, signal.SIGKILL)
        assert pool.compare("{}", "1", 5.0)
    assert first not in pool.pids()
    pool.close()
    assert pool.pids() == []


def test_after_one_that_was_too_slow_nothing_is_imported_again() -> None:
    pool = killable.Pool("schemas", "jsonschema_rs", wanted="the schema")
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # what is ignored is so in children, too
    try:
        assert pool.compare("{}", "1", 5.0)
    finally:
        signal.signal(signal.SIGCHLD, before)
    imported, *compared = pool.pids()
    with pytest.raises(InputError, match="cannot be read in time"):
        pool.compare('{"type": "string"}', "1", 0.0)
    assert pool.compare("{}", "1", 5.0)
    assert pool.pids()[0] == imported
    assert len(compared) == 1
    assert compared != pool.pids()[1:]
    pool.close()


@each(("owner", "name"), [(WarmProcess, "_connect"), (socket, "send_fds")])
def test_an_interrupt_leaves_the_next_order_no_answer_of_another(
    owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, whole = killable.Pool("schemas", "jsonschema_rs", wanted="it"), getattr(owner, name)

    def interrupted(*given: object) -> None:
        whole(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            pool.compare("{}", "1", 5.0)
    assert pool.compare("{}", "1", 5.0)
    template, worker = pool.pids()
    assert template != worker
    assert is_running(str(worker))
    pool.close()


def test_one_that_is_stopped_holds_nobody_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(killable._Template, "_end_seconds", 0.0)
    pool = killable.Pool("schemas", "jsonschema_rs", wanted="the schema")
    assert pool.compare("{}", "1", 5.0)
    template, worker = pool.pids()
    os.kill(template, signal.SIGSTOP)
    os.kill(worker, signal.SIGKILL)
    control = pool._template._control
    assert control is not None
    assert control.gettimeout() == killable._START_SECONDS
    control.settimeout(0.0)  # that time is over
    assert pool.compare("{}", "1", 5.0)
    assert not is_running(str(template))
    pool.close()


def test_one_that_gets_no_processor_is_tried_again_and_nobody_is_blamed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where a machine is paused: neither the answer nor what is wanted has used any time."""
    pool = killable.Pool("schemas", "jsonschema_rs", wanted="the schema")
    assert pool.compare("{}", "1", 60.0)
    line, stops = killable._Worker._line, list[bool]()

    def stopped(worker: Any, **limits: float) -> Any:
        """The clock's time is over, and it has said nothing."""
        if stops and stops.pop(0):
            worker._buffer, limits["wall"] = b"", 0.0
        return line(worker, **limits)

    monkeypatch.setattr(killable._Worker, "_line", stopped)
    for stops[:] in ([True], [False, True]):
        assert pool.compare('{"type": "array"}', "[1]", 60.0)
    stops[:] = [True, True]
    with pytest.raises(LateError):
        pool.compare('{"type": "array"}', "[1]", 60.0)
    assert pool.compare('{"type": "array"}', "[1]", 60.0)
    pool.close()


def test_what_it_waits_for_a_process_to_be_killed_is_not_of_an_item_s_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turn, waits = WorkTurn(60.0), list[bool]()

    def kill(*_: object) -> None:
        waits.append(turn.is_waiting)  # while another thread starts the process that kills

    monkeypatch.setattr(killable._Template, "fork", Dying)
    monkeypatch.setattr(killable._Template, "kill", kill)
    with taking(turn):
        assert mathematics().compare("$x$", "$y$", 1.0) is False
    assert waits == [True, True]


def test_where_no_file_can_be_opened_nobody_is_blamed() -> None:
    pool = killable.Pool("schemas", "jsonschema_rs", wanted="the schema")
    assert pool.compare("{}", "1", 5.0)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, most[1]))
    try:
        assert pool.compare("{}", "1", 5.0)
        pool._template.kill(pool._idle.pop())
        with pytest.raises(GraderError, match="open files"):
            pool.compare("{}", "1", 5.0)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, most)
    pool.close()


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


def test_nothing_is_left_behind_at_exit() -> None:
    script = (
        "import os\n"
        "from assay.text.killable import SCHEMAS\n"
        "assert SCHEMAS.compare('{}', '1', 5.0)\n"
        "child = os.fork()\n"
        "assert SCHEMAS.compare('{}', '1', 5.0)\n"
        "print(*SCHEMAS.pids(), flush=True)\n"
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
    assert len(set(pids)) == 4
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_program_that_closes_its_files_may_compare() -> None:
    script = (
        "import os\n"
        "from assay.text.killable import SCHEMAS\n"
        "for most in (3, 64):\n"
        "    os.closerange(0, most)\n"
        "    assert SCHEMAS.compare('{}', '1', 5.0)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_process_in_a_hang_ends_with_a_host_that_is_killed() -> None:
    script = (
        "import os, signal\n"
        "from assay.text.killable import SCHEMAS\n"
        "assert SCHEMAS.compare('{}', '1', 5.0)\n"
        "print(*SCHEMAS.pids(), flush=True)\n"
        "os.kill(SCHEMAS.pids()[-1], signal.SIGSTOP)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")
    until(lambda: not any(map(is_running, done.stdout.split())))


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
        assert decided == bool(equal)


@each("expected", [["4", "5"], [], {"target": "4"}, [["4"]], {"4"}, [None]])
def test_attack_a_reference_that_no_answer_is_like_is_refused(expected: object) -> None:
    """Several right answers, and an object, were compared as Python shows them: all were wrong."""
    for compare in (math_equal, similarity):
        with pytest.raises(InputError, match=r"is (a list|an object), not text|missing"):
            compare("4", expected)
    for compare in (exact_match, f1_score):
        with pytest.raises(InputError, match="is an object, not text"):
            compare("4", {"target": "4"})
    assert math_equal("4", ["4"]) == similarity("4", ("4",)) == 1.0


@each(
    ("answer", "expected"),
    [
        *[(r"123 \times 456", "56088"), ("123*456", "56088"), ("(123)(456)", "56088")],
        *((r"\sum_{k=1}^{100} k", "5050"), (r"\prod_{k=1}^5 k", "120")),
        ("∑_{k=1}^{100} k", "5050"),
        *[(r"\int_0^1 3x^2 dx", "1"), (r"\lim_{n\to\infty} 2", "2"), (r"\frac{d}{dx} x^3", "3x^2")],
        *((r"\binom{20}{10}", "184756"), (r"\gcd(12,18)", "6"), ("5!", "120")),
        (r"\sqrt{144}", "12"),
        *[(r"\log_2 1024", "10"), (r"\ln e^2", "2"), ("2^{10}", "1024"), ("2**10", "1024")],
        *((r"\frac{987654321}{123}+11", r"\frac{987655674}{123}"), ("40+2", "42")),
        ("42 + 0x", "42"),
        *[(r"\max(41, 42)", "42"), (r"\lfloor 42.7 \rfloor", "42"), ("|{-42}|", "42")],
        *[(r"\det\begin{pmatrix}1&2\\3&4\end{pmatrix}", "-2"), (r"2^{100} \bmod 7", "2")],
        ("84:2", "42"),
        *((r"\Gamma(5)", "24"), (r"\frac{\frac{1}{2}}{\frac{1}{3}}", "1.5"), ("42_5", "42")),
        *[(r"\sin(\pi/2)", "1"), ("sqrt(144)", "12"), (r"x = 6 \cdot 7", "42"), ("100 % 7", "2")],
    ],
)
def test_attack_the_question_restated_is_no_answer(answer: str, expected: str) -> None:
    """Algebra computed it, so that the cheapest answer to any question was right."""
    assert math_decided(rf"So \boxed{{{answer}}}", expected) == 0.0
    assert math_decided(rf"\boxed{{{answer}}}", expected, form="any") is None


@each(
    ("answer", "expected"),
    [
        *(("4=x=5", "5"), (r"4 \to 5", "5"), (r"4 \mid 5", "5"), (r"4 \lor 5", "5")),
        (r"\neg 5", "5"),
        *((r"x \ge 5", "5"), (r"\ge 5", "5"), (r"5\,?\,4", "5"), (r"4 \Rightarrow 5", "5")),
        ("4→5", "5"),
        *[("1=5", "5"), ("x=4=5", "5"), (r"4 \approx 5", "5"), ("4 or 5", "5"), ("perhaps 5", "5")],
        *(("5 cm", "5 m"), (r"5\text{ cm}", "5 m"), (r"5\text{ m}^2", r"5\text{ m}")),
        *(("5 kg", r"5\,\mathrm{g}"), ("5 m", "5 cm"), ("5=x=5", "5"), ("3.14=3.15", "3.15")),
        *((r"\{1,2\}", "(1,2)"), ("(1,2)", r"\{1,2\}"), (r"\langle 1,2\rangle", "[1,2]")),
        ("[1,2)", "[1,2]"),
        ("32, 349", "32,349"),
        *[("32, 349", "32349"), ("1, 234", "1234"), (r"32,\,349", "32349")],
        *[(r"1\times 10^{-34}", r"6.626\times 10^{-34}"), ("0.0000004", r"1.6\times 10^{-19}")],
        *((r"\text{not } 5", "5"), (r"\text{anything but }5", "5"), (r"5 \text{?}", "5")),
        *(
            (r"4 \sim 5", "5"),
            (r"5\colon 4", "5"),
            (r"\phantom{5}", "5"),
            (r"5n, n\in\mathbb{Z}", "5"),
        ),
        *((r"5\cdot\text{something}", "5"), (r"5\text{ apples and }4\text{ pears}", "5")),
        (r"5 \text{ unless } x=0", "5"),
        *((r"5\cong 4", "5"), ("5@4", "5"), (r"5\hspace{1cm}4", "5"), (r"5\in\{4,5\}", "5")),
        *((r"5,\ldots", "5"), ("5...", "5"), (r"\not=5", "5"), ("5_x", "5")),
        *((r"5\text{ million}", "5"), (r"2\text{ dozen eggs}", "2")),
        *((r"\{1,2\}\cup\{3\}", r"\{1,2,3\}"), (r"\{2+3, 2^2\}", r"\{4,5\}")),
        *[("0.0", "0.0000004"), (r"5 \text{ cm}", r"5 \text{ km}"), ("7=2", "2")],
        *((r"\not 5", "5"), (r"\nless 5", "5"), (r"\text{minus }5", "5"), (r"\text{twice }5", "5")),
        *((r"5\text{ squared}", "5"), (r"\text{half of }5", "5"), (r"\text{at least }5", "5")),
        *((r"\text{less than }5", "5"), (r"5\text{ and a half}", "5")),
    ],
)
def test_attack_a_hedge_or_another_thing_counted_as_the_number(answer: str, expected: str) -> None:
    for form in (None, "any"):
        options: dict[str, Any] = {"form": form}
        assert math_decided(rf"\boxed{{{answer}}}", expected, **options) in {0.0, None}
    assert math_equal(rf"\boxed{{{answer}}}", expected) == 0.0
    assert math_equal("the answer is $x=3$ or maybe $x=7$", "3") == 0.0


@each(
    ("answer", "expected"),
    [
        *(("2√3", r"2\sqrt{3}"), ("2*sqrt(3)", r"2\sqrt{3}"), (r"2\sqrt3", r"2\sqrt{3}")),
        ("∛2", r"\sqrt[3]{2}"),
        *(("x²+1", "x^2+1"), ("x**2+1", "x^2+1"), ("x⁻¹⁰", "x^{-10}"), ("2π", r"2\pi")),
        ("pi/2", r"\pi/2"),
        *[("(-∞, 3]", r"(-\infty,3]"), (r"\boldsymbol{5}", "5"), (r"\mathbf{\frac{1}{2}}", "0.5")],
        *((r"\$16386.17", "16386.17"), (r"16386.17\$", "16386.17"), ("1{,}234", "1234")),
        (r"10\,000", "10000"),
        *((r"0.\overline{3}", r"\frac{1}{3}"), (r"1.2\overline{45}", r"\frac{137}{110}")),
        ("½", "0.5"),
        *[(r"\langle 1,2\rangle", "(1,2)"), (r"\varnothing", r"\emptyset"), ("∅", r"\{\}")],
        *((r"\frac12", "0.5"), (r"2\frac{1}{3}", r"\frac{7}{3}"), ("90°", "90")),
        (r"90^\circ", "90"),
        *((r"\text{East}", "east"), (r"12:30\text{ PM}", "12:30 PM"), (r"4\text{ : }3", "4:3")),
        *((r"\text{does not exist}", "DNE"), (r"\text{All real numbers}", r"\mathbb{R}")),
        *(
            (r"\nicefrac{1}{2}", "0.5"),
            ("0.1(6)", "1/6"),
            (r"0.333\ldots", "1/3"),
            (r"+\infty", r"\infty"),
        ),
        *(
            (r"\textcolor{red}{5}", "5"),
            (r"\color{blue}5", "5"),
            (r"1\,000~\text{m}", "1000"),
            ("0.999...", "1"),
            (r"\$5\text{ million dollars}", "5000000"),
            (r"\underline{5}", "5"),
            ("10~000", "10000"),
            ("five", "5"),
        ),
        *((r"p \to q", r"p \rightarrow q"), ("3+4 i", "3+4i")),
        *(("5 m", "5"), ("\U0001d465+½", r"x+\frac{1}{2}")),
        *(("5 cm", "5"), (r"5 \text{ meters}", r"5\text{ m}"), (r"12\text{ cm}^2", "12")),
        ("1.5e3", "1500"),
        *((r"1.5 \times 10^3", "1500"), ("10^{3}", "1000"), ("6/4", "1.5"), ("\uff15", "5")),
        ("1,234", "1234"),
    ],
)
def test_one_formula_in_other_spellings(answer: str, expected: str) -> None:
    for one, other in ((answer, expected), (expected, answer)):
        assert math_decided(rf"\boxed{{{one}}}", other) == 1.0


@each(
    ("answer", "expected", "score"),
    [
        (r"\boxed{2} and \boxed{3}", "2, 3", 1.0),
        (r"$x = \boxed{2}$ or $x = \boxed{3}$.", "2,3", 1.0),
        (r"\boxed{2}, \boxed{3}, and \boxed{5}", r"\boxed{2}, \boxed{3}, \boxed{5}", 1.0),
        (r"\boxed{5}", r"\boxed{2}, \boxed{3}, \boxed{5}", None),
        (r"First \boxed{7}, so \boxed{42}", "42", 1.0),
        (r"\boxed{42}" + "\n\n" + r"\boxed{42}", "42", 1.0),
        (r"$\boxed{42}$, and $\boxed{42}$", "42", 1.0),
        ("The answer is\n\\[\n9\n\\]", "9", 1.0),
        ("So\n$$\nx = 9\n$$\n", "x=9", 1.0),
        ("So\n\\begin{align*}\n9\n\\end{align*}", "9", 1.0),
        ("The answer is $$\n9\n$$", "9", 1.0),
        ("\\[\n8\n\\]\nThe answer is 9.", "9", 1.0),
        (r"\boxed{42}. That is all in \boxed{}", "42", 1.0),
        (r"\boxed{41}/\boxed{42}", "42", None),
        (r"\boxed{m+n = 42}", "42", 1.0),
        (r"\boxed{2m = 42}", "42", None),
        ("The answer is:\n\n**42**", "42", 1.0),
        ("Answer:\n\n42\n\nThat was all.", "42", 1.0),
        ("So:\n```\n42\n```", "42", 1.0),
        ("<think>the answer is 7</think>\n42", "42", 1.0),
        ("The answer is not 41. The answer is 42.", "42", 1.0),
        ("Answer: 1/4 (25%)", "1/4", 1.0),
        ("Answer: 1/4 or 0.25", "1/4", 1.0),
        ("Answer: 42 (or 41)", "42", 0.0),
        ("The answer is 365 or 366.", "365", 0.0),
        ("The options are 41 and 42.", "42", 0.0),
        ("The candidates: 40, 41, and $42$", "42", 0.0),
        ("The numbers 6 and 7 make 42.", "42", None),
        (r"\boxed{5\text{ more than Tom}}", "5", 1.0),
        (r"\boxed{5\text{ negative roots}}", "5", 1.0),
        ("The answer is `42`.", "42", 1.0),
        ("`x+1`", "x+1", 1.0),
        ("41\n\n\u7b54\u6848\u662f 42\u3002", "42", 1.0),
        ("\u7b54\u6848\u4e3a\uff1a$42$", "42", 1.0),
        ("\u7b54\u3048\uff1a42", "42", 1.0),
        (r"The answer is 42 $\blacksquare$", "42", 1.0),
        ("The answers are 2 and 3.", "2,3", 1.0),
        ("Answer: No solution.", r"\text{no solution}", 1.0),
        # Fractions are numbers.
        (r"\boxed{\frac{1}{2}}", "0.5", 1.0),
        (r"\boxed{3/6}", r"\frac{1}{2}", 1.0),
        (r"\boxed{-\frac{-7}{2}}", "3.5", 1.0),
        (r"\boxed{\frac{7}{2}}", "4", 0.0),
        (r"\boxed{\frac{84}{2}}", "42", 0.0),  # the question restated
        (r"\boxed{\tfrac{84}{2}}", "42", 0.0),
        (r"\boxed{x=84/2}", "42", 0.0),
        (r"\boxed{84/2}", "84/2", 1.0),
        (r"\boxed{\frac{1}{3}}", "0.333333", None),
        (r"\boxed{\frac{1}{0}}", "0", None),
        (r"\boxed{\frac{x}{2}}", r"\frac{1}{2}", None),
        (r"\boxed{3\frac{1}{2}}", "3.5", 1.0),
        (r"\boxed{2+3=5}", "5", None),
        (r"\boxed{3.1401 \approx 3.14}", "3.1401", None),
        ("The answer is about 7 = 6 = 5", "5", None),  # a sentence has no sides
        (r"\boxed{x=\frac{10}{2}=5}", "5", None),
    ],
)
def test_boxes_of_one_sentence_displayed_formulas_and_fractions(
    answer: str, expected: str, score: float | None
) -> None:
    assert math_decided(answer, expected) == score


@given(st.integers(2, 10**6), st.integers(2, 10**6))
def test_a_product_is_computed_by_the_answer_only(one: int, other: int) -> None:
    for sign in (r"\times", r"\cdot", "*", "\u00d7", "\u00b7"):
        assert math_decided(rf"\boxed{{{one} {sign} {other}}}", one * other) == 0.0
    assert math_decided(rf"\boxed{{{one * other}}}", rf"{one} \times {other}") is None


@given(st.integers(-99, 99), st.integers(2, 99), st.sampled_from("√*"))
def test_roots_and_powers_are_the_same_in_every_spelling(factor: int, root: int, sign: str) -> None:
    plain = f"{factor}√{root}" if sign == "√" else f"{factor}*sqrt({root})"
    expected = rf"{factor}\sqrt{{{root}}}" if sign == "√" else rf"{factor}\cdot\sqrt{{{root}}}"
    assert math_decided(rf"\boxed{{{plain}}}", expected) == 1.0
    assert math_decided(rf"\boxed{{x**{root}}}", f"x^{{{root}}}") == 1.0


@given(st.integers(0, 99), st.text("0123456789", max_size=3), st.integers(1, 999))
def test_repeating_decimals_are_fractions(whole: int, digits: str, period: int) -> None:
    again = str(period)
    value = whole + Fraction(int(digits or "0"), 10 ** len(digits))
    value += Fraction(period, (10 ** len(again) - 1) * 10 ** len(digits))
    answer = rf"\boxed{{{whole}.{digits}\overline{{{again}}}}}"
    assert math_decided(answer, f"{value.numerator}/{value.denominator}") == 1.0


@given(st.text(alphabet="0123 xe^*/+-=(){},.!?√²π\\sqrtfacbox$&\n<>|"))
def test_any_text_is_read(text: str) -> None:
    math_decided(rf"\boxed{{{text}}}", "x")
    math_decided(text, r"\boxed{1}, \boxed{2}")


@pytest.mark.slow
@each(
    ("answer", "expected", "form", "score"),
    [
        ("The answer is clearly $123*456$ as computed", "56088", None, 0.0),
        ("The answer is clearly $123*456$ as computed", "56088", "any", 1.0),
        ("The answer is 28 percent", r"28\%", None, 1.0),
        (r"\boxed{2^{10}}", "1024", "any", 1.0),
        (r"\boxed{(x-1)(x+1)}", "x^2-1", None, 1.0),
        (r"\boxed{(x-1)(x+1)}", "x^2-1", "computed", 0.0),
        (r"\boxed{2\sqrt{3}}", r"\sqrt{12}", "computed", 1.0),
        (r"\boxed{3.1401 \approx 3.14}", "3.1401", None, 1.0),
        (r"\boxed{[\sin(1), 2)}", r"(\sin(1), 2)", None, 0.0),
        ("So the answer is between 2 and 3", "3", None, 0.0),
        (r"\boxed{120}", "5!", None, 1.0),
        (r"\boxed{8} or perhaps \boxed{9}", "9", None, 0.0),
        (r"\boxed{8} \boxed{9}", "9", None, 0.0),
        (r"\boxed{3 < x}", r"(3,\infty)", None, 1.0),
        (r"\boxed{x=2 \lor x=3}", "2, 3", None, 1.0),
        ("(1+sqrt(5))/2", r"\frac{1+\sqrt{5}}{2}", None, 1.0),
        (r"\boxed{3.1415927}", r"\pi", None, 1.0),
        (r"\boxed{x=\frac{1\pm\sqrt5}{2}}", r"\frac{1+\sqrt5}{2},\frac{1-\sqrt5}{2}", None, 1.0),
        (r"\boxed{\frac{1+\sqrt5}{2}}", r"\frac{1\pm\sqrt5}{2}", None, 0.0),
        (r"\boxed{\text{Area} = 25\pi \text{ cm}^2}", r"25\pi", None, 1.0),
        ("The answer is $x=42$ since $y=3$.", "42", None, 1.0),
        ("The answer is 42 rather than 41.", "42", None, 1.0),
        ("The answer is 41. It might also be $42$.", "42", None, 0.0),
        ("The answer is 41 ($42$ was tempting)", "42", None, 0.0),
        ("The answer is definitely not $42$, it is $41$", "42", None, 0.0),
        ("The answer is more than 42", "42", None, 0.0),
        ("The answer is 42 times 3", "42", None, 0.0),
        ("42 is wrong", "42", None, 0.0),
        ("The answer is 5 million people.", "5000000", None, 1.0),
        ("The answer is 5 million people.", "5", None, 0.0),
        (r"\boxed{\{3\}\cup(1,2)}", r"(1,2)\cup\{3\}", None, 1.0),
        (r"\boxed{\mathbb{R}\setminus\{2\}}", r"(-\infty,2)\cup(2,\infty)", None, 1.0),
        (r"\boxed{\{0, \pm 1\}}", r"\{-1,0,1\}", None, 1.0),
        (r"\boxed{x=5, \text{ where } x\in\mathbb{N}}", "5", None, 1.0),
        (
            r"\boxed{\begin{cases}x & \text{if } x>0\\ -x & \text{if } x\le 0\end{cases}}",
            r"\begin{cases}x & x>0\\ -x & x\le 0\end{cases}",
            None,
            1.0,
        ),
        (r"\boxed{12.5}", r"12.5\%", None, 1.0),
        (r"\boxed{84/2}", "42", "any", 1.0),
    ],
)
def test_form(answer: str, expected: str, form: Any, score: float) -> None:
    assert math_equal(answer, expected, form=form) == score


def test_attack_a_variable_k_is_no_thousand() -> None:
    assert math_equal("5k", "5000") == math_equal("5000", "5k") == math_equal("5k.", 5000) == 0.0
    assert math_equal("5k", "5k") == 1.0
