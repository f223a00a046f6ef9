"""Whose code is it: Python's, a package's, the hidden tests', or the submission's?"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from functools import partial
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Collection

frame_above = sys._getframe  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - no other way
"""The frame so many calls up: whose code asks."""


class Origins:
    """Tells code of the submission from all other.

    Args:
        root: The workspace.
        hidden: Real paths of the hidden sources.
    """

    def __init__(self, root: str, hidden: Collection[str]) -> None:
        self._root = root
        self._hidden = frozenset(hidden)
        self._ours = __file__.rpartition(os.sep)[0] + os.sep
        self._packages = _package_directories()
        self._hidden_codes: set[int] = set()
        self._hidden_spaces: set[int] = set()
        self._kept: tuple[CodeType, ...] = ()

    def add_hidden(self, code: CodeType) -> None:
        """Remember the code of a hidden module and everything defined in it."""
        self._kept = (*self._kept, code)
        self._hidden_codes.update(map(id, parts_of(code)))

    def is_hidden_code(self, code: object) -> bool:
        """Whether code was compiled from a hidden source."""
        return id(code) in self._hidden_codes

    def add_hidden_space(self, space: dict[str, object]) -> None:
        """Remember the namespace of a hidden module."""
        self._hidden_spaces.add(id(space))

    def is_hidden_space(self, space: object) -> bool:
        """Whether it is the namespace of a hidden module."""
        return id(space) in self._hidden_spaces

    def is_run_by_submission(self, frame: FrameType, *, nested: bool) -> bool:
        """Whether it was the submission that called a hidden test.

        A decorator of the submission may stand between the runner and a test, but nothing of it
        between two hidden functions; and while one test runs, only tests call another.

        Args:
            frame: Of the test.
            nested: Whether another test has not ended yet.
        """
        above, passed_submission = frame.f_back, False
        while above is not None:
            if id(above.f_code) in self._hidden_codes:
                return passed_submission
            passed_submission = passed_submission or not self.is_trusted(above.f_code.co_filename)
            above = above.f_back
        return nested

    def is_submissions(self, frame: FrameType | None) -> bool:
        """Whether the submission's code is behind a frame: the nearest but packages'."""
        while frame is not None:
            path = frame.f_code.co_filename
            if not path.startswith("<frozen ") and not self.is_package(path):
                return not self.is_trusted(path)
            frame = frame.f_back
        return False

    def is_package(self, path: str) -> bool:
        """Whether a file belongs to Python or an installed package."""
        return path.startswith(self._packages)

    def is_ours(self, frame: FrameType) -> bool:
        """Whether a frame runs code of ours."""
        return frame.f_code.co_filename.startswith(self._ours)

    def is_workspace(self, path: str) -> bool:
        """Whether a file is the submission's: in the workspace, and no test's."""
        return path.startswith(self._root + os.sep) and not self.is_trusted(path)

    def is_protected(self, path: str) -> bool:
        """Whether a file cannot be the submission's."""
        return path in self._hidden or path.startswith(self._ours) or self.is_package(path)

    def is_trusted(self, path: str) -> bool:
        """Whether a file is none of the submission's: a package's, a hidden or a test file."""
        name = path.rpartition(os.sep)[2]
        return (
            path.startswith((self._ours, "<frozen "))
            or self.is_package(path)
            or path in self._hidden
            or name == "conftest.py"
            or (name.startswith("test_") and name.endswith(".py"))
            or name.endswith("_test.py")
        )

    def trusts_callable(self, value: object) -> bool:
        """Whether nothing of the submission is behind what is called: a function, class or mock."""
        if type(value) is partial:
            value = cast("partial[object]", value).func
        if type(value) is MethodType:
            value = cast("MethodType", value).__func__
        if not callable(value) or self.trusts(value):
            return True
        if isinstance(value, (FunctionType, type)):
            return False
        spaces = [vars(one) for one in _lineage(value)]
        call = next((space["__call__"] for space in spaces if "__call__" in space), None)
        held = [one for one in _attributes(value) if isinstance(one, FunctionType)]
        return isinstance(call, FunctionType) and all(map(self.trusts, [call, *held]))

    def trusts(self, value: object) -> bool:
        """Whether a function or class was written by someone else than the submission."""
        path = source_of(value)
        return path is not None and self.is_trusted(path)


def _lineage(value: object) -> tuple[type, ...]:
    return type.__dict__["__mro__"].__get__(type(value))


def _attributes(value: object) -> list[object]:
    try:
        return list(cast("dict[str, object]", object.__getattribute__(value, "__dict__")).values())
    except AttributeError:
        return []


def parts_of(code: CodeType) -> list[CodeType]:
    """Code, and all code within it."""
    found = [code]
    for one in found:
        found.extend(const for const in one.co_consts if isinstance(const, CodeType))
    return found


def source_of(value: object) -> str | None:
    """The file that a function, descriptor, class or module comes from; None for anything else."""
    if isinstance(value, (staticmethod, classmethod)):
        value = cast("staticmethod[..., object]", value).__func__
    elif isinstance(value, property):
        value = value.fget
    if isinstance(value, FunctionType):
        return value.__code__.co_filename
    if isinstance(value, ModuleType):
        return getattr(value, "__file__", None)
    if isinstance(value, type):
        module = sys.modules.get(value.__module__)
        return getattr(module, "__file__", None)
    return None


def _package_directories() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    found = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    found.add(os.__file__.rpartition(os.sep)[0])
    found.update(site.getsitepackages())
    found.update(
        entry
        for entry in sys.path
        if entry.rpartition(os.sep)[2] in ("site-packages", "dist-packages", "lib-dynload")
    )
    places = {place for entry in found if entry for place in (entry, os.path.realpath(entry))}
    return tuple(place.rstrip(os.sep) + os.sep for place in sorted(places))
