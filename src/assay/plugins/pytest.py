"""Graders in pytest: the fixture ``assay``, tests of several trials, and what was graded as a run.

pytest loads this file in every session, so that it imports nothing of assay before it is asked.
"""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from assay.graders.spec import GraderSpec
    from assay.scoring.json_safe import Json
    from assay.scoring.results import EvaluationResult
    from assay.store.records import CellRecord
    from assay.training.reward import Gradable, Reward
    from assay.types.submission import Submission

_MARK = (
    "assay(trials=1, pass_rate=1.0): run the test several times; it passes where at least this "
    "share of its trials does, and is an error where trials that could not be graded decide"
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What graders gave for an answer.

    Attributes:
        result: The reward, with the scores it is made of.
        cell: The same as a report's cell.
    """

    result: EvaluationResult
    cell: CellRecord

    @property
    def score(self) -> float:
        """The score. The test is skipped where its graders did not apply.

        Raises:
            GraderError: If it could not be graded, which says nothing of the answer.
        """
        __tracebackhide__ = True
        if self.cell.status == "skipped":
            whys = [f"{name}: {why}" for name, why in self.result.not_graded[1].items()]
            pytest.skip(f"not graded: {'; '.join(whys) or 'no grader applied'}")
        if self.result.reward is None:
            from assay.errors import GraderError

            raise GraderError(f"could not be graded: {self.cell.error}")
        return self.result.reward

    @property
    def passed(self) -> bool:
        """Whether the score is enough; raises and skips as `score` does."""
        __tracebackhide__ = True
        _ = self.score  # where there is none, nothing passed or failed
        return self.cell.passed is True

    def passes(self) -> None:
        """Assert that it passes; raises and skips as `score` does.

        Raises:
            AssertionError: If the score is too low; says what each grader gave, and why.
        """
        __tracebackhide__ = True
        if not self.passed:
            raise AssertionError(str(self))

    def __bool__(self) -> bool:
        """None: a grade that is an error or a skip is neither true nor false.

        Raises:
            TypeError: Always.
        """
        __tracebackhide__ = True
        raise TypeError("a grade is neither true nor false: call .passes(), or compare .score")

    def __str__(self) -> str:
        from assay.plugins.outcomes import lines_of
        from assay.reports.explain import nodes, sentence

        lines = [sentence(self.cell), *lines_of(nodes(self.cell)), *self.cell.flags]
        return "\n".join(lines)


class Assay:
    """The fixture ``assay``: grades answers with any grader."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        item.stash[_KEPT] = []  # a test that is run again begins anew

    def grade(
        self,
        answer: str | None = None,
        *,
        graders: Gradable,
        threshold: float | None = None,
        **row: Json,
    ) -> Verdict:
        """Grade an answer.

        Args:
            answer: What is graded; or ``messages`` among the other fields.
            graders: A YAML file of graders or ``FILE.py``, relative to the test's directory; a
                stored grader, ``KEY`` or ``KEY@VERSION``; a grader object, or several; or a
                function.
            threshold: The score that passes, from 0 to 1; by default the grader's own, else 1.
            **row: Other fields of a row: ``question``, ``expected``, ``messages``, ``metadata``.

        Raises:
            InputError: For graders that are not there, or a row that they cannot read.
        """
        __tracebackhide__ = True
        from assay.errors import AssayError

        try:
            given: dict[str, Json] = {**row} if answer is None else {**row, "answer": answer}
            return self._grade(given, graders, threshold)
        except AssayError as error:  # how assay came upon it helps nobody who reads the test
            raise error.with_traceback(None) from None

    def _grade(self, given: dict[str, Json], graders: Gradable, threshold: float | None) -> Verdict:
        from assay.errors import InputError
        from assay.tasks.rows import read_row
        from assay.types.codec import Within

        if threshold is not None and (wrong := Within(0, 1).fault(threshold)):
            raise InputError(f"threshold: {wrong}")
        kept = self._item.stash[_KEPT]
        trial = self._item.stash.get(_TRIAL, 1)
        number = 1 + sum(one["trial"] == trial for one in kept)
        name = self._item.nodeid if number == 1 else f"{self._item.nodeid}#{number}"
        row: dict[str, Json] = {**given, "id": name}
        result, mark = self._result(graders, read_row(row).submission)
        one: dict[str, Json] = {
            "row": row,
            "trial": trial,
            "threshold": mark if threshold is None else threshold,
            "result": result.to_dict(),
        }
        kept.append(one)
        return Verdict(result, _cell(one, result))

    def _result(self, graders: Gradable, submission: Submission) -> tuple[EvaluationResult, float]:
        """What graders give, and the score that passes."""
        from assay.graders.apply import grade_submission
        from assay.graders.spec import pass_mark
        from assay.graders.threads import wait_for
        from assay.plugins.outcomes import node_of
        from assay.scoring.combine import combine_scores
        from assay.training.reward import Reward, declared_graders

        known = self._item.config.stash.setdefault(_KNOWN, {})
        if isinstance(graders, str | Path):
            beside = self._item.path.parent / graders
            graders = str(beside if beside.is_file() else graders)
        key = graders if isinstance(graders, str) else ""
        found = known.get(key)
        if found is None and key and not Path(key).suffix:  # a stored grader
            is_elsewhere = "ASSAY_URL" in os.environ
            found = Reward(key, store=None if is_elsewhere else _store(self._item.config))
        elif found is None:
            found = declared_graders(graders) or Reward(graders)
        if key:
            known[key] = found
        if not isinstance(found, Reward):
            return wait_for(grade_submission(found, submission)), pass_mark(found)
        (graded,) = found.grade_now([submission]).graded
        return combine_scores([node_of(found.name, graded)]), found.threshold


_KEPT = pytest.StashKey[list[dict[str, "Json"]]]()
_TRIAL = pytest.StashKey[int]()
_KNOWN = pytest.StashKey[dict[str, "Reward | Sequence[GraderSpec]"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say where results go."""
    group = parser.getgroup("assay", "grading answers with assay")
    group.addoption(
        "--assay-db",
        metavar="WHERE",
        help="store what tests grade as a run there: a directory, or postgresql://USER@HOST/NAME",
    )
    group.addoption(
        "--assay-report",
        nargs="?",
        const="",
        metavar="FILE.html",
        help="store what tests grade as a run, in --assay-db, $ASSAY_DB or .assay, and show the "
        "report of it, or write it to a file",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Say what the mark means."""
    config.addinivalue_line("markers", _MARK)
    if not hasattr(config, "workerinput"):  # of xdist, whose reports get to the process above it
        config.pluginmanager.register(_Collected())


@pytest.fixture
def assay(request: pytest.FixtureRequest) -> Assay:
    """Grade answers: ``assay.grade(answer, graders="refund.yaml").passes()``."""
    return Assay(cast("pytest.Item", request.node))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object:
    """Run a marked test as often as its mark says, and compare how many trials passed."""
    __tracebackhide__ = True
    mark = pyfuncitem.get_closest_marker("assay")
    if mark is None or _TRIAL in pyfuncitem.stash:
        return None
    trials, rate = _asked(pyfuncitem, mark)
    from assay.errors import GraderError

    passed, failed, broken, skipped = 0, list[str](), list[str](), list[str]()
    for trial in range(1, trials + 1):
        pyfuncitem.stash[_TRIAL] = trial
        try:
            pyfuncitem.ihook.pytest_pyfunc_call(pyfuncitem=pyfuncitem)
            passed += 1
        except (AssertionError, pytest.fail.Exception) as error:
            failed.append(f"trial {trial}: {error}")
        except GraderError as error:
            broken.append(f"trial {trial}: {error}")
        except pytest.skip.Exception as error:
            skipped.append(f"trial {trial}: {error}")
        finally:
            del pyfuncitem.stash[_TRIAL]
    if len(skipped) == trials:
        pytest.skip("\n".join(skipped))
    broken += skipped
    needed = math.ceil(rate * trials - 1e-9)
    said = f"{passed} of {trials} trials passed, and {needed} are needed"
    if passed >= needed:
        return True
    if passed + len(broken) >= needed:
        raise GraderError("\n".join([f"{said}; {len(broken)} could not be graded", *broken]))
    raise AssertionError("\n".join([said, *failed, *broken]))


def _asked(item: pytest.Item, mark: pytest.Mark) -> tuple[int, float]:
    """How many trials a mark asks for, and the share of them that has to pass."""
    given = {"trials": 1, "pass_rate": 1.0, **mark.kwargs}
    trials, rate = given.pop("trials"), given.pop("pass_rate")
    from assay.types.codec import Within

    is_wrong = bool(Within(0, 1, above=True).fault(rate) or given or mark.args)
    if type(trials) is not int or trials < 1 or is_wrong:
        pytest.fail(
            f"{item.nodeid}: the mark is assay(trials=N, pass_rate=X), where N is a whole number "
            "from 1 and X is above 0 and at most 1",
            pytrace=False,
        )
    return trials, float(rate)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put what was graded onto the report, with which it gets from a worker of xdist."""
    report = yield
    if call.when == "call" and (kept := item.stash.get(_KEPT, None)):
        setattr(report, _ON_REPORT, kept)
        scores = [cast("dict[str, Json]", one["result"])["reward"] for one in kept]
        report.user_properties.append(("assay_scores", scores))
    return report


_ON_REPORT = "assay_graded"


class _Collected:
    """What all tests graded, in the process that has the reports of all workers."""

    def __init__(self) -> None:
        self._graded: list[dict[str, Json]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a test graded."""
        self._graded.extend(getattr(report, _ON_REPORT, ()))

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        """Store the run, and say how it is opened; or show its report."""
        where, report = _store(config), cast("str | None", config.getoption("--assay-report"))
        if where is None or not self._graded:
            return
        from assay.errors import AssayError

        terminalreporter.section("assay")
        try:
            run = _stored(where, str(config.rootpath), self._graded)
        except AssayError as error:  # what the tests found still counts
            terminalreporter.write_line(f"error: nothing was stored: {error}", red=True)
            return
        shown = f"assay report {run} --db {shlex.quote(where)}"
        terminalreporter.write_line(f"{len(self._graded)} graded, stored as a run: {shown}")
        if report is not None:
            from assay.cli.main import main

            with suppress(SystemExit):  # the verdict of the tests is pytest's
                main(["report", run, "--db", where, *(["--html", report] if report else [])])


def _store(config: pytest.Config) -> str | None:
    """Where results are stored; None for nowhere."""
    named = cast("str | None", config.getoption("--assay-db"))
    if named is None and config.getoption("--assay-report") is not None:
        return os.environ.get("ASSAY_DB") or str(config.rootpath / ".assay")
    return named


def _stored(where: str, suite: str, graded: Sequence[Mapping[str, Json]]) -> str:
    """Store what was graded as a run of rows; its id."""
    from assay.errors import AssayError
    from assay.eval.records import start_run
    from assay.scoring.results import EvaluationResult
    from assay.store.runs import Store

    with Store.open(where) as store:
        config: dict[str, Json] = {"kind": "dataset", "file": suite, "by": "pytest"}
        if any(cast("int", one["trial"]) > 1 for one in graded):
            config["has_trials"] = True
        run = start_run(store, config=config, digests={}, planned=len(graded))
        try:
            for one in graded:
                result = EvaluationResult.from_dict(cast("dict[str, Json]", one["result"]))
                store.add_cell(replace(_cell(one, result), run_id=run.id), {"row": one["row"]})
        except AssayError:  # half a run would look like a whole one
            store.forget_run(run.id)
            raise
        store.finish_run(run.id)
    return run.id


def _cell(one: Mapping[str, Json], result: EvaluationResult) -> CellRecord:
    """What was graded as the cell of a run."""
    from assay.eval.records import row_record
    from assay.tasks.rows import read_row

    row, threshold = cast("dict[str, Json]", one["row"]), cast("float", one["threshold"])
    cell = row_record(read_row(row), result, run_id="", threshold=threshold, digest="", seconds=0.0)
    return replace(cell, trial=cast("int", one["trial"]), harness="pytest")
