"""A file of others' tests, run with assay in the place of what they test."""

from __future__ import annotations

import asyncio
import functools
import inspect
import itertools
import sys
import traceback
import unittest
import warnings
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn, cast

import pytest

from bench.proof.material import Case


class Inexpressible(Exception):  # noqa: N818 - no error, but what a test asks for
    """What a test asks for, and assay has no way to say."""


class Absent:
    """A name of their package that nothing here stands for: a test that uses it is not expressible.

    Attributes:
        _absent: The name.
    """

    def __init__(self, name: str) -> None:
        self._absent = name

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Refuse to be called, or to be made."""
        raise Inexpressible(self._absent)

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse to tell what it has."""
        raise Inexpressible(self._absent)


class Whatever:
    """What their verdicts tell beside the verdict, such as a reason: it is not compared."""

    def __eq__(self, other: object) -> bool:
        """Be what is expected."""
        return True

    def __contains__(self, _words: object) -> bool:
        """Have what is expected."""
        return True

    def startswith(self, _words: str) -> bool:
        """Begin as is expected."""
        return True

    __hash__ = None  # pyright: ignore[reportAssignmentType]


@dataclass(frozen=True, slots=True)
class StandIns:
    """What their tests import, and what stands for it.

    Attributes:
        names: What stands for the names of a module, by the module's name. Of the packages named
            here nothing real is imported; every other name in them is `Absent`.
        package: The package that a file of tests is in, for its relative imports.
    """

    names: Mapping[str, Mapping[str, object]]
    package: str = ""

    @property
    def roots(self) -> frozenset[str]:
        """The packages that are replaced."""
        named = (*self.names, *filter(None, [self.package]))
        return frozenset(name.partition(".")[0] for name in named)


def cases(file: Path, stand_ins: StandIns, *, leave_out: Collection[str] = ()) -> Iterator[Case]:
    """Each test in a file but some, once for each row of its parameters.

    A test agrees where it passes. Where it asks for what cannot be expressed, ``said`` begins with
    "needs"; otherwise it is the assertion that failed.
    """
    with _imported(file, stand_ins) as module:
        for name, test in _tests(module):
            if name not in leave_out:
                for number, given in enumerate(_rows(test)):
                    said = _said(test, given)
                    yield Case(f"{file.stem}:{name}:{number}", not said, said)


def _tests(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions that are tests, and the methods of its classes that are, each set up anew."""
    for name, found in vars(module).items():
        if name.startswith("test_") and inspect.isfunction(found):
            yield name, found
        elif inspect.isclass(found) and issubclass(found, unittest.TestCase):
            for method, test in vars(found).items():
                if method.startswith("test") and inspect.isfunction(test):
                    yield method, _of_class(found, method, test)


def _of_class(
    of: type[unittest.TestCase], name: str, test: Callable[..., Any]
) -> Callable[..., Any]:
    @functools.wraps(test)
    def run(**given: object) -> object:
        case = of(name)
        case.setUp()
        return test(case, **given)

    parameters = list(inspect.signature(test).parameters.values())[1:]
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


@contextmanager
def _imported(file: Path, stand_ins: StandIns) -> Generator[ModuleType]:
    """The module of a file; until the end, its imports bring what stands for the real ones."""
    finder = _Finder(stand_ins)
    kept = {
        name: module
        for name, module in sys.modules.items()
        if name.partition(".")[0] in stand_ins.roots
    }
    for name in kept:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    module = ModuleType(file.stem)
    module.__package__ = stand_ins.package
    module.__file__ = str(file)
    sys.modules[file.stem] = module  # where dataclasses look for it
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # marks of theirs that pytest is not told of
            exec(compile(file.read_text("utf-8"), file, "exec"), vars(module))
            yield module
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] in stand_ins.roots]:
            del sys.modules[name]
        del sys.modules[file.stem]
        sys.modules.update(kept)


class _Finder(MetaPathFinder, Loader):
    def __init__(self, stand_ins: StandIns) -> None:
        self._stand_ins = stand_ins

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in self._stand_ins.roots:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        def absent(name: str) -> Absent:
            if name.startswith("__"):
                raise AttributeError(name)
            return Absent(f"{module.__name__}.{name}")

        vars(module).update(self._stand_ins.names.get(module.__name__, {}))
        module.__getattr__ = absent


def _rows(test: Callable[..., object]) -> Iterator[Mapping[str, object]]:
    """The arguments of each run of a test; several tables are combined."""
    tables: list[list[dict[str, object]]] = []
    for mark in cast("list[pytest.Mark]", getattr(test, "pytestmark", [])):
        if mark.name == "parametrize":
            told, rows = mark.args[:2]
            names = told.replace(" ", "").split(",") if isinstance(told, str) else list(told)
            tables.append([_row(names, row) for row in rows])
    for combined in itertools.product(*tables):
        yield dict(itertools.chain.from_iterable(row.items() for row in combined))


def _row(names: Sequence[str], row: object) -> dict[str, object]:
    values = getattr(row, "values", None)  # of pytest.param(...)
    if not isinstance(values, tuple):
        values = (row,) if len(names) == 1 else row
    return dict(zip(names, cast("Sequence[object]", values), strict=True))


def _said(test: Callable[..., Any], given: Mapping[str, object]) -> str:
    """What a test said against what stands for their package; empty where it passed."""
    fixtures = [name for name in inspect.signature(test).parameters if name not in given]
    if fixtures:
        return f"needs the fixture {fixtures[0]}"
    try:
        result = test(**given)
        if inspect.iscoroutine(result):
            asyncio.run(result)
    except Inexpressible as asked:
        return f"needs {asked}"
    except (pytest.skip.Exception, pytest.xfail.Exception) as left:  # no `Exception`s
        return f"{type(left).__name__.lower()}: {left}"
    except Exception as error:  # whatever a test may say
        file = inspect.getfile(test)
        place = [at for at in traceback.extract_tb(error.__traceback__) if at.filename == file]
        return f"line {place[-1].lineno}: {place[-1].line} ({type(error).__name__} {error})"
    return ""
