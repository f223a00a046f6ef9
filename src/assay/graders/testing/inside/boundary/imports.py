"""Which modules are the submission's: an import of one gives a stand-in."""

from __future__ import annotations

import os
import re
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from assay.graders.testing.inside.boundary.mirrors import Module
from assay.graders.testing.inside.boundary.session import (
    BoundaryError,
    Ref,
    current,
    fail,
    state,
)
from assay.graders.testing.inside.boundary.wire import WireError

_TEST_DIRECTORIES = ("tests", "test")
_SOURCES = ("", "src", "lib", "python")
_STANDARD = (
    frozenset(getattr(sys, "stdlib_module_names", ())) - {"test", "this", "antigravity"}
).union(sys.builtin_module_names)
_USES_TESTS = re.compile(rb"^\s*(?:import|from)\s+(?:unittest|pytest|_pytest)\b", re.MULTILINE)
_HELPER_NAMES = re.compile(
    r"_?(?:testing|testutils?|test_utils?|test_?helpers?|asserts|assertions)"
)
_ASSERTS = re.compile(rb"^\s*def (?:assert|check|expect|verify)", re.MULTILINE)
_LARGEST = 1 << 20


class Finder:
    """Finds the submission's modules in the host, and leaves all others to Python.

    The author's are those of the judge's tree that are tests, or that help tests: modules which
    import a test library, or are named like helpers and have functions that assert. The others of
    the tree are the source's version of what the submission may have changed.

    Args:
        hidden: Real paths of the hidden files.
    """

    def __init__(self, hidden: frozenset[str]) -> None:
        self._hidden = hidden
        self._imported: set[tuple[int, str]] = set()

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec of a stand-in; None for a module that is not the submission's."""
        del target
        top, _, rest = fullname.partition(".")
        if top in _STANDARD:
            return None
        parent = sys.modules.get(fullname.rpartition(".")[0])
        spec = PathFinder.find_spec(fullname, path if rest else None)
        if not self._is_submissions(top, rest, spec, parent):
            return None
        found = ModuleSpec(fullname, self, origin="the submission", is_package=True)  # type: ignore[arg-type] # has what is used of a loader
        found.submodule_search_locations = [os.path.join(state.root, *fullname.split("."))]
        return found

    def _is_submissions(self, top: str, rest: str, spec: ModuleSpec | None, parent: Any) -> bool:
        if spec is None:
            return not rest or isinstance(parent, Module)
        place = os.path.realpath(spec.origin) if spec.origin and spec.has_location else ""
        if state.is_shared(place):
            raise fail(
                BoundaryError(f"{spec.name} was written while tests ran: it is not run here")
            )
        if place and state.is_ours(place):
            return not self.is_authors(place)
        if not place:  # a directory without __init__.py
            places = [os.path.realpath(one) for one in spec.submodule_search_locations or ()]
            return any(map(state.is_ours, places)) and not any(map(self._holds_tests, places))
        return not rest and self._is_in_source(top)  # installed, but what is tested has that name

    def _holds_tests(self, directory: str) -> bool:
        is_named = os.path.basename(directory) in _TEST_DIRECTORIES
        return is_named or any(one.startswith(directory + os.sep) for one in self._hidden)

    def is_authors(self, place: str) -> bool:
        """Whether a file of the judge's tree is a test, or helps tests."""
        *above, name = os.path.relpath(place, state.root).split(os.sep)
        if place in self._hidden or name in ("conftest.py", "setup.py"):
            return True
        if name.startswith("test_") or name.endswith("_test.py"):
            return True
        if any(part in _TEST_DIRECTORIES for part in above):
            return True
        try:
            with open(place, "rb") as file:
                text = file.read(_LARGEST)
        except OSError:
            return False
        is_helper = _HELPER_NAMES.fullmatch(name[: -len(".py")]) and _ASSERTS.search(text)
        return bool(is_helper or _USES_TESTS.search(text))

    def _is_in_source(self, top: str) -> bool:
        for base in _SOURCES:
            place = os.path.join(state.root, base, top)
            if os.path.isfile(f"{place}.py"):
                return True
            if os.path.isdir(place) and not self._holds_tests(place):
                return True
        return False

    def create_module(self, spec: ModuleSpec) -> Module:
        """Have the host import it; anew, if the tests have taken it out of ``sys.modules``."""
        talk = current()
        key = (talk.number, spec.name)
        node = talk.request("import", spec.name, key in self._imported)
        self._imported.add(key)
        if type(node) is not list or node[0] != "m":
            raise WireError("an import makes no sense")
        made = Module(spec.name, node[3] if type(node[3]) is str else None)
        ModuleType.__setattr__(made, "_assay", Ref(talk, node[1], (spec.name,)))
        talk.known[node[1]] = made
        return made

    def exec_module(self, module: Module) -> None:
        """Nothing: it was run in the host."""
