"""Batches of every kind of grader, asked for from wherever people ask."""

from __future__ import annotations

import asyncio
import math
import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest

from assay.errors import InputError
from assay.graders import FunctionGrader, Grader
from assay.graders.batch import Batch, way_of
from assay.graders.batched import Batched
from assay.graders.driver import within
from assay.graders.spec import GraderSpec
from assay.scoring.json_safe import Json
from assay.tasks.grader_files import load_graders
from assay.testing import Asked, FakeJudge
from assay.training import Reward
from assay.types.submission import Submission, Workspace
from tests.each import each
from tests.endpoint_servers import faulty, graded

Rewards: TypeAlias = "list[float | None]"
Rows: TypeAlias = "Sequence[Submission | Mapping[str, Json]]"
Jobs: TypeAlias = "dict[str, tuple[Batched | type[Batched], Rows, Rewards]]"

EXACT = GraderSpec(type="exact_match")
ROWS: list[dict[str, Json]] = [
    {"answer": "4", "expected": "4"},
    {"answer": "5", "expected": "4"},
    {"answer": "4"},
]
THREE: Rewards = [1.0, 0.0, None]
SOURCE = """\
from adaptive_harmony import StringThread

async def grade(thread: StringThread) -> float:
    return 1.0 if thread.completion() == thread.metadata["expected"] else 0.25
"""


SLEEPS = """\
import time
from adaptive_harmony import StringThread

async def grade(thread: StringThread) -> float:
    time.sleep(float(thread.completion()))
    return 1.0
"""


class Length(Grader):
    """A user's own, which awaits nothing."""

    name = "length"

    @classmethod
    def compute_score(cls, answer: str, expected: str, target: int = 1) -> float:
        return 1.0 if len(answer) >= target else 0.5


class Patient(Grader):
    """A user's own, which awaits."""

    @classmethod
    async def compute_score(cls, answer: str, expected: str) -> float:
        await asyncio.sleep(0)
        return float(answer == expected)


@dataclass(frozen=True)
class Within(Grader):
    """A user's own with options."""

    name = "within"
    most: object = 0

    def score(self, answer: str, expected: str) -> float:
        return float(abs(int(answer) - int(expected)) <= getattr(self.most, "value", 0))


@dataclass(frozen=True)
class Tolerance:
    """An option that is no JSON."""

    value: int


def _honest(asked: Asked) -> Json:
    answer = asked.fenced("answer")
    said = answer == "4" and "is four" in asked.outside
    return {"evidence": [answer], "reasoning": "it says so", "verdict": "MET" if said else "UNMET"}


@pytest.fixture
def jobs(tmp_path: Path) -> Generator[Jobs]:
    """Every kind, with rows of which the last one cannot be graded by most."""
    file = tmp_path / "graders.yaml"
    file.write_text("- {type: f1_score, weight: 3}\n")
    (tmp_path / "good").write_text("")
    trees = [Submission(workspace=Workspace(path=str(tmp_path))), Submission(answer="4")]
    with ExitStack() as stack:
        model = stack.enter_context(FakeJudge(_honest)).model
        judged: dict[str, Json] = {"criteria": ["It is four."], "canary": 0.0, "model": model}
        url = stack.enter_context(faulty(graded)).url
        remote = GraderSpec(type="external_endpoint", options={"url": url, "allow_internal": True})
        tree = GraderSpec(type="command", options={"cmd": "test -f good"})
        yield {
            "comparison": (EXACT, ROWS, THREE),
            "mathematics": (GraderSpec(type="math_equal"), ROWS, THREE),
            "declared in a file": (load_graders(str(file))[0], ROWS, THREE),
            "function": (FunctionGrader(source=SOURCE), ROWS[:2], [1.0, 0.25]),
            "judge": (GraderSpec(type="llm_judge", options=judged), ROWS[:2], [1.0, 0.0]),
            "endpoint": (remote, ROWS[:2], [0.5, 0.5]),
            "workspace": (tree, trees, [1.0, None]),
            "own class": (Length, ROWS, [1.0, 1.0, None]),
            "own class that awaits": (Patient, ROWS, THREE),
            "own object": (Within(most=Tolerance(1)), ROWS, [1.0, 1.0, None]),
        }


def ask(jobs: Jobs) -> dict[str, Rewards]:
    """What every kind gives; also called in other processes."""
    found: dict[str, Rewards] = {}
    for name, (grader, rows, _) in jobs.items():
        batch = grader.grade_batch_now(rows, deadline=60)
        assert all(one.error for one in batch.graded if one.score is None), name
        found[name] = batch.rewards
    return found


async def ask_awaiting(jobs: Jobs) -> dict[str, Rewards]:
    async def one(grader: Batched | type[Batched], rows: Rows, _: Rewards) -> Rewards:
        return (await grader.grade_batch(rows, deadline=60)).rewards

    return dict(zip(jobs, await asyncio.gather(*(one(*job) for job in jobs.values())), strict=True))


def in_a_thread(jobs: Jobs) -> dict[str, Rewards]:
    found: list[dict[str, Rewards]] = []
    thread = threading.Thread(target=lambda: found.append(ask(jobs)))
    thread.start()
    thread.join()
    return found[0]


def inside_a_loop(jobs: Jobs) -> dict[str, Rewards]:
    async def cell() -> dict[str, Rewards]:
        return ask(jobs)  # as in a notebook, whose loop then waits

    return asyncio.run(cell())


def forked(jobs: Jobs) -> dict[str, Rewards]:
    EXACT.grade_batch_now(ROWS)  # so that there is a loop, which a fork does not have
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.write(write, pickle.dumps(ask(jobs)))
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read, "rb") as file:
        return pickle.loads(file.read())


def spawned(jobs: Jobs) -> dict[str, Rewards]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(ask, jobs).result()


CALLERS: list[Callable[[Jobs], dict[str, Rewards]]] = [
    ask,
    lambda jobs: asyncio.run(ask_awaiting(jobs)),
    in_a_thread,
    inside_a_loop,
    forked,
    spawned,
]


@pytest.mark.parametrize(
    "caller", CALLERS, ids=["waiting", "awaiting", "thread", "inside a loop", "fork", "spawn"]
)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.sandbox
def test_every_kind_grades_batches_wherever_it_is_asked(
    caller: Callable[[Jobs], dict[str, Rewards]], jobs: Jobs
) -> None:
    assert caller(jobs) == {name: rewards for name, (_, _, rewards) in jobs.items()}


# ---- Turns ----


class Clocked(Grader):
    """Waits until it is told to go on; counts who is at it."""

    at_work = most = 0

    @classmethod
    async def compute_score(cls, answer: str) -> float:
        cls.at_work += 1
        cls.most = max(cls.most, cls.at_work)
        try:
            await asyncio.sleep(0.008 if answer != "stuck" else 3600)
        finally:
            cls.at_work -= 1
        return 1.0


@pytest.mark.slow
def test_a_thousand_items_in_a_row_are_not_late() -> None:
    """Together they take twice the deadline, and nobody's turn is longer than a blink."""
    Clocked.most = 0
    batch = Clocked.grade_batch_now([{"answer": "x"}] * 1_000, at_once=4, deadline=1.0)
    assert batch.rewards == [1.0] * 1_000
    assert Clocked.most == 4
    assert max(second for second in batch.seconds if second) < 1.0


def test_a_straggler_is_cut_and_its_work_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.graders import batch as batches

    rows: Rows = [{"answer": "stuck"}, *[{"answer": "x"}] * 8]
    monkeypatch.setattr(batches, "DEADLINE", 0.5)
    for deadline in (0.5, None):  # where nobody says how long, there is an end
        batch = Clocked.grade_batch_now(rows, at_once=2, deadline=deadline)
        assert batch.rewards == [None, *[1.0] * 8]
        late = batch.graded[0]
        assert (late.status, late.outcome, late.score) == ("error", "late", None)
        assert late.error == "it was not graded within 0.5 seconds (`deadline` gives it more)"
        assert batch.metrics()["late_rate"] == pytest.approx(1 / 9)
        assert Clocked.at_work == 0
    endless = Clocked.grade_batch_now(rows[1:], deadline=math.inf)
    assert endless.rewards == [1.0] * 8, "without an end is said so"


@pytest.mark.sandbox
def test_a_late_call_in_the_sandbox_is_killed_and_worth_nothing_and_not_a_zero() -> None:
    rows: list[dict[str, Json]] = [{"answer": "60"}, {"answer": "0"}, {"answer": "0.2"}]
    batch = FunctionGrader(source=SLEEPS).grade_batch_now(rows, deadline=1.0)
    assert batch.rewards == [None, 1.0, 1.0]
    assert (batch.graded[0].outcome, batch.graded[1].outcome) == ("late", "ok")
    late, quick, some = (second or 0.0 for second in batch.seconds)
    assert 0.0 < quick < some < late < 60, "each has its own time, and the late one is not awaited"


@pytest.mark.slow
@pytest.mark.sandbox
def test_calls_that_wait_for_a_worker_are_not_late() -> None:
    source = SLEEPS.replace("float(thread.completion())", "0.1")
    batch = FunctionGrader(source=source).grade_batch_now([{"answer": "x"}] * 40, deadline=1.0)
    assert batch.rewards == [1.0] * 40


@pytest.mark.slow
def test_a_late_comparison_of_mathematics_is_killed() -> None:
    pytest.importorskip("math_verify")
    rows: list[dict[str, Json]] = [
        {"answer": r"\boxed{9^{9^{9^9}}}", "expected": "3"},
        {"answer": r"\boxed{x+x}", "expected": "2x"},
    ]
    grader = GraderSpec(type="math_equal", options={"form": "any"})
    batch = grader.grade_batch_now(rows, deadline=1.0)
    assert batch.rewards == [None, 1.0]
    assert batch.graded[0].outcome == "late"


@pytest.mark.slow
def test_a_request_to_a_judge_that_is_late_is_cancelled_and_the_gate_is_no_deadline() -> None:
    ended: list[str] = []

    async def slow(asked: Asked) -> Json:
        if asked.fenced("answer") == "stuck":
            try:
                await asyncio.sleep(3600)
            finally:
                ended.append("stuck")
        return _honest(asked)

    rows: Rows = [{"answer": "stuck"}, *[{"answer": "4"}] * 20]
    with FakeJudge(slow) as fake:
        options: dict[str, Json] = {"criteria": ["It is four."], "canary": 0.0, "model": fake.model}
        judge = GraderSpec(type="llm_judge", options=options)
        batch = judge.grade_batch_now(rows, deadline=4.0)
    assert batch.rewards == [None, *[1.0] * 20]
    assert batch.graded[0].outcome == "late"
    assert ended == ["stuck"]


class Blocks(Grader):
    """Code that awaits nothing, in a thread that nobody can kill."""

    door = threading.Event()

    @classmethod
    def compute_score(cls, answer: str) -> float:
        if answer == "stuck":
            cls.door.wait()
        return 1.0


def test_threads_that_are_left_behind_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.graders import threads

    monkeypatch.setattr(threads, "MOST_LEFT", 3)
    Blocks.door.clear()
    before = threading.active_count()
    try:
        batch = Blocks.grade_batch_now([{"answer": "stuck"}] * 8, deadline=0.1, at_once=1)
        assert [one.outcome for one in batch.graded] == ["late"] * 3 + ["error"] * 5
        assert "3 late calls of Python functions are still running" in batch.graded[-1].error
        assert threading.active_count() <= before + 4  # the loop's own is one
    finally:
        Blocks.door.set()
    for _ in range(1_000):  # they end, and there is room again
        if Blocks.grade_batch_now([{"answer": "x"}]).rewards == [1.0]:
            break


def test_code_that_awaits_nothing_holds_up_no_other_batch() -> None:
    Blocks.door.clear()
    found: list[Batch] = []
    stuck = threading.Thread(
        target=lambda: found.append(Blocks.grade_batch_now([{"answer": "stuck"}]))
    )
    stuck.start()
    assert EXACT.grade_batch_now(ROWS).rewards == [1.0, 0.0, None]
    Blocks.door.set()
    stuck.join()
    assert found[0].rewards == [1.0]


def test_what_is_interrupted_is_cancelled() -> None:
    """As by Ctrl-C: nobody pays for judgements that nobody waits for."""

    async def main() -> None:
        task = asyncio.create_task(Clocked.grade_batch([{"answer": "stuck"}]))
        while not Clocked.at_work:  # noqa: ASYNC110 - another loop's
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        while Clocked.at_work:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_an_iterator_is_read_in_its_callers_thread_and_held_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from assay.graders import batch as batches

    monkeypatch.setattr(batches, "_WINDOW", 10)
    alive, most, caller = set[int](), 0, threading.current_thread()

    class Row(dict[str, Json]):
        def __init__(self, number: int) -> None:
            nonlocal most
            super().__init__(answer=str(number), expected="3")
            self.number = number
            alive.add(number)
            most = max(most, len(alive))

        def __del__(self) -> None:
            alive.discard(self.number)

    def rows() -> Iterator[Row]:
        for number in range(95):
            assert threading.current_thread() is caller
            yield Row(number)

    batch = EXACT.grade_batch_now(rows())
    assert [n for n, reward in enumerate(batch.rewards) if reward] == [3]
    assert [one.id for one in batch.graded] == [str(n) for n in range(95)]
    assert most <= 21


def test_only_what_failed_is_tried_again_and_after_all_others() -> None:
    asked: list[str] = []

    class Shaky(Grader):
        @classmethod
        async def compute_score(cls, answer: str) -> float:
            asked.append(answer)
            if asked.count(answer) < int(answer):
                raise ConnectionError("the service is away")
            return 1.0

    rows: list[dict[str, Json]] = [{"answer": "2"}, {"answer": "1"}, {"answer": "9"}]
    batch = Shaky.grade_batch_now(rows, attempts=3, at_once=1)
    assert batch.rewards == [1.0, 1.0, None]
    assert asked == ["2", "1", "9", "2", "9", "9"]


def test_a_class_that_was_written_again_is_the_new_one() -> None:
    """As in a notebook, whose cell is run twice."""
    found: Rewards = []
    for value in (0.25, 0.75):

        class Mine(Grader):
            @classmethod
            def compute_score(cls, answer: str, value: float = value) -> float:
                return value

        found += Mine.grade_batch_now([{"answer": "x"}]).rewards
    assert found == [0.25, 0.75]


def test_options_of_a_class_are_given_beside_the_rows() -> None:
    assert Length.grade_batch_now(ROWS[:1], target=2).rewards == [0.5]
    with pytest.raises(InputError, match=r"takes no option 'tagret'.*'target'"):
        Length.grade_batch_now(ROWS, tagret=2)


@each(
    ("rows", "options", "said"),
    [
        (ROWS, {"deadline": 0.0}, "deadline is 0.0"),
        (ROWS, {"deadline": float("nan")}, "deadline is nan"),
        (ROWS, {"at_once": 0}, "at_once is 0"),
        (ROWS, {"attempts": 0}, "attempts is 0"),
        (ROWS[0], {}, "a list of rows, and this is a single one"),
        ("It is 4.", {}, "a list of rows, and this is a single one"),
        (None, {}, "a list of rows, and this is NoneType"),
    ],
)
def test_what_is_no_batch_is_said(rows: object, options: dict[str, float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        EXACT.grade_batch_now(rows, **options)  # pyright: ignore[reportArgumentType]


class Panic(BaseException):
    """What a package written in Rust raises, as `pyo3_runtime.PanicException`."""


def test_attack_what_is_no_exception_hangs_no_training_and_costs_no_sibling() -> None:
    """In a thread it was waited for for ever; on the loop it ended that, and all later batches."""

    def breaks(answer: str) -> float:
        if answer != "good":
            raise {"panic": Panic, "stop": KeyboardInterrupt, "leave": GeneratorExit}[answer]
        return 1.0

    async def breaks_too(answer: str) -> float:
        return breaks(answer)

    rows = [{"answer": answer} for answer in ("good", "panic", "stop", "leave", "good")]
    batch = Reward(breaks).grade_now(rows)
    assert batch.rewards == [1.0, None, None, None, 1.0]
    assert "Panic" in batch.graded[1].error
    for _ in range(2):
        found = Reward(breaks_too).grade_now([rows[n] for n in (0, 1, 2, 4)])
        assert found.rewards == [1.0, None, None, 1.0]

    class Broken(Grader):
        name = "broken"

        @classmethod
        def compute_score(cls, answer: str) -> float:
            return breaks(answer)

    assert Broken.grade_batch_now(rows).rewards == batch.rewards


def test_an_empty_batch_and_hostile_rows() -> None:
    class Hostile(dict[str, Json]):
        def get(self, *_: object) -> Json:
            raise RuntimeError("not this one")

    assert EXACT.grade_batch_now([]).rewards == []
    assert str(EXACT.grade_batch_now([])) == "batch: no reward; 0 of 0 graded"
    assert repr(EXACT.grade_batch_now(ROWS * 100)).count("graded") == 1
    good = ROWS[0]
    rows: list[object] = [3, None, {"answer": 3.0}, {"messages": "x"}, "text", {1: 2}]
    rows += [Hostile(good), {**good, "id": 10**5_000}, good]
    batch = EXACT.grade_batch_now(rows)  # pyright: ignore[reportArgumentType]
    assert batch.rewards == [None] * 7 + [None, 1.0]
    assert {one.outcome for one in batch.graded[:7]} == {"bad_item"}


def test_a_batch_shows_its_rewards_its_errors_and_its_times() -> None:
    hostile: list[dict[str, Json]] = [{"answer": "\x1b[2J<script>"}] * 3
    batch = EXACT.grade_batch_now([*ROWS[:2], *hostile])
    lines = str(batch).splitlines()
    assert lines[0].startswith("batch: reward 0.50; 2 of 5 graded; p50 ")
    assert lines[1] == "  3 x needs 'expected', which the submission does not have"
    assert lines[2].split() == ["item", "time", "reward", "why"]
    assert len(lines) == 8
    html = batch._repr_html_()
    assert "<script" not in html
    assert html.count("<tr>") == 2 + 6
    assert len(str(EXACT.grade_batch_now(ROWS * 100)).splitlines()) < 30


def test_what_graders_may_take_by_their_own_limits_comes_on_top() -> None:
    """A submission that hangs every command is worth 0; as our time-out it would have no reward."""
    slow = GraderSpec(type="command", options={"run": "true", "timeout_s": 1_800})
    assert way_of([slow, EXACT]).deadline == 600 + 1_800
    assert way_of([EXACT]).deadline == Reward(len)._way.deadline == 600


async def test_a_turn_begins_when_the_loop_comes_to_it() -> None:
    """A busy loop makes nobody late."""

    async def work() -> str:
        return "done"

    waiting = asyncio.ensure_future(within(work(), 0.02))
    await asyncio.sleep(0)  # it waits for its work, which the loop has not begun
    time.sleep(0.05)  # noqa: ASYNC251 - the loop is busy
    assert await waiting == "done"


def test_rows_of_pandas_and_numpy_grade_as_those_of_python() -> None:
    numpy: Any = import_module("numpy")
    for seconds in (numpy.float32(9), numpy.float64(9), numpy.int64(9)):
        assert EXACT.grade_batch_now(ROWS, deadline=seconds).rewards[0] is not None
    references = (numpy.int64(4), numpy.array(["4", "vier"]), numpy.array(4), numpy.str_("4"))
    rows: list[Mapping[str, Json]] = [{"answer": "4", "expected": one} for one in references]
    rows += [{"answer": "4", "metadata": {"expected": one}} for one in references]
    assert EXACT.grade_batch_now(rows).rewards == [1.0] * 8
    numeric = GraderSpec(type="numeric_match").grade_batch_now([rows[0], rows[2]])
    assert numeric.rewards == [1.0, 1.0]


def test_attack_what_tables_have_for_nothing_is_no_reference() -> None:
    """NaN was a reference: right answers had 0, and the answer "nan" the full reward."""
    pd: Any = import_module("pandas")
    nothing = (float("nan"), pd.NA, pd.NaT, None)
    for one in nothing:
        for row in ({"expected": one}, {"metadata": {"expected": one}}):
            for said in ("4", str(one), "nan", "NaT"):
                assert EXACT.grade_batch_now([{"answer": said, **row}]).rewards == [None]
        given = Submission(answer="nan", expected=cast("Any", one))
        assert EXACT.grade_batch_now([given]).rewards == [None]
        rest = {"question": one, "metadata": one, "messages": one, "id": one}
        assert EXACT.grade_batch_now([{"answer": "4", "expected": "4", **rest}]).rewards == [1.0]
        assert EXACT.grade_batch_now([{"answer": one, "expected": "4"}]).rewards == [None]
    table = pd.DataFrame([{"answer": "4", "expected": "4"}, {"answer": "4"}])
    assert EXACT.grade_batch_now(table.to_dict("records")).rewards == [1.0, None]
    with pytest.raises(InputError, match=r"this is DataFrame.*to_dict\('records'\)"):
        EXACT.grade_batch_now(table)  # there was an outcome for each column


def test_a_reference_that_is_no_json_is_told_and_grades_nothing() -> None:
    """It was compared as Python shows it, and gave 0."""
    pd: Any = import_module("pandas")
    odds: list[Any] = [b"4", {"4"}, object(), [object()], float("inf"), [float("nan")]]
    for odd in odds:
        for row in ({"expected": odd}, {"metadata": {"expected": odd}}):
            batch = EXACT.grade_batch_now([{"answer": "4", **row}])
            assert batch.rewards == [None]
            assert "which no grader can read" in batch.graded[0].error
    dated = {"answer": "2020-01-02T00:00:00", "expected": pd.Timestamp("2020-01-02")}
    assert EXACT.grade_batch_now([{**dated, "when": dated["expected"]}]).rewards == [1.0]
