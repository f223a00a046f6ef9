"""What every test gets: a home of its own, and no setting of whoever runs the tests."""

from __future__ import annotations

import fcntl
import gc
import itertools
import logging
import os
import re
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis.internal.conjecture import providers

from tests.children import Children
from tests.containers import podman
from tests.leftovers import watch
from tests.ray_cluster import tokens_as_set

__all__ = ["podman"]

settings.register_profile("assay", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("thorough", settings.get_profile("assay"), max_examples=60)
# For `make mutants`: what fails fails, and its smallest example does not matter.
noticing = [Phase.explicit, Phase.reuse, Phase.generate]
settings.register_profile("noticing", settings.get_profile("assay"), phases=noticing)
settings.load_profile("assay")

_NUMBERS = itertools.count()


def pytest_configure(config: pytest.Config) -> None:
    """Tests begin alike, whoever starts them."""
    # Where the parent ignores Ctrl-C, so would every process that a test starts and interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if "MUTANT_UNDER_TEST" in os.environ:
        sys.setrecursionlimit(4000)  # each call that may be another's is three
    elif not hasattr(config, "workerinput"):
        watch()
    # Texts of the modules that happen to be loaded are no examples: which these are, the order of
    # tests decides, and to look each of them through takes a quarter of the time of a property.
    none = vars(providers)["_local_constants"]
    pytest.MonkeyPatch().setattr(providers, "_get_local_constants", lambda: none)
    # Python 3.11 shows a traceback by parsing it, and parses nothing well within which it does so:
    # what nobody asked how it ended says that to this logger, whenever it is collected as garbage.
    logging.getLogger("asyncio").addFilter(_without_traceback)
    gc.disable()  # collecting makes a great many objects, and no garbage


def _without_traceback(record: logging.LogRecord) -> bool:
    if record.exc_info:
        record.msg = f"{record.msg}\n{record.exc_info[1]!r}"
        record.exc_info = None
    return True


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files without a test of the stage that runs are not even imported."""
    asked = re.findall(r"(?<!not )\b(slow|soak|real|hypothesis)\b", config.option.markexpr)
    if not asked or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text("utf-8")
    return None if any(re.search(rf"\b(mark\.|from ){one}\b", text) for one in asked) else True


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Each worker begins to import elsewhere: none compiles what another one just compiled."""
    report = yield
    worker = getattr(collector.config, "workerinput", None)
    if worker is not None and isinstance(collector, pytest.Directory):
        first = len(report.result) * int(worker["workerid"][2:]) // worker["workercount"]
        report.result = [*report.result[first:], *report.result[:first]]
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_collection_modifyitems")
def pytest_put_in_order(items: list[pytest.Item]) -> Generator[None]:
    """All workers have the same order again, before it is left to chance.

    Pytest takes functions for hooks whose name begins like this one's.
    """
    items.sort(key=lambda item: item.path)
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Each worker begins with the slow tests of its share: none ends on one while others idle.

    The first one has all that are alone with Ray, which workers would wait for each other with; the
    last one those of the web page, which have one browser, and each module of them one server.
    """
    items.sort(key=lambda item: (_is_of_the_page(item), not _is_with_ray(item)))
    workers = getattr(config, "workerinput", {"workercount": 1})["workercount"]
    share = max(1, -(-len(items) // workers))
    shares = [items[at : at + share] for at in range(0, len(items), share)]
    items[:] = [item for part in shares for item in sorted(part, key=_turn)]


def _is_with_ray(item: pytest.Item) -> bool:
    return "alone_with_ray" in getattr(item, "fixturenames", ())


def _is_of_the_page(item: pytest.Item) -> bool:
    return item.nodeid.startswith("web/")


def _turn(item: pytest.Item) -> tuple[bool, bool]:
    """What others take over from a worker is the end of its share: the page's tests stay whole."""
    is_quick = not any(item.get_closest_marker(name) for name in ("slow", "soak", "real"))
    return is_quick, not _is_of_the_page(item)


def pytest_collection_finish() -> None:
    """What was collected stays to the end: nobody who looks for garbage has to walk through it."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("ASSAY_"):
            monkeypatch.delenv(name)
    # Not in `tmp_path`: most tests have no files, and a directory for each would take its time.
    home = tmp_path_factory.getbasetemp() / f"home-{next(_NUMBERS)}"
    monkeypatch.setenv("ASSAY_DB", str(home))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty directory to grade."""
    place = tmp_path / "workspace"
    place.mkdir()
    return place


@pytest.fixture
def children() -> Generator[Children]:
    """Starts processes, none of which outlives the test."""
    with Children() as started:
        yield started


@pytest.fixture(scope="module")
def alone_with_ray(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """The one Ray cluster of the machine: two at once are too much for two cores."""
    with (tmp_path_factory.getbasetemp().parent / "ray.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RAY_AUTH_MODE", "")  # to be taken away again: Ray sets it
            patch.delenv("RAY_AUTH_MODE")
            tokens_as_set()
            yield
