"""Which tests a hidden Python file holds, read from its source without running it.

Known before any code of the submission runs, so that a test which is never heard of is missed, and
one that the submission slipped in (``from solution import *``) is not counted.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from assay.graders.testing.doctest_ids import read_doctests
from assay.graders.testing.skip_marks import Marks, last_name

__all__ = ["PythonTests", "read_python_tests"]

_DYNAMIC = frozenset({"globals", "locals", "setattr", "exec", "eval", "load_tests"})
"""Names whose use means that tests may be made while the file is loaded."""

_PLAIN_BASES = frozenset({"object", "ABC", "Generic", "Protocol", "type"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class PythonTests:
    """The tests of one file, by name within it: ``test_a`` or ``TestB::test_c``.

    Attributes:
        required: Tests that must be heard of.
        cases: Those of them that unittest finds too.
        possible: Further tests that may be heard of, such as those defined under an ``if``.
        open_names: Functions and classes about which the source says too little: whatever is heard
            of them counts.
        open: Whether that holds for the whole file.
        skips: Conditions, as Python expressions, under each of which the author skips a test.
        variants: Such conditions of the single variants of a parametrized test, in pytest's order.
        doctests: Doctests that must be heard of where doctests are run.
    """

    required: list[str] = field(default_factory=list[str])
    cases: set[str] = field(default_factory=set[str])
    possible: set[str] = field(default_factory=set[str])
    open_names: set[str] = field(default_factory=set[str])
    open: bool = False
    skips: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    variants: dict[str, list[tuple[str, ...]]] = field(
        default_factory=dict[str, list[tuple[str, ...]]]
    )
    doctests: list[str] = field(default_factory=list[str])

    def knows(self, name: str) -> bool:
        """Whether a test heard of may be one of the author's."""
        if self.open or name in self.possible or name in self.required:
            return True
        return name.partition("::")[0] in self.open_names


@dataclass(frozen=True, slots=True)
class _Module:
    path: str
    tree: ast.Module
    classes: Mapping[str, ast.ClassDef]
    imported: frozenset[str]


def read_python_tests(files: Mapping[str, str]) -> dict[str, PythonTests]:
    """Read the tests of hidden files that belong together.

    Args:
        files: Source by path in the workspace, helpers and ``conftest.py`` included.

    Returns:
        The tests by path. A source that this Python cannot parse is open.
    """
    modules: dict[str, _Module] = {}
    found: dict[str, PythonTests] = {}
    for path, text in files.items():
        found[path] = PythonTests(open=True)
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            continue
        classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        modules[path] = _Module(path, tree, classes, frozenset(_imported(tree)))
    for path, module in modules.items():
        found[path] = _Reader(module, modules).read()
    return found


def _imported(tree: ast.Module) -> Iterator[str]:
    """Names that a file imports one by one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names if alias.name != "*")


class _Reader:
    def __init__(self, module: _Module, modules: Mapping[str, _Module]) -> None:
        self._module = module
        self._modules = modules
        self._marks = Marks(module.tree)
        self._tests = PythonTests(open=any(_is_dynamic(node) for node in ast.walk(module.tree)))
        self._tests.open_names.update(module.imported)

    def read(self) -> PythonTests:
        marks = [
            node.value
            for node in self._module.tree.body
            if isinstance(node, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets)
        ]
        self._body(self._module.tree.body, [*_listed(marks)], sure=True)
        for one in read_doctests(self._module.path, self._module.tree):
            self._tests.possible.add(one.name)
            if one.skipped:
                self._tests.skips.setdefault(one.name, ["True"])
            elif one.sure:
                self._tests.doctests.append(one.name)
        return self._tests

    def _body(self, body: Sequence[ast.stmt], marks: list[ast.expr], *, sure: bool) -> None:
        for node in body:
            if isinstance(node, _Function):
                if node.name.startswith("test") and not _is_fixture(node):
                    self._add(node.name, [*marks, *node.decorator_list], sure=sure)
            elif isinstance(node, ast.ClassDef):
                self._class(node, marks, sure=sure)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = {target.id for target in targets if isinstance(target, ast.Name)}
                self._tests.open_names.update(names)
            elif isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                self._star(node.module or "")
            elif isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
                for part in _blocks(node):
                    self._body(part, marks, sure=False)

    def _star(self, name: str) -> None:
        """A hidden helper's names are the author's; anybody else's are not."""
        last = name.rpartition(".")[2]
        for path in self._modules:
            if path != self._module.path and PurePosixPath(path).stem == last:
                self._tests.open = True

    def _class(self, node: ast.ClassDef, marks: list[ast.expr], *, sure: bool) -> None:
        lineage, known = self._lineage(node, set())
        is_case = any(_is_test_case(base) for one in lineage for base in one.bases)
        if not is_case and not node.name.startswith("Test"):
            if not known:
                self._tests.open_names.add(node.name)
            return
        if _says_no_test(node) or (not is_case and any(map(_has_init, lineage))):
            return
        if not known or node.keywords:
            self._tests.open_names.add(node.name)
        marks = [*marks, *(mark for one in lineage for mark in one.decorator_list)]
        names: dict[str, list[ast.expr]] = {}
        for one in lineage:
            for item in one.body:
                if isinstance(item, _Function) and item.name.startswith("test"):
                    names.setdefault(item.name, item.decorator_list)
                elif isinstance(item, ast.ClassDef):
                    self._tests.open_names.add(node.name)
        for name, decorators in names.items():
            full = f"{node.name}::{name}"
            self._add(full, [*marks, *decorators], sure=sure)
            if is_case:
                self._tests.cases.add(full)

    def _lineage(self, node: ast.ClassDef, seen: set[str]) -> tuple[list[ast.ClassDef], bool]:
        """A class and its bases in the hidden files; and whether those are all it has."""
        lineage, known = [node], True
        for base in node.bases:
            name = last_name(base)
            if _is_test_case(base) or name in _PLAIN_BASES:
                continue
            found = self._find(name) if name not in seen else None
            if found is None:
                known = False
                continue
            more, all_known = self._lineage(found, {*seen, name})
            lineage += more
            known = known and all_known
        return lineage, known

    def _find(self, name: str) -> ast.ClassDef | None:
        own = self._module.classes.get(name)
        if own is not None or name not in self._module.imported:
            return own
        others = (module.classes.get(name) for module in self._modules.values())
        return next((node for node in others if node is not None), None)

    def _add(self, name: str, marks: Sequence[ast.expr], *, sure: bool) -> None:
        conditions = self._marks.conditions(marks)
        if sure and "True" not in conditions:
            self._tests.required.append(name)
        else:
            self._tests.possible.add(name)
        if conditions:
            self._tests.skips[name] = conditions
        if variants := self._marks.variants(marks):
            self._tests.variants[name] = variants


def _listed(marks: Sequence[ast.expr]) -> Iterator[ast.expr]:
    for mark in marks:
        yield from mark.elts if isinstance(mark, ast.List | ast.Tuple) else (mark,)


def _blocks(node: ast.If | ast.Try | ast.With | ast.For | ast.While) -> Iterator[list[ast.stmt]]:
    yield node.body
    if not isinstance(node, ast.With):
        yield node.orelse
    if isinstance(node, ast.Try):
        yield node.finalbody
        yield from (handler.body for handler in node.handlers)


def _is_dynamic(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name == "load_tests"
    if not isinstance(node, ast.Call):
        return False
    name = last_name(node.func)
    return name in _DYNAMIC or (name == "type" and len(node.args) == 3)


def _is_test_case(base: ast.expr) -> bool:
    return last_name(base).endswith("TestCase")


def _is_fixture(node: _Function) -> bool:
    names = (last_name(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list)
    return any(name == "fixture" for name in names)


def _says_no_test(node: ast.ClassDef) -> bool:
    return any(
        isinstance(item, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == "__test__" for t in item.targets)
        and isinstance(item.value, ast.Constant)
        and item.value.value is False
        for item in node.body
    )


def _has_init(node: ast.ClassDef) -> bool:
    return any(isinstance(item, _Function) and item.name == "__init__" for item in node.body)
