"""Runs unittest, and tells the host what came of each test.

Ids have pytest's form: ``tests/test_add.py::AddTest::test_two``.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
import unittest
from pathlib import Path
from types import FunctionType, ModuleType, TracebackType
from typing import TYPE_CHECKING, NoReturn, TextIO, cast

from assay.graders.testing.inside.channel_client import BriefFields
from assay.graders.testing.inside.session import RunnerSession, Settings, arrange

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from assay.graders.testing.inside.channel_client import Send

    _Caught = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]
    _Part = unittest.TestCase | unittest.TestSuite

_WATCHED = (
    "unittest.case",
    "unittest.loader",
    "unittest.main",
    "unittest.result",
    "unittest.runner",
    "unittest.suite",
    "unittest.async_case",
)
_NO_TESTS = 5


def run(arguments: list[str], brief: BriefFields, send: Send, settings: Settings) -> NoReturn:
    """Run unittest, tell what came of it, and end the process."""
    session = RunnerSession(brief, send, settings, None)
    session.open_workspace("unittest", arguments, _WATCHED)
    status = 1
    try:
        program = _Program(session, arguments)
        status = program.status
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    session.leave(status)


class _Program(unittest.TestProgram):
    """``python -m unittest``, with the tests put in order and a result that tells."""

    test: unittest.TestSuite

    def __init__(self, session: RunnerSession, arguments: list[str]) -> None:
        self._session = session
        self.status = 1
        loader = _Loader()
        self._failures = loader.failures
        super().__init__(
            module=None,
            argv=["python -m unittest", *arguments],
            testLoader=loader,
            exit=False,
        )

    def runTests(self) -> None:  # noqa: N802 - unittest's name
        """Run them; called by unittest once the tests are loaded."""
        parts = list(_flat(self.test))
        names = _Names(self._session)
        errors = [
            (names.failed(part), names.failure(part)) for part in parts if names.is_failure(part)
        ]
        parts = [part for part in parts if not _has_id(names, part, self._session.skip)]
        lone = _case(self._session.canary_test())
        real = [part for part in parts if not names.is_failure(part)]
        ids = [names.id(case) for part in real for case in _cases(part)]
        self._session.collected(ids, errors)
        ordered = arrange(
            parts,
            lambda part: (names.file(part), type(part) if names.file(part) else id(part)),
            {},
            lone,
            self._session.seed,
            shuffle=self._session.shuffle,
        )
        result = self._run(unittest.TestSuite(ordered), names, lone)
        good = result.wasSuccessful() and not errors
        self.status = 0 if good and (ids or result.testsRun) else (1 if not good else _NO_TESTS)

    def _run(self, suite: unittest.TestSuite, names: _Names, planted: unittest.TestCase) -> _Result:
        def make_result(stream: TextIO, descriptions: bool, verbosity: int) -> _Result:  # noqa: FBT001 - unittest calls it
            return _Result(self._session, (names, planted), stream, (descriptions, verbosity))

        runner = unittest.TextTestRunner(
            verbosity=self.verbosity,
            failfast=bool(self.failfast),
            buffer=bool(self.buffer),
            warnings=self.warnings,
            resultclass=make_result,  # type: ignore[arg-type] # the stream is one of its own
        )
        return cast("_Result", runner.run(suite))


class _Loader(unittest.TestLoader):
    """Loads tests; a module that cannot be loaded fails, and the others are run."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[str] = []

    def loadTestsFromName(  # noqa: N802 - unittest's name
        self, name: str, module: ModuleType | None = None
    ) -> unittest.TestSuite:
        """Load what a dotted name means."""
        try:
            return super().loadTestsFromName(name, module)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            return unittest.TestSuite([_Unloadable(name, error)])


class _Unloadable(unittest.TestCase):
    """Stands for what could not be loaded."""

    def __init__(self, name: str, error: BaseException) -> None:
        super().__init__("fail_to_load")
        self.name = name
        self._error = error

    def fail_to_load(self) -> None:
        """Raise what was raised."""
        raise self._error

    @property
    def why(self) -> str:
        """What was raised, in words."""
        return f"{type(self._error).__name__}: {self._error}"


class _Names:
    """Ids of tests, as the host knows them."""

    def __init__(self, session: RunnerSession) -> None:
        self._session = session

    def file(self, part: object) -> str:
        """Real path of the file that a test's class is written in; empty if there is none."""
        module = sys.modules.get(type(part).__module__)
        path = getattr(module, "__file__", None)
        return os.path.realpath(path) if path and isinstance(part, unittest.TestCase) else ""

    def id(self, case: unittest.TestCase) -> str:
        """The id of a test."""
        return "::".join([self._session.relative(self.file(case)), *_classes(case), _method(case)])

    def is_failure(self, part: object) -> bool:
        """Whether it stands for a module that could not be loaded."""
        return isinstance(part, _Unloadable) or type(part).__module__ == "unittest.loader"

    def failed(self, part: object) -> str:
        """The path of a module that could not be loaded, else its name."""
        name = part.name if isinstance(part, _Unloadable) else _method(part)
        for base in sys.path:
            path = Path(base, *name.split("."))
            for file in (path.with_suffix(".py"), path / "__init__.py"):
                if file.is_file():
                    return self._session.relative(str(file))
        return name

    def failure(self, part: object) -> str:
        """Why it could not be loaded."""
        if isinstance(part, _Unloadable):
            return part.why
        error = getattr(part, "_exception", None)
        return str(error) if error else "could not be loaded"


class _Result(unittest.TextTestResult):
    """Tells the host what comes of each test."""

    def __init__(
        self,
        session: RunnerSession,
        tests: tuple[_Names, unittest.TestCase],
        stream: TextIO,
        options: tuple[bool, int],
    ) -> None:
        super().__init__(stream, *options)  # type: ignore[arg-type] # the runner's decorated stream
        self._session = session
        self._names, self._planted = tests
        self._outcomes: list[tuple[str, str]] = []
        self._started = 0.0
        self._clock = time.perf_counter

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's name
        """A test starts."""
        self._outcomes = []
        self._started = self._clock()
        if test is self._planted:
            return
        if not self._names.is_failure(test):
            self._session.start(self._names.id(test))
            names = [*_classes(test), _method(test)]
            self._session.check_test(self._names.file(test), names, getattr(test, names[-1], None))
        super().startTest(test)

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's name
        """A test has ended."""
        self._session.check()
        outcome, message = self._conclude()
        if test is self._planted:
            self._session.canary(_method(test), outcome, message)
            return
        super().stopTest(test)
        if self._names.is_failure(test):
            return
        seconds = self._clock() - self._started
        marked = outcome in ("skipped", "xfailed", "xpassed") and _is_marked(test)
        self._session.result(self._names.id(test), outcome, seconds, message, marked=marked)

    def _conclude(self) -> tuple[str, str]:
        for wanted in ("error", "failed", "skipped", "xfailed", "xpassed"):
            for outcome, message in self._outcomes:
                if outcome == wanted:
                    return outcome, message
        return ("passed", "") if self._outcomes else ("error", "the test came to no end")

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's name
        """It passed."""
        self._outcomes.append(("passed", ""))
        if test is not self._planted:
            super().addSuccess(test)

    def addError(self, test: unittest.TestCase, err: _Caught) -> None:  # noqa: N802 - unittest's name
        """It raised, or something around it did."""
        self._outcomes.append(("error", _text(err)))
        if test is not self._planted:
            super().addError(test, err)

    def addFailure(self, test: unittest.TestCase, err: _Caught) -> None:  # noqa: N802 - unittest's name
        """An assertion failed."""
        self._outcomes.append(("failed", _text(err)))
        if test is not self._planted:
            super().addFailure(test, err)

    def addSubTest(  # noqa: N802 - unittest's name
        self, test: unittest.TestCase, subtest: unittest.TestCase, err: _Caught | None
    ) -> None:
        """A part of it ended."""
        if err is not None:
            self._outcomes.append(("failed", _text(err)))
        super().addSubTest(test, subtest, err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802 - unittest's name
        """It was skipped, or a part of it."""
        if "_SubTest" not in type(test).__name__:
            self._outcomes.append(("skipped", reason))
        super().addSkip(test, reason)

    def addExpectedFailure(self, test: unittest.TestCase, err: _Caught) -> None:  # noqa: N802 - unittest's name
        """It failed as it was expected to."""
        self._outcomes.append(("xfailed", _text(err)))
        super().addExpectedFailure(test, err)

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's name
        """It passed where it was expected to fail."""
        self._outcomes.append(("xpassed", ""))
        super().addUnexpectedSuccess(test)


def _text(caught: _Caught) -> str:
    kind, error = caught[0], caught[1]
    return f"{kind.__name__}: {error}" if kind else ""


def _classes(case: unittest.TestCase) -> list[str]:
    return type(case).__qualname__.rpartition("<locals>.")[2].split(".")


def _method(case: object) -> str:
    return cast("str", getattr(case, "_testMethodName", type(case).__name__))


def _is_marked(test: unittest.TestCase) -> bool:
    """Whether a decorator of a test, or of its class, left it out or expects it to fail."""
    method = getattr(test, _method(test), None)
    marks = ("__unittest_skip__", "__unittest_expecting_failure__")
    return any(getattr(one, mark, False) for one in (method, type(test)) for mark in marks)


def _case(function: FunctionType) -> unittest.TestCase:
    """A test case of the planted test."""
    name = function.__name__
    return type("Planted", (unittest.TestCase,), {name: function})(name)


def _flat(part: unittest.TestCase | unittest.BaseTestSuite) -> Iterator[_Part]:
    """The tests of plain suites, and every other suite as it is."""
    if type(part) is unittest.TestSuite:
        for inner in part:
            yield from _flat(inner)
    else:
        yield cast("_Part", part)


def _cases(part: object) -> Iterator[unittest.TestCase]:
    if isinstance(part, unittest.TestCase):
        yield part
    elif isinstance(part, unittest.TestSuite):
        for inner in part:
            yield from _cases(inner)


def _has_id(names: _Names, part: object, ids: dict[str, object] | set[str]) -> bool:
    return isinstance(part, unittest.TestCase) and names.id(part) in ids
