"""Changes the source of hidden tests so that they hold against the code they test.

* The body of each test runs inside ``WATCH[n]``, its constants come from ``VAULT[n]`` (`evidence`).
* Both sides of each comparison whose truth matters go through ``LEFT`` and ``RIGHT``
  (`comparisons`): in ``assert``, in conditions, and in the arguments of ``assertEqual`` and the
  like. So do both sides of ``a - b`` where the difference is asserted, or its size taken.
* Before and after ``from x import *`` the module asks for ``STAR[n]`` (`borrowed`).
* A canary is planted: a test that must fail.

Line numbers stay as they are. The names are no identifiers, so that no module can use them by
accident; in the bytecode objects stand in their place, so that no namespace holds them.
"""

from __future__ import annotations

import ast
import random
import sys
import warnings
from types import CodeType
from typing import TYPE_CHECKING

from assay.graders.testing.inside.evidence import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    _Function = ast.FunctionDef | ast.AsyncFunctionDef

LEFT, RIGHT, ORDER, WITHIN = "_@left", "_@right", "_@order", "_@within"
NEAR, STAR = "_@near", "_@star"
WATCH, VAULT = "_@watch", "_@vault"

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

_EQUALITIES = (ast.Eq, ast.NotEq)
_MEMBERSHIPS = (ast.In, ast.NotIn)
_IDENTITIES = (ast.Is, ast.IsNot)
_SIZES = frozenset({"abs", "fabs", "absolute", "round", "isclose", "allclose", "norm"})
_TRUTHS = frozenset({"assertTrue", "assertFalse", "all", "any", "bool", "sum", "assert_", "failIf"})
_EQUAL = """
    assertEqual assertEquals assertNotEqual assertAlmostEqual assertNotAlmostEqual
    assertMultiLineEqual assertSequenceEqual assertListEqual assertTupleEqual assertSetEqual
    assertDictEqual assertCountEqual assertItemsEqual eq_ assert_equal assert_almost_equal
    assert_array_equal assert_array_almost_equal assert_allclose assert_frame_equal
    assert_series_equal assert_index_equal
"""
_ORDERED = "assertGreater assertGreaterEqual assertLess assertLessEqual"
_ASSERTIONS = {
    **dict.fromkeys(_EQUAL.split(), RIGHT),
    **dict.fromkeys(_ORDERED.split(), ORDER),
    "assertIn": WITHIN,
    "assertNotIn": WITHIN,
}
_TRANSPARENT = (
    "pytest.mark.",
    "mark.",
    "mock.patch",
    "unittest.mock.patch",
    "patch",
    "unittest.skip",
    "skip",
    "staticmethod",
    "parametrize",
)


def strengthen(
    tree: ast.Module, path: str, ledger: Ledger, put: Callable[[object], int] | None
) -> None:
    """Change the parsed source of a hidden module in place.

    Args:
        tree: The module.
        path: Of its file.
        ledger: Takes its tests.
        put: Takes a constant of its tests, and returns its number; None: they stay where they are.
    """
    _Strengthen(path, ledger, put).run(tree)


def plant(tree: ast.Module, name: str, planted: str) -> None:
    """Add a canary at the end of a parsed module: a test that fails with a planted value.

    It is to be planted before the module is strengthened, so as to run like every other test.
    """
    source = f"def {name}(*_): assert {planted!r} == {planted + '~'!r}, {'planted ' + planted!r}"
    line = max((getattr(node, "lineno", 1) for node in tree.body), default=1)
    function = ast.parse(source).body[0]
    ast.increment_lineno(function, line - 1)
    tree.body.append(function)


def compile_with(tree: ast.Module, path: str, witnesses: Mapping[str, object]) -> CodeType:
    """Compile a changed module.

    Args:
        tree: The module.
        path: Of its file.
        witnesses: What the names of ours stand for. The objects become constants of the code:
            nobody can put others in their place without replacing the code.
    """
    numbers = {name: random.getrandbits(120) for name in witnesses}
    _Number(numbers).visit(tree)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that numbers cannot be subscribed
        code = compile(tree, path, "exec", dont_inherit=True)
    return _fill_in(code, {numbers[name]: witness for name, witness in witnesses.items()})


def _fill_in(code: CodeType, witnesses: Mapping[int, object]) -> CodeType:
    constants: list[object] = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            constants.append(_fill_in(constant, witnesses))
        elif type(constant) is int:
            constants.append(witnesses.get(constant, constant))
        else:
            constants.append(constant)
    return code.replace(co_consts=tuple(constants))


class _Number(ast.NodeTransformer):
    """Puts numbers in the place of names."""

    def __init__(self, numbers: Mapping[str, int]) -> None:
        self._numbers = numbers

    def visit_Name(self, node: ast.Name) -> ast.expr:
        number = self._numbers.get(node.id)
        return node if number is None else ast.copy_location(_index(number), node)


class _Strengthen(ast.NodeTransformer):
    def __init__(self, path: str, ledger: Ledger, put: Callable[[object], int] | None) -> None:
        self._path = path
        self._ledger = ledger
        self._put = put
        self._classes: list[str] = []
        self._depth = 0
        self._stars = 0

    def run(self, tree: ast.Module) -> None:
        self.visit(tree)
        ast.fix_missing_locations(tree)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._classes.append(node.name)
        self.generic_visit(node)
        self._classes.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def _function(self, node: _Function) -> _Function:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        if self._depth == 0 and node.name.startswith("test") and not _is_generator(node):
            self._watch(node, ".".join([*self._classes, node.name]))
        return node

    def _watch(self, node: _Function, name: str) -> None:
        start = 1 if ast.get_docstring(node, clean=False) is not None else 0
        body: list[ast.stmt] = node.body[start:]
        if self._put:
            hider = _Hide(self._put)
            body = [hider.visit(statement) for statement in body]
        if not body:
            return
        clean = all(map(_is_transparent, node.decorator_list))
        line = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        index = self._ledger.add(self._path, name, line, clean=clean)
        watched = ast.With(
            items=[ast.withitem(context_expr=_item(WATCH, _index(index)), optional_vars=None)],
            body=body,
        )
        watched.type_comment = None
        node.body[start:] = [ast.copy_location(watched, body[0])]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.AST]:
        if node.names[0].name != "*":
            return node
        number, self._stars = self._stars, self._stars + 1
        before, after = (
            ast.copy_location(ast.Expr(value=_item(STAR, _index(2 * number + late))), node)
            for late in (0, 1)
        )
        return [before, node, after]

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        node.test = _truth(_NEARNESS.visit(node.test))
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        return self._condition(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._condition(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._condition(node)

    def _condition(self, node: ast.If | ast.While | ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        node.test = _truth(node.test)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.ifs = [_truth(condition) for condition in node.ifs]
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = _dotted(node.func).rpartition(".")[2]
        if name in _SIZES or name.startswith("assert"):
            node.args = [_NEARNESS.visit(argument) for argument in node.args]
        if name in _TRUTHS and node.args:
            node.args[0] = _truth(node.args[0])
        elif name in _ASSERTIONS:
            _wrap_arguments(node, _ASSERTIONS[name])
        return node


class _Nearness(ast.NodeTransformer):
    """Wraps both sides of each difference."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Sub) and not _is_wrapped(node.right):
            node.left, node.right = _item(LEFT, node.left), _item(NEAR, node.right)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node


_NEARNESS = _Nearness()


class _Hide(ast.NodeTransformer):
    """Moves the constants of a test's body into the vault."""

    def __init__(self, put: Callable[[object], int]) -> None:
        self._put = put

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if node.value is None or node.value is Ellipsis:
            return node
        return ast.copy_location(_item(VAULT, _index(self._put(node.value))), node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        # Literals of patterns, f-strings and functions handed on must stay what they are.
        kind = type(node).__name__
        if kind in ("JoinedStr", "TemplateStr", "Lambda", "ClassDef", "TypeAlias"):
            return node
        if isinstance(node, _FUNCTIONS) or (kind.startswith("Match") and kind != "Match"):
            return node
        if isinstance(node, ast.AnnAssign):
            node.value = self.visit(node.value) if node.value else None
            return node
        return super().generic_visit(node)


def _truth(node: ast.expr) -> ast.expr:
    """Wrap the comparisons that decide whether an expression is true."""
    if isinstance(node, ast.Compare):
        return _wrap_compare(node)
    if isinstance(node, ast.BoolOp):
        node.values = [_truth(value) for value in node.values]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node.operand = _truth(node.operand)
    elif isinstance(node, ast.NamedExpr):
        node.value = _truth(node.value)
    elif isinstance(node, (ast.GeneratorExp, ast.ListComp, ast.SetComp)):
        node.elt = _truth(node.elt)
    elif isinstance(node, (ast.List, ast.Tuple)):
        node.elts = [_truth(value) for value in node.elts]
    return node


def _wrap_compare(node: ast.Compare) -> ast.expr:
    if isinstance(node.ops[0], _IDENTITIES):
        node.left = _truth(node.left)  # (a == b) is True
        return node
    if _is_bool(node.comparators[0]):
        node.left = _truth(node.left)  # (a == b) == True
    node.left = _item(LEFT, node.left)
    for index, operation in enumerate(node.ops):
        name = ORDER
        if isinstance(operation, _EQUALITIES):
            name = RIGHT
        elif isinstance(operation, _MEMBERSHIPS):
            name = WITHIN
        elif isinstance(operation, _IDENTITIES):
            continue
        node.comparators[index] = _item(name, node.comparators[index])
    return node


def _wrap_arguments(node: ast.Call, wrapper: str) -> None:
    """Wrap the two first arguments of an assertion method or function."""
    if any(isinstance(argument, ast.Starred) for argument in node.args[:2]):
        return
    if len(node.args) >= 2:
        node.args[0] = _item(LEFT, node.args[0])
        node.args[1] = _item(wrapper, node.args[1])
        return
    node.args[:1] = [_item(RIGHT, argument) for argument in node.args[:1]]
    for keyword in node.keywords:
        if keyword.arg in ("first", "second", "actual", "desired", "left", "right"):
            keyword.value = _item(RIGHT, keyword.value)


def _item(name: str, value: ast.expr) -> ast.expr:
    """The expression ``name[value]``."""
    index = value if sys.version_info >= (3, 9) else ast.Index(value=value)
    item = ast.Subscript(value=ast.Name(id=name, ctx=ast.Load()), slice=index, ctx=ast.Load())
    if hasattr(value, "lineno"):
        ast.copy_location(item, value)
        ast.copy_location(item.value, value)
    return item


def _is_wrapped(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == NEAR
    )


def _index(number: int) -> ast.expr:
    return ast.Constant(value=number, kind=None)


def _is_bool(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def _is_generator(function: _Function) -> bool:
    """Whether a function yields: then its caller, not it, decides when its body ends."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (*_FUNCTIONS, ast.Lambda)):
            pending.extend(ast.iter_child_nodes(node))
    return False


def _is_transparent(decorator: ast.expr) -> bool:
    """Whether a decorator lets the exceptions of its function through."""
    name = _dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
    return name.startswith(_TRANSPARENT)


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    current: ast.expr = node
    while isinstance(current, ast.Attribute):
        parts.append(current.attr)
        current = current.value
    parts.append(current.id if isinstance(current, ast.Name) else "")
    return ".".join(reversed(parts))


def imports_of(tree: ast.Module) -> Sequence[str]:
    """The packages that a module imports, and ``ANY`` if it speaks of that name."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name.partition(".")[0] for alias in node.names]
            named: tuple[str | None, ...] = ()
        elif isinstance(node, ast.ImportFrom):
            found.append((node.module or "").partition(".")[0])
            named = tuple(alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute):
            named = (node.attr,)
        else:
            continue
        if "ANY" in named:
            found.append("ANY")
    return found
