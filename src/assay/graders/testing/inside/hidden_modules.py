"""Serves the hidden sources to the import system from memory; their files on disk are empty.

The author's tests that lie in the workspace are served, too, with the same check of equalities,
which catches objects that answer every comparison with "equal". A hidden test that says
``assert add(2, 3) == 5`` asks the submission's own object whether it equals 5. So each side of an
equality in a test goes through ``_@checked[...]``, which asks an object of the submission whether
it also equals an object made for this one question. No honest value does.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from types import CodeType
from typing import TYPE_CHECKING, NoReturn, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from types import ModuleType

    RewriteAsserts = Callable[[ast.Module, bytes, str], None]
    Spec = importlib.machinery.ModuleSpec


CHECKED = "_@checked"
"""The name of the check in a test module: no identifier, so nothing uses it by accident."""

_ASKING = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
_EQUAL = """
    assertEqual assertEquals assertAlmostEqual assertMultiLineEqual assertSequenceEqual
    assertListEqual assertTupleEqual assertSetEqual assertDictEqual assertCountEqual assertIn
    eq_ assert_equal assert_almost_equal assert_array_equal assert_allclose
"""
_ASSERTIONS = frozenset(_EQUAL.split())
_CONTAINERS = (list, tuple, set, frozenset)
_PLAIN = frozenset({int, float, complex, str, bytes, bool, type(None), *_CONTAINERS, dict})


class DishonestAnswerError(AssertionError):
    """An object of the submission claims to be equal to everything."""


def check_equalities(tree: ast.Module) -> None:
    """Send both sides of each equality in a parsed test module through the check."""
    _Check().visit(tree)


class _Check(ast.NodeTransformer):
    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if any(isinstance(one, _ASKING) for one in node.ops):
            node.left = _checked(node.left)
            node.comparators = [_checked(one) for one in node.comparators]
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in _ASSERTIONS:
            node.args[:2] = [_checked(one) for one in node.args[:2]]
        return node


def _checked(value: ast.expr) -> ast.expr:
    if isinstance(value, (ast.Constant, ast.Starred)):
        return value
    index = value if sys.version_info >= (3, 9) else ast.Index(value=value)
    check = ast.copy_location(ast.Name(id=CHECKED, ctx=ast.Load()), value)
    return ast.copy_location(ast.Subscript(value=check, slice=index, ctx=ast.Load()), value)


class EqualityCheck:
    """What ``_@checked`` is: its items are the values it was asked for, once checked."""

    def __init__(
        self,
        is_trusted: Callable[[str], bool],
        loose: Collection[str],
        report: Callable[[str], None],
    ) -> None:
        self._is_trusted = is_trusted
        self._loose = frozenset(loose)
        self._report = report
        self.allows_any = False
        self._known: dict[object, bool] = {}

    def __getitem__(self, value: object) -> object:
        """The value itself.

        Raises `DishonestAnswerError` if it would have been equal to anything.
        """
        __tracebackhide__ = True
        for one in _parts(value):
            self._ask(one)
        return value

    def _ask(self, value: object) -> None:
        __tracebackhide__ = True
        kind = type(value)
        # `__eq__` may be replaced while tests run, so it, and not the class, is what is known.
        answer = getattr(kind, "__eq__", None)
        code = getattr(answer, "__code__", None)
        is_any = kind.__module__ == "unittest.mock" and kind.__name__ == "_ANY"
        if code is None or (self.allows_any if is_any else self._is_free(kind, code)):
            return
        try:
            told: object = value == object()
        except Exception:
            return
        # An expression of some query language is true, too, but no answer.
        if told is True or (type(told) is int and told):
            text = f"answers equal to everything: {kind.__module__}.{kind.__qualname__}"
            self._report(text)
            raise DishonestAnswerError(f"an object of the submission {text}")

    def _is_free(self, kind: type, code: object) -> bool:
        known = self._known.get(code)
        if known is None:
            path = cast("str", getattr(code, "co_filename", ""))
            # What is made of a string, such as a dataclass's own, has no file.
            known = self._known[code] = path.startswith(os.sep) and self._is_trusted(path)
        return known or f"{kind.__module__}.{kind.__qualname__}" in self._loose


def _parts(value: object) -> Collection[object]:
    """A value, or what a plain container holds, as far as anything in it answers for itself."""
    kind = type(value)
    if kind is dict:
        value = list(cast("dict[object, object]", value).values())
    elif kind not in _CONTAINERS:
        return (value,)
    parts = cast("Collection[object]", value)
    return () if _PLAIN.issuperset(map(type, parts)) else parts


class Compiler:
    """Compiles tests so that they explain their assertions and check what they compare.

    ``rewrite``: Makes assertions explain themselves; the runner's own way, if it has one.
    """

    def __init__(self, check: EqualityCheck, rewrite: RewriteAsserts | None) -> None:
        self._check = check
        self._rewrite = rewrite
        self._compiled: dict[str, CodeType] = {}

    def defines(self, path: str, names: Sequence[str]) -> bool:
        """Whether a compiled file has a definition by these names, each within the one before."""
        found = [self._compiled[path]] if path in self._compiled else []
        for name in names:
            found = [
                one
                for code in found
                for one in code.co_consts
                if isinstance(one, CodeType) and one.co_name == name
            ]
        return bool(found)

    def compile(self, source: str | bytes, path: str) -> CodeType | SyntaxError:
        """Compile a source; an error is kept until somebody imports it."""
        try:
            tree = ast.parse(source, path)
            if "ANY" in source if isinstance(source, str) else b"ANY" in source:
                self._check.allows_any = True
            if self._rewrite:
                self._rewrite(tree, b"", path)
            check_equalities(tree)
            code = compile(tree, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError) as error:
            return error if isinstance(error, SyntaxError) else SyntaxError(f"{path}: {error}")
        self._compiled[path] = code
        return code

    def execute(self, code: CodeType, space: dict[str, object]) -> None:
        """Run compiled code in a namespace."""
        space[CHECKED] = self._check
        exec(code, space)  # noqa: S102 - a test of the author's


class Finder(importlib.abc.MetaPathFinder):
    """Finds what the other finders find, and loads it from memory if it is hidden."""

    def __init__(self, sources: Mapping[str, str], root: str, compiler: Compiler) -> None:
        self._compiler = compiler
        self._root = root + os.sep
        self._hidden = {path: compiler.compile(text, path) for path, text in sources.items()}
        self._names = frozenset(map(_module_name, sources))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> Spec | None:
        """The spec of a hidden or given test module, None for every other."""
        last = fullname.rpartition(".")[2]
        if last not in self._names and not is_test_name(last):
            return None
        for finder in self._others():
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                return self._ours(fullname, spec)
        return self._below(fullname, path or ())

    def _below(self, fullname: str, path: Sequence[str]) -> Spec | None:
        """The spec of a module whose packages are below a directory of the path.

        So pytest asks in the mode ``importlib``, before it loads the file itself.
        """
        steps = fullname.replace(".", os.sep)
        for base in path:
            places = [f"{base}{os.sep}{steps}.py", os.path.join(base, steps, "__init__.py")]  # noqa: PTH118 - no pathlib yet
            if base.endswith(os.sep + steps):
                places.append(f"{base}{os.sep}__init__.py")
            for place in places:
                if os.path.isfile(place):  # noqa: PTH113 - no pathlib yet
                    spec = importlib.util.spec_from_file_location(fullname, place)
                    return self._ours(fullname, spec) if spec else None
        return None

    def _others(self) -> list[importlib.abc.MetaPathFinder]:
        # pytest's own finder would compile the empty file.
        return [
            cast("importlib.abc.MetaPathFinder", one)
            for one in sys.meta_path
            if one is not self
            and type(one).__name__ != "AssertionRewritingHook"
            and hasattr(one, "find_spec")
        ]

    def _ours(self, fullname: str, spec: Spec) -> Spec | None:
        real = os.path.realpath(spec.origin) if spec.origin and spec.has_location else ""
        given = real.startswith(self._root) and real.endswith(".py") and "site-packages" not in real
        if real not in self._hidden and not given:
            return None
        origin = str(spec.origin)
        loader = _Loader(fullname, origin, self._hidden.get(real), self._compiler)
        found = importlib.machinery.ModuleSpec(fullname, loader, origin=origin)
        found.submodule_search_locations = spec.submodule_search_locations
        found.has_location = True
        return found


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads one test module. A hidden one has no source to give away."""

    def __init__(
        self, fullname: str, path: str, hidden: CodeType | SyntaxError | None, compiler: Compiler
    ) -> None:
        super().__init__(fullname, path)
        self._hidden = hidden
        self._compiler = compiler

    def exec_module(self, module: ModuleType) -> None:
        """Run the module."""
        code = self._hidden or self._compiler.compile(self.get_data(self.path), self.path)
        if not isinstance(code, CodeType):
            raise SyntaxError(*code.args)  # noqa: TRY004 - the one that was met before
        self._compiler.execute(code, vars(module))

    def get_code(self, fullname: str) -> CodeType | None:
        """The code, unless it is hidden."""
        return self._refuse(fullname) if self._hidden else super().get_code(fullname)

    def get_source(self, fullname: str) -> str | None:
        """The source, unless it is hidden."""
        return self._refuse(fullname) if self._hidden else super().get_source(fullname)

    def _refuse(self, fullname: str) -> NoReturn:
        raise ImportError(f"the source of {fullname} is not given out", name=fullname)


def is_test_name(module: str) -> bool:
    """Whether a module has the name of a test, after the last dot of its own."""
    return module.startswith("test_") or module.endswith("_test")


def _module_name(path: str) -> str:
    directory, name = os.path.split(path)
    stem = name[: -len(".py")]
    return directory.rpartition(os.sep)[2] if stem == "__init__" else stem
