"""Runs pytest, and tells the host what came of each test."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, NoReturn, cast

import _pytest.assertion
import _pytest.config
import pluggy
import pytest
from _pytest.assertion.rewrite import rewrite_asserts
from _pytest.runner import runtestprotocol

from assay.graders.testing.inside.channel_client import BriefFields
from assay.graders.testing.inside.session import RunnerSession, Settings, arrange

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from importlib.abc import MetaPathFinder

    from assay.graders.testing.inside.channel_client import Send

_WRAPPER = pytest.hookimpl(hookwrapper=True, tryfirst=True)
_WATCHED = (
    "_pytest.doctest",
    "_pytest.main",
    "_pytest.outcomes",
    "_pytest.python",
    "_pytest.python_api",
    "_pytest.raises",
    "_pytest.reports",
    "_pytest.runner",
    "_pytest.skipping",
    "_pytest.unittest",
    "doctest",
    "pluggy._callers",
    "pluggy._hooks",
    "pytest",
    "unittest.case",
)


def run(arguments: list[str], brief: BriefFields, send: Send, settings: Settings) -> NoReturn:
    """Run pytest, tell what came of it, and end the process."""
    _load_everything()
    session = RunnerSession(brief, send, settings, rewrite_asserts)
    _stay_first(session.finder)
    _number_directories()
    _keep_plugins_out(session.without_workspace)
    session.open_workspace("pytest", arguments, _WATCHED)
    try:
        status = int(pytest.main(arguments, plugins=[_Collector(session)]))
    except BaseException as error:
        sys.stderr.write(f"pytest was ended by {type(error).__name__}: {error}\n")
        status = int(pytest.ExitCode.INTERNAL_ERROR)
    session.leave(status)


def _load_everything() -> None:
    """Import what pytest would import later, when files of the workspace could take its place."""
    plugins = cast("tuple[str, ...]", getattr(_pytest.config, "default_plugins", ()))
    others = ("doctest", "difflib", "pprint", "json")
    for name in (*(f"_pytest.{plugin}" for plugin in plugins), *others):
        try:
            importlib.import_module(name)
        except ImportError:
            continue


def _stay_first(finder: MetaPathFinder) -> None:
    """Keep our finder before pytest's, which would compile the empty files."""
    install = _pytest.assertion.install_importhook

    def install_importhook(config: pytest.Config) -> object:
        hook = install(config)
        sys.meta_path.remove(finder)
        sys.meta_path.insert(0, finder)
        return hook

    _pytest.assertion.install_importhook = install_importhook


def _keep_plugins_out(path_without: Callable[[], list[str]]) -> None:
    """Let no ``entry_points.txt`` in the workspace name a plugin."""
    load = pluggy.PluginManager.load_setuptools_entrypoints

    def load_setuptools_entrypoints(
        self: pluggy.PluginManager, group: str, name: str | None = None
    ) -> int:
        everything = sys.path[:]
        sys.path[:] = path_without()
        try:
            return load(self, group, name)
        finally:
            sys.path[:] = everything

    pluggy.PluginManager.load_setuptools_entrypoints = load_setuptools_entrypoints


def _number_directories() -> None:
    """Let the name of a temporary directory tell nothing of the test that it is for."""
    import _pytest.tmpdir

    def make(_: object, factory: pytest.TempPathFactory) -> object:
        return factory.mktemp("t", numbered=True)

    setattr(_pytest.tmpdir, "_mk_tmp", make)  # noqa: B010 - not a name that others may use


class _Collector:
    """The plugin that is there from the start: settings, collection and order."""

    def __init__(self, session: RunnerSession) -> None:
        self._session = session
        self._errors: list[tuple[str, str]] = []
        self._pytest_session: pytest.Session | None = None
        self._is_told = False

    @_WRAPPER
    def pytest_cmdline_main(self, config: pytest.Config) -> Generator[None, object, None]:
        option = config.option
        option.continue_on_collection_errors = True
        if hasattr(option, "numprocesses"):  # workers would report to nobody
            option.numprocesses, option.dist, option.tx = None, "no", []
        if hasattr(option, "randomly_reorganize"):
            option.randomly_reorganize = False
            option.randomly_seed = self._session.seed & 0xFFFFFFFF
        yield

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._pytest_session = session
        session.config.pluginmanager.register(_Phases(session.config))

    @_WRAPPER
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pluggy.Result[pytest.CollectReport], None]:
        self._session.enter(str(collector.path) if isinstance(collector, pytest.Module) else "")
        outcome = yield
        self._session.enter("")
        error = _error_of(outcome)
        if isinstance(error, (SystemExit, KeyboardInterrupt, pytest.exit.Exception)):
            message = f"{type(error).__name__} while {collector.nodeid} was imported: {error}"
            outcome.force_result(pytest.CollectReport(collector.nodeid, "failed", message, []))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._errors.append((self._place(report.nodeid), _message(report)))
        # An id that is not found, because its file cannot be imported, must not end the others.
        lost = getattr(self._pytest_session, "_notfound", None)
        if not report.nodeid and lost and self._errors:
            self._errors += [(self._place(str(argument)), "not found") for argument, _ in lost]
            del lost[:]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if self._is_told:
            return
        self._is_told = True
        items = [item for item in session.items if self.id_of(item) not in self._session.skip]
        if len(items) < len(session.items):
            left_out = [item for item in session.items if item not in items]
            session.config.hook.pytest_deselected(items=left_out)
        self._session.collected([self.id_of(item) for item in items], self._errors)
        reporter = _Reporter(self._session, self.id_of)
        modules = (item.getparent(pytest.Module) for item in items)
        canaries = {
            module.path: self._canary(module, number)
            for number, module in enumerate(dict.fromkeys(modules))
            if module is not None and not _is_left_out(module)
        }
        lone = self._canary(session, -1)
        reporter.canaries = [*canaries.values(), lone]
        session.items = arrange(
            items,
            _group_of,
            cast("dict[object, pytest.Item]", canaries),  # type: ignore[arg-type] # paths hash
            lone,
            self._session.seed,
            shuffle=self._session.shuffle,
        )
        manager = session.config.pluginmanager
        manager.register(reporter)
        manager.register(_CanaryProtocol(self._session, reporter.canaries))

    def id_of(self, item: pytest.Item) -> str:
        _, separator, rest = item.nodeid.partition("::")
        return f"{self._session.relative(str(item.path))}{separator}{rest}"

    def _place(self, nodeid: str) -> str:
        path, separator, rest = nodeid.partition("::")
        root = str(self._pytest_session.config.rootpath) if self._pytest_session else ""
        place = self._session.relative(f"{root}/{path}")
        return f"{place}{separator}{rest}"

    def _canary(self, parent: pytest.Collector, number: int) -> pytest.Function:
        """A test that must fail, without the fixtures that other tests use by themselves."""
        name, function = f"{self._session.planted}_{number}", self._session.canary_test()
        item = cast(
            "pytest.Function",
            pytest.Function.from_parent(parent, name=name, callobj=function),  # type: ignore[arg-type] # any node will do
        )
        item.fixturenames = []
        # Its message is enough: to show code, `inspect` looks at every module that there is.
        vars(item)["repr_failure"] = _text_of
        return item


def _text_of(caught: pytest.ExceptionInfo[BaseException]) -> str:
    return str(caught.value)


def _is_left_out(module: pytest.Module) -> bool:
    """Whether a canary would be skipped, too."""
    return any(next(module.iter_markers(mark), None) for mark in ("skip", "skipif", "xfail"))


class _Phases:
    """Lets nothing that a test raises end the run."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    @_WRAPPER
    def pytest_runtest_setup(self) -> Generator[None, pluggy.Result[None], None]:
        self._contain((yield))

    pytest_runtest_call = pytest_runtest_teardown = pytest_runtest_setup

    def _contain(self, outcome: pluggy.Result[None]) -> None:
        error = _error_of(outcome)
        if isinstance(error, (KeyboardInterrupt, pytest.exit.Exception)):
            told = RuntimeError(f"{type(error).__name__}: {error}").with_traceback(
                error.__traceback__
            )
            outcome.force_exception(told)


class _Reporter:
    """Gathers the reports of each test and tells what they come to."""

    def __init__(self, session: RunnerSession, id_of: Callable[[pytest.Item], str]) -> None:
        self._session = session
        self.canaries: list[pytest.Item] = []
        self._id_of = id_of
        self._raised: BaseException | None = None
        self._reports: list[pytest.TestReport] = []

    @_WRAPPER
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, None]:
        if item in self.canaries:
            yield
            return
        name = self._id_of(item)
        self._reports, self._raised = [], None
        self._session.start(name)
        yield
        self._session.check()
        outcome, message = _conclude(self._reports)
        if outcome == "passed" and self._raised is not None:
            outcome, message = "failed", f"a test that raised is said to have passed: {name}"
            self._session.tamper(message)
        seconds = sum(report.duration for report in self._reports)
        marked = _is_marked(item, outcome, self._reports)
        self._session.result(name, outcome, seconds, message, marked=marked)

    @_WRAPPER
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, None]:
        classes = [one.name for one in pyfuncitem.listchain() if isinstance(one, pytest.Class)]
        names = [*classes, _function_name(pyfuncitem)]
        self._session.check_test(str(pyfuncitem.path), names, pyfuncitem.obj)
        yield

    @_WRAPPER
    def pytest_runtest_call(self) -> Generator[None, pluggy.Result[None], None]:
        outcome = yield
        self._raised = _error_of(outcome)

    @_WRAPPER
    def pytest_runtest_teardown(self) -> Generator[None, object, None]:
        # Which test tears down what many share depends on the order.
        self._session.outside("teardown")
        yield

    @_WRAPPER
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object]
    ) -> Generator[None, object, None]:
        if fixturedef.scope == "function":
            yield
            return
        with self._session.during(f"fixture:{fixturedef.argname}"):
            yield

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome == cast("object", "rerun"):
            self._reports = []
        else:
            self._reports.append(report)


class _CanaryProtocol:
    """Runs planted tests as others are run, but keeps them out of pytest's own counts."""

    def __init__(self, session: RunnerSession, canaries: list[pytest.Item]) -> None:
        self._session = session
        self._canaries = canaries

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        if item not in self._canaries:
            return None
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        self._session.check()
        if any(report.when == "call" for report in reports):
            outcome, message = _conclude(reports)
            self._session.canary(item.name, outcome, message)
        return True


def _conclude(reports: list[pytest.TestReport]) -> tuple[str, str]:
    """What the reports of a test come to, and its message."""
    for report in reports:
        if report.failed:
            return ("failed" if report.when == "call" else "error"), _message(report)
    whole = [report for report in reports if not hasattr(report, "context")]  # no subtests
    for report in whole:
        if report.skipped:
            return ("xfailed" if hasattr(report, "wasxfail") else "skipped"), _message(report)
    for report in whole:
        if report.when == "call":
            return ("xpassed" if hasattr(report, "wasxfail") else "passed"), ""
    return "error", "the test was set up but not called"


def _is_marked(item: pytest.Item, outcome: str, reports: list[pytest.TestReport]) -> bool:
    """Whether marks of a test left it out before it ran, or expect it to fail."""
    if outcome == "skipped":
        early = any(report.skipped and report.when == "setup" for report in reports)
        return early and any(map(item.get_closest_marker, ("skip", "skipif")))
    return outcome in ("xfailed", "xpassed") and item.get_closest_marker("xfail") is not None


def _message(report: pytest.TestReport | pytest.CollectReport) -> str:
    longrepr = report.longrepr
    if isinstance(longrepr, tuple):
        return str(longrepr[-1])
    crash = getattr(longrepr, "reprcrash", None)
    if crash is not None:
        own, _, said = crash.message.partition(": ")
        if own.startswith("assay.graders.testing.inside."):  # the boundary says so, not the test
            return f"{own.rpartition('.')[2]}: {said}"
        return f"{crash.path.rpartition(os.sep)[2]}:{crash.lineno}: {crash.message}"
    return str(longrepr)[-4_000:] if longrepr else ""


def _error_of(
    outcome: pluggy.Result[pytest.CollectReport] | pluggy.Result[None],
) -> BaseException | None:
    caught = cast("tuple[type[BaseException], BaseException, object] | None", outcome.excinfo)
    return caught[1] if caught else None


def _function_name(item: pytest.Item) -> str:
    return getattr(item, "originalname", None) or item.name.partition("[")[0]


def _group_of(item: pytest.Item) -> tuple[object, object]:
    outermost = next((node for node in item.listchain() if isinstance(node, pytest.Class)), None)
    return item.path, outermost.name if outermost else _function_name(item)
