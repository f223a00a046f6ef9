"""Which tests a hidden Python file holds, read from its source without running it.

Known before any code of the submission runs, so that a test which is never heard of is missed, and
one that the submission slipped in (``from solution import *``) is not counted.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from assay.frozen import frozen
from assay.graders.stubs.python import parse_python

_DYNAMIC = frozenset({"globals", "locals", "setattr", "exec", "eval", "load_tests"})
"""Names whose use means that tests may be made while the file is loaded."""

_SKIPPING = frozenset({"skip", "skipif", "skipIf", "skipUnless", "xfail", "expectedFailure"})
_DEEPEST = 5
_MOST = 1_000_000
_AS_LONG = frozenset({"list", "tuple", "sorted", "reversed", "enumerate"})
_VIEWS = frozenset({"items", "keys", "values"})
_NO_DOCTESTS = frozenset({"conftest", "setup", "__main__", ""})
_KEEPING = frozenset({"property", "staticmethod", "classmethod"})
_PLAIN_BASES = frozenset({"object", "ABC", "Generic", "Protocol", "type"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class PythonTests:
    """The tests of one file, by name within it: ``test_a`` or ``TestB::test_c``."""

    # Tests that must be heard of.
    required: list[str] = field(default_factory=list[str])
    cases: set[str] = field(default_factory=set[str])
    possible: set[str] = field(default_factory=set[str])
    open_names: set[str] = field(default_factory=set[str])
    open: bool = False
    skips: dict[str, bool] = field(default_factory=dict[str, bool])
    # Doctests that must be heard of where doctests are run.
    doctests: list[str] = field(default_factory=list[str])
    variants: dict[str, int] = field(default_factory=dict[str, int])

    def declares(self, name: str) -> bool:
        """Whether the source names a test, and does not only make it."""
        return name in self.possible or name in self.required or name in self.open_names

    def knows(self, name: str) -> bool:
        """Whether a test heard of may be one of the author's."""
        if self.open or name in self.possible or name in self.required:
            return True
        return name.partition("::")[0] in self.open_names


@frozen
class _Module:
    path: str
    tree: ast.Module
    classes: Mapping[str, ast.ClassDef]
    imported: frozenset[str]
    fixtures: Mapping[str, _Function]

    def sees(self, other: _Module, name: str) -> bool:
        """Whether pytest would find a fixture of another file's here."""
        above = PurePosixPath(other.path).parent
        is_above = PurePosixPath(other.path).name == "conftest.py" and (
            above in PurePosixPath(self.path).parents
        )
        return other is self or is_above or name in self.imported


def read_python_tests(files: Mapping[str, str]) -> dict[str, PythonTests]:
    """Read the tests of hidden files that belong together."""
    modules: dict[str, _Module] = {}
    found: dict[str, PythonTests] = {}
    for path, text in files.items():
        found[path] = PythonTests(open=True)
        tree = parse_python(text)
        if isinstance(tree, str):
            continue
        classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        functions = (node for node in ast.walk(tree) if isinstance(node, _Function))
        fixtures = {node.name: node for node in functions if _is_fixture(node)}
        modules[path] = _Module(path, tree, classes, frozenset(_imported(tree)), fixtures)
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
        self._values = dict(_assigned(module.tree))
        self._stdlib = frozenset(_stdlib_imports(module.tree))
        self._tests = PythonTests(open=any(_is_dynamic(node) for node in ast.walk(module.tree)))
        self._tests.open_names.update(module.imported)

    def read(self) -> PythonTests:
        self._body(self._module.tree.body, [*_marks(self._module.tree)], sure=True)
        place = PurePosixPath(self._module.path)
        name = place.parent.name if place.stem == "__init__" else place.stem
        if name not in _NO_DOCTESTS:
            self._doctests(self._module.tree, name, sure=True)
        return self._tests

    def _doctests(
        self, node: ast.Module | ast.ClassDef | _Function, name: str, *, sure: bool
    ) -> None:
        """The doctests of a docstring and of those inside, by the names that pytest gives them."""
        skipped = _skipped_examples(ast.get_docstring(node, clean=False) or "")
        if skipped:
            self._tests.possible.add(name)
            if all(skipped):
                self._tests.skips.setdefault(name, True)
            elif sure:
                self._tests.doctests.append(name)
        for inner in () if isinstance(node, _Function) else node.body:
            if isinstance(inner, ast.ClassDef | _Function):
                kept = all(last_name(one) in _KEEPING for one in inner.decorator_list)
                self._doctests(inner, f"{name}.{inner.name}", sure=sure and kept)

    def _body(self, body: Sequence[ast.stmt], marks: list[ast.expr], *, sure: bool) -> None:
        for node in body:
            if isinstance(node, _Function):
                if node.name.startswith("test") and not _is_fixture(node):
                    self._add(node.name, node, marks, sure=sure)
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
        marks += [mark for one in lineage for mark in _marks(one)]
        names: dict[str, _Function] = {}
        for one in lineage:
            for item in one.body:
                if isinstance(item, _Function) and item.name.startswith("test"):
                    names.setdefault(item.name, item)
                elif isinstance(item, ast.ClassDef):
                    self._tests.open_names.add(node.name)
        for name, function in names.items():
            full = f"{node.name}::{name}"
            self._add(full, function, marks, sure=sure)
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

    def _add(
        self, name: str, function: _Function, marks: Sequence[ast.expr], *, sure: bool
    ) -> None:
        marks = [self._resolved(mark) for mark in (*marks, *function.decorator_list)]
        skips = [one for one in map(self._skips, marks) if one is not None]
        if sure and True not in skips:
            self._tests.required.append(name)
        else:
            self._tests.possible.add(name)
        if skips:
            self._tests.skips[name] = any(skips)
        if (variants := self._variants(function, marks)) > 1:
            self._tests.variants[name] = variants

    def _variants(self, test: _Function, marks: Sequence[ast.expr]) -> int:
        """How many variants the source itself gives a test; what it does not say counts once."""
        total, given = 1, set[str]()
        wanted = [*_arguments(test), *self._autouse()]
        for mark in marks:
            word = last_name(mark.func) if isinstance(mark, ast.Call) else ""
            if word == "usefixtures":
                wanted += [name for one in _given(mark) for name in _words(one)]
            elif word == "parametrize":
                given.update(name for one in _given(mark, 0, "argnames") for name in _words(one))
                total *= self._product(_given(mark, 1, "argvalues"))
        seen: set[str] = set()
        while wanted:
            name = wanted.pop()
            fixture = None if name in seen else self._fixture(name)
            seen.add(name)
            if fixture is not None:
                wanted += _arguments(fixture)
                if name not in given:
                    params = [_given(one, -1, "params") for one in fixture.decorator_list]
                    total *= self._product([node for one in params for node in one])
        return total

    def _product(self, lists: Sequence[ast.expr]) -> int:
        """Of how many entries lists are; of one that is not literal, or empty, one."""
        total = 1
        for one in lists:
            total *= self._length(one) or 1
        return total

    def _length(self, node: ast.expr, depth: int = 0) -> int | None:
        """How many entries an expression has, where the file itself says so."""
        node = self._resolved(node)
        deeper = depth + 1
        parts: list[int | None] = []
        if depth > _DEEPEST:
            return None
        match node:
            case ast.List() | ast.Tuple():
                for one in node.elts:
                    starred = isinstance(one, ast.Starred)
                    parts.append(self._length(one.value, deeper) if starred else 1)
            case ast.Dict():
                parts += [1 if key else None for key in node.keys]
            case ast.BinOp(left, ast.Add(), right):
                parts += [self._length(left, deeper), self._length(right, deeper)]
            case ast.ListComp(generators=[ast.comprehension(iter=given, ifs=[])]):
                parts.append(self._length(given, deeper))
            case ast.Call(ast.Name("range"), args, []):
                numbers = [one.value for one in args if isinstance(one, ast.Constant)]
                whole = [one for one in numbers if type(one) is int and one < _MOST]
                is_literal = 0 < len(whole) == len(args) <= 3 and 0 not in whole[2:]
                parts.append(len(range(*whole)) if is_literal else None)
            case ast.Call(ast.Name(name), [given, *_]) if name in _AS_LONG:
                parts.append(self._length(given, deeper))
            case ast.Call(ast.Attribute(given, name), []) if name in _VIEWS:
                parts.append(self._length(given, deeper))
            case _:
                return None
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None

    def _fixture(self, name: str) -> _Function | None:
        """The fixture of a name, the nearest of those that pytest would find."""
        near = (
            one for one in self._near() if name in one.fixtures and self._module.sees(one, name)
        )
        return next((one.fixtures[name] for one in near), None)

    def _autouse(self) -> Iterator[str]:
        for module in self._near():
            for name, node in module.fixtures.items():
                uses = [one for mark in node.decorator_list for one in _given(mark, -1, "autouse")]
                if uses and self._module.sees(module, ""):
                    yield name

    def _near(self) -> Iterator[_Module]:
        """All files, this one first, those in directories near to it before others."""
        yield self._module
        yield from sorted(
            (one for one in self._modules.values() if one is not self._module),
            key=lambda one: -len(PurePosixPath(one.path).parts),
        )

    def _skips(self, mark: ast.expr) -> bool | None:
        """Whether a mark leaves its test out: always, sometimes, or (None) never."""
        mark = self._resolved(mark)
        call = mark if isinstance(mark, ast.Call) else None
        word = last_name(call.func if call else mark)
        if word not in _SKIPPING:
            return self._skips_some(call) if call and word == "parametrize" else None
        given = (
            [*call.args, *(k.value for k in call.keywords if k.arg == "condition")] if call else []
        )
        if word == "skip" or (word in ("xfail", "expectedFailure") and not given):
            return True
        return False if given and self._is_plain(given[0]) else None

    def _skips_some(self, call: ast.Call) -> bool | None:
        """Whether marks leave out some of a test's parameters."""
        given = [self._resolved(one) for one in _given(call, 1, "argvalues")]
        nodes = [node for one in given for node in ast.walk(one) if isinstance(node, ast.expr)]
        some = any(isinstance(node, ast.Call) and self._has_skip(node) for node in nodes)
        # pytest makes one variant of no parameters, and skips it.
        empty = any(isinstance(one, ast.List | ast.Tuple) and not one.elts for one in given)
        return False if some or empty else None

    def _has_skip(self, param: ast.Call) -> bool:
        marks = [self._resolved(one.value) for one in param.keywords if one.arg == "marks"]
        return any(self._skips(one) is not None for one in _listed(marks))

    def _resolved(self, node: ast.expr) -> ast.expr:
        """What a name stands for, where the file says so once and for all."""
        for _ in range(_DEEPEST):
            if not isinstance(node, ast.Name) or node.id not in self._values:
                break
            node = self._values[node.id]
        return node

    def _is_plain(self, condition: ast.expr) -> bool:
        """Whether a condition asks nothing but the standard library, so no submission."""
        if isinstance(condition, ast.Constant) and isinstance(condition.value, str):
            try:
                condition = ast.parse(condition.value, mode="eval").body
            except (SyntaxError, ValueError):
                return False
        names = {node.id for node in ast.walk(condition) if isinstance(node, ast.Name)}
        return names <= self._stdlib


def _marks(node: ast.Module | ast.ClassDef) -> Iterator[ast.expr]:
    """What ``pytestmark`` holds in a file or a class."""
    for item in node.body:
        if isinstance(item, ast.Assign) and any(
            isinstance(one, ast.Name) and one.id == "pytestmark" for one in item.targets
        ):
            yield from _listed([item.value])


def _arguments(function: _Function) -> list[str]:
    return [one.arg for one in (*function.args.args, *function.args.kwonlyargs)]


def _given(call: ast.expr, place: int | None = None, name: str = "") -> list[ast.expr]:
    """The argument of a call that stands at a place or has a name; without a place, all of them."""
    if not isinstance(call, ast.Call):
        return []
    at = call.args if place is None else call.args[place : place + 1] if place >= 0 else []
    return [*at, *(one.value for one in call.keywords if one.arg == name)]


def _words(node: ast.expr) -> list[str]:
    """Names in a string, or in a list of strings."""
    texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
    return [word.strip() for one in texts if isinstance(one, str) for word in one.split(",")]


def last_name(node: ast.expr) -> str:
    """The last step of a dotted name; empty for what is not a name."""
    if isinstance(node, ast.Subscript):
        return last_name(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """What names stand for, where the file says so once and for all."""
    stored = [
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del)
    ]
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for node in (item for place in (tree, *classes) for item in place.body):
        match node:
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(
                ast.Name(name), value=ast.expr() as value
            ) if stored.count(name) == 1:
                yield name, value
            case _:
                pass


def _stdlib_imports(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        for alias in node.names if isinstance(node, ast.Import) else ():
            if alias.asname is None and alias.name in sys.stdlib_module_names:
                yield alias.name


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


def _skipped_examples(text: str) -> list[bool]:
    """Of each example of a docstring, whether it is left out."""
    if ">>>" not in text:  # most have none, and the parser takes long to import
        return []
    import doctest

    try:
        examples = doctest.DocTestParser().get_examples(text)
    except ValueError:  # malformed, which doctest will say
        return []
    return [bool(one.options.get(doctest.SKIP, False)) for one in examples]


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
