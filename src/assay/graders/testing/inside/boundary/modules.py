"""Modules of the submission: which they are, and what stands for one in the judge."""

from __future__ import annotations

import dis
import os
import re
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from assay.graders.testing.inside.boundary.judge_state import Ref, barred, current, state
from assay.graders.testing.inside.boundary.stands import Remote
from assay.graders.testing.inside.boundary.wire import WireError

_TEST_DIRECTORIES = frozenset(["tests", "test"])
_SOURCES = ("", "src", "lib", "python")
_LIBRARY = os.path.dirname(os.__file__)
_STANDARD = (
    frozenset(
        getattr(sys, "stdlib_module_names", ())
        or (one.partition(".")[0] for one in os.listdir(_LIBRARY))  # before Python 3.10
    )
    - {"test", "this", "antigravity"}
).union(sys.builtin_module_names)
_USES_TESTS = re.compile(rb"^\s*(?:import|from)\s+(?:unittest|pytest|_pytest)\b", re.MULTILINE)
_HELPER_NAMES = re.compile(
    r"_?(?:testing|testutils?|test_utils?|test_?helpers?|asserts|assertions)"
)
_ASSERTS = re.compile(rb"^\s*def (?:assert|check|expect|verify)", re.MULTILINE)
_LARGEST = 1 << 20


class _Space(dict[str, Any]):
    """What a stand-in of a module has as its ``__dict__``: tools that patch look there first."""

    def __init__(self, module: SubmissionModule) -> None:
        super().__init__()
        self._module = module

    def __missing__(self, name: str) -> Any:
        try:
            return getattr(self._module, name)
        except AttributeError:
            raise KeyError(name) from None

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self._module, name, default)


class SubmissionModule(Remote, ModuleType):
    """Stands for a module of the submission's."""

    @property
    def __dict__(self) -> Any:  # type: ignore[override] # tools that patch look there first
        return _Space(self)

    def __getattr__(self, name: str) -> Any:
        if _is_pythons(name):
            raise AttributeError(name)
        if name == "__all__":
            return self._all()
        child = sys.modules.get(f"{self.__name__}.{name}")
        found = super().__getattr__(name)
        return child if isinstance(found, SubmissionModule) and child is not None else found

    def _all(self) -> list[str]:
        """What it lists; for ``import *`` without names that the test has, or pytest looks for."""
        try:
            named: Any = super().__getattr__("__all__")
        except AttributeError:
            named = [name for name in dir(self) if not name.startswith("_")]
        named = [name for name in named if type(name) is str]
        frame = sys._getframe(2)
        is_star = dis.opname[frame.f_code.co_code[max(frame.f_lasti, 0)]] in _STAR
        if not is_star and not frame.f_code.co_filename.startswith("<frozen importlib"):
            return named
        return [one for one in named if one not in frame.f_globals and not one.startswith("pytest")]

    def __setattr__(self, name: str, value: Any) -> None:
        if _is_pythons(name) or type(value) is ModuleType:
            ModuleType.__setattr__(self, name, value)
        elif not (
            isinstance(value, SubmissionModule) and value.__name__ == f"{self.__name__}.{name}"
        ):
            Remote.__setattr__(self, name, value)


def make_module(talk: Any, number: int, name: str, doc: Any = None) -> SubmissionModule:
    """Make what stands for a module of the host's."""
    made = talk.known[number] = SubmissionModule(name, doc if type(doc) is str else None)
    ModuleType.__setattr__(made, "_assay", Ref(talk, number, (name,)))
    return made


def _is_pythons(name: str) -> bool:
    """Whether Python itself has a module's attribute, and not its source."""
    return name.startswith("__") and name not in _OF_SOURCES


_STAR = ("IMPORT_STAR", "CALL_INTRINSIC_1")
_OF_SOURCES = ("__version__", "__all__", "__author__", "__doc__", "__title__")


class SubmissionFinder:
    """Finds the submission's modules in the host, and leaves all others to Python."""

    def __init__(self, hidden: frozenset[str]) -> None:
        self._hidden = hidden  # real paths of the hidden files
        self._imported: set[tuple[int, str]] = set()
        # What to do to modules of Python's library once they are loaded.
        self.when_loaded: dict[str, Callable[[ModuleType], None]] = {}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec of a stand-in; None for a module that is not the submission's."""
        top, _, rest = fullname.partition(".")
        if top in _STANDARD:
            return self._of_library(fullname, path) if fullname in self.when_loaded else None
        spec = PathFinder.find_spec(fullname, path if rest else None)
        if not self._is_submissions(fullname, spec):
            return None
        found = ModuleSpec(fullname, self, origin="the submission", is_package=True)  # type: ignore[arg-type] # has what is used of a loader
        found.submodule_search_locations = [os.path.join(state.root, *fullname.split("."))]
        return found

    def _of_library(self, fullname: str, path: Any) -> ModuleSpec | None:
        spec: Any = PathFinder.find_spec(fullname, path or [_LIBRARY])  # whatever the source has
        # Not forgotten: a spec can be asked for and never loaded, and a module loaded again.
        load, act = spec.loader.exec_module, self.when_loaded[fullname]

        def exec_module(module: ModuleType) -> None:
            load(module)
            act(module)

        spec.loader.exec_module = exec_module
        return spec

    def _is_submissions(self, fullname: str, spec: ModuleSpec | None) -> bool:
        parent = fullname.rpartition(".")[0]
        if spec is None:
            return not parent or isinstance(sys.modules.get(parent), SubmissionModule)
        place = os.path.realpath(spec.origin) if spec.origin and spec.has_location else ""
        if state.is_shared(place):
            raise barred(f"{spec.name} was written while tests ran: it is not run here")
        if place and state.is_ours(place):
            return not self.is_authors(place)
        if not place:  # a directory without __init__.py
            places = [os.path.realpath(one) for one in spec.submodule_search_locations or ()]
            return any(map(state.is_ours, places)) and not any(map(self._holds_tests, places))
        # Installed, but what is tested may have that name.
        places = [os.path.join(state.root, base, fullname) for base in _SOURCES]
        return not parent and any(
            os.path.isfile(f"{one}.py") or (os.path.isdir(one) and not self._holds_tests(one))
            for one in places
        )

    def _holds_tests(self, directory: str) -> bool:
        is_named = os.path.basename(directory) in _TEST_DIRECTORIES
        return is_named or any(one.startswith(directory + os.sep) for one in self._hidden)

    def is_authors(self, place: str) -> bool:
        """Whether a file of the judge's tree is a test, or helps tests.

        It helps if it imports a test library, or is named like a helper and has functions that
        assert. All others are the source's version of what the submission may have changed.
        """
        *above, name = os.path.relpath(place, state.root).split(os.sep)
        is_test = name.startswith("test_") or name.endswith("_test.py")
        is_named = is_test or name in ("conftest.py", "setup.py")
        if is_named or place in self._hidden or not _TEST_DIRECTORIES.isdisjoint(above):
            return True
        try:
            with open(place, "rb") as file:
                text = file.read(_LARGEST)
        except OSError:
            return False
        is_helper = _HELPER_NAMES.fullmatch(name[: -len(".py")]) and _ASSERTS.search(text)
        return bool(is_helper or _USES_TESTS.search(text))

    def create_module(self, spec: ModuleSpec) -> SubmissionModule:
        """Have the host import it; anew, if the tests have taken it out of ``sys.modules``."""
        talk = current()
        key = (talk.number, spec.name)
        node = talk.request("import", spec.name, key in self._imported)
        self._imported.add(key)
        if type(node) is not list or node[0] != "m":
            raise WireError("an import makes no sense")
        return make_module(talk, node[1], spec.name, node[3])

    def exec_module(self, module: SubmissionModule) -> None:
        """Nothing: it was run in the host."""
