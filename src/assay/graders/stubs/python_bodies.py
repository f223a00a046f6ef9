"""What the body of a Python function comes to."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from assay.graders.stubs import Body, Ending, body_with, is_for_subclasses, says_todo

_DEEPEST = 40
"""Blocks inside each other; a body that goes deeper is taken for real work."""

_EFFECTS = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
_LITERAL = (
    *(ast.Constant, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp),
    *(ast.unaryop, ast.operator, ast.boolop, ast.cmpop, ast.expr_context),
)
_EMPTY_CALLS = frozenset(
    {"list", "dict", "set", "tuple", "frozenset", "str", "bytes", "int", "float", "bool", "object"}
)
_TALK = frozenset({"print", "warn", "debug", "info", "warning", "error", "log", "exception"})


def is_idle(statement: ast.stmt) -> bool:
    """Whether a statement only names a value: a docstring, ``...``, a bare word."""
    return isinstance(statement, ast.Expr) and _pure(statement.value)


def without_idle(items: Iterable[object]) -> list[object]:
    """A list of a syntax tree without its idle statements and ``pass``."""
    return [
        item
        for item in items
        if not (isinstance(item, ast.Pass) or (isinstance(item, ast.stmt) and is_idle(item)))
    ]


def body_of(statements: Sequence[ast.stmt], *, is_method: bool) -> Body:
    """What the statements of a function come to."""
    return body_with(_ending(statements, set(), 0), is_method=is_method)


def lambda_body(node: ast.Lambda) -> Body:
    """What a lambda comes to."""
    return body_with(_returned(node.body, set()), is_method=False)


def _ending(statements: Sequence[ast.stmt], constants: set[str], depth: int) -> Ending:
    """How statements end; ``constants`` are the local names bound to constants so far."""
    if depth > _DEEPEST:
        return "real"
    for statement in statements:
        ending = _one(statement, constants, depth)
        if ending != "falls":
            return ending
    return "falls"


def _one(statement: ast.stmt, constants: set[str], depth: int) -> Ending:  # noqa: PLR0911 - a table of statements
    match statement:
        case ast.Return(value=value):
            return "nothing" if value is None else _returned(value, constants)
        case ast.Raise():
            return _raised(statement)
        case ast.Assert(test=ast.Constant(value=value)):
            return "falls" if value else "todo"
        case ast.Expr(value=value):
            return "falls" if _pure(value) or _talks_of_todo(value) else "real"
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            return _assigned(statement, constants)
        case ast.Delete(targets=targets):
            return "falls" if all(isinstance(t, ast.Name) for t in targets) else "real"
        case ast.If():
            return _branched(statement, constants, depth)
        case ast.While(test=ast.Constant(value=value), body=body) if value:
            ending = _ending(body, constants, depth + 1)
            return "real" if ending == "falls" else ending
        case ast.With(body=body) | ast.AsyncWith(body=body):
            ending = _ending(body, constants, depth + 1)
            return "real" if ending == "falls" else ending
        case ast.Try() | ast.TryStar():
            return _tried(statement, constants, depth)
        case (
            ast.Pass() | ast.Import() | ast.ImportFrom() | ast.Global() | ast.Nonlocal()
            | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef()
        ):  # fmt: skip
            return "falls"
        case _:
            return "real"


def _assigned(statement: ast.Assign | ast.AnnAssign | ast.AugAssign, constants: set[str]) -> Ending:
    """Local names bound to values without a call change nothing that anybody sees."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    value = statement.value
    names: list[str] = []
    for target in targets:
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        if not all(isinstance(part, ast.Name) for part in parts):
            return "real"
        names += [part.id for part in parts if isinstance(part, ast.Name)]
    if value is not None and not _pure(value):
        return "real"
    if value is None or _is_constant(value, constants):
        if not isinstance(statement, ast.AugAssign):
            constants.update(names)
    else:
        constants.difference_update(names)
    return "falls"


def _branched(statement: ast.If, constants: set[str], depth: int) -> Ending:
    if isinstance(statement.test, ast.Constant):
        chosen = statement.body if statement.test.value else statement.orelse
        return _ending(chosen, constants, depth + 1)
    if not _pure(statement.test):
        return "real"
    taken = _ending(statement.body, constants, depth + 1)
    other = _ending(statement.orelse, constants, depth + 1)
    return taken if taken == other and taken != "constant" else "real"


def _tried(statement: ast.Try | ast.TryStar, constants: set[str], depth: int) -> Ending:
    blocks = [statement.body, *(handler.body for handler in statement.handlers)]
    blocks += [statement.orelse, statement.finalbody]
    endings: list[Ending] = [_ending(block, constants, depth + 1) for block in blocks]
    if "real" in endings:
        return "real"
    if endings[-1] != "falls":
        return endings[-1]
    caught = endings[1:-2]
    if endings[0] in ("todo", "left", "declines", "raises") and caught:
        return caught[0]
    return endings[-2] if endings[0] == "falls" else endings[0]


def _returned(value: ast.expr, constants: set[str]) -> Ending:
    if isinstance(value, ast.Constant):
        if value.value is None or value.value is ...:
            return "nothing"
        return "todo" if isinstance(value.value, str) and says_todo(value.value) else "constant"
    if isinstance(value, ast.Name) and value.id == "NotImplementedError":
        return "todo"
    if isinstance(value, ast.Name) and value.id == "NotImplemented":
        return "constant"  # how an operator declines
    return "constant" if _is_constant(value, constants) else "real"


def _raised(statement: ast.Raise) -> Ending:
    raised = statement.exc
    if raised is None:
        return "raises"
    called = raised.func if isinstance(raised, ast.Call) else raised
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    words = [n.value for n in ast.walk(raised) if isinstance(n, ast.Constant)]
    said = [word for word in words if isinstance(word, str)]
    todo = name.startswith("NotImplemented") or any(map(says_todo, said))
    if not todo:
        return "raises"
    if any(map(is_for_subclasses, said)):
        return "left"
    return "declines" if any(said) and not any(map(says_todo, said)) else "todo"


def _pure(value: ast.expr) -> bool:
    return not any(isinstance(node, _EFFECTS) for node in ast.walk(value))


def _is_constant(value: ast.expr, constants: set[str]) -> bool:
    """A literal, arithmetic on literals, an empty container, or a name bound to one."""
    match value:
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            return True
        case ast.Call(func=ast.Name(id=name), args=[], keywords=[]):
            return name in _EMPTY_CALLS
        case _:
            return all(
                isinstance(node, _LITERAL) or (isinstance(node, ast.Name) and node.id in constants)
                for node in ast.walk(value)
            )


def _talks_of_todo(value: ast.expr) -> bool:
    """``print("TODO")`` and its like: an effect, but not the one that was asked for."""
    if not isinstance(value, ast.Call):
        return False
    function = value.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    words = [a.value for a in value.args if isinstance(a, ast.Constant)]
    return name in _TALK and any(isinstance(w, str) and says_todo(w) for w in words)
