"""Read Python: which functions there are, and what else a file says to the interpreter."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from assay.graders.stubs import Body, Code, Function, comment_says_todo, written
from assay.graders.stubs.python_bodies import body_of, is_idle, lambda_body, without_idle

_NO_MEANING = frozenset(
    {
        *("staticmethod", "classmethod", "property", "cached_property"),
        *("cache", "lru_cache", "override", "final", "wraps"),
    }
)
"""Decorators under which an empty body is as empty as without them."""

_DUNDER = re.compile(r"__\w+__")


def parse_python(source: str | bytes) -> ast.Module | str:
    """Parse a file of somebody who may want the parser to fail; else say why it cannot be."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the file warns about is not our reader's affair
            return ast.parse(source)
    except SyntaxError as error:
        return f"does not parse: line {error.lineno or 1}: {error.msg}"
    except (RecursionError, MemoryError):
        return "does not parse: it is nested too deeply"
    except (ValueError, LookupError, OverflowError, SystemError) as error:
        return f"does not parse: {error}"


def read_python(source: bytes) -> Code | str:
    """Read a Python file; as text, why it cannot be read."""
    module = parse_python(source)
    if isinstance(module, str):
        return module
    lines = (
        source.replace(b"\r\n", b"\n").replace(b"\r", b"\n").decode("utf-8", "replace").split("\n")
    )
    reader = _Reader(lines)
    reader.block(module.body, _Place())
    return Code(
        functions=tuple(sorted(reader.functions, key=lambda function: function.line)),
        bases=reader.bases,
        names=frozenset(reader.names),
        fingerprint=_fingerprint(module),
        substance=bool(without_idle(module.body)),
    )


def python_code(source: bytes, *, texts: bool = True) -> str | None:
    """A Python file without its comments and idle statements; None if it does not parse.

    Lines and columns are kept.

    ``texts``: Whether to keep what stands in strings. Without, what an f-string computes is moved
    behind the end.
    """
    source = source.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    module = parse_python(source)
    if isinstance(module, str):
        return None
    lines = source.split(b"\n")
    spans = [*_idle_spans(module, source)]
    if not texts:
        for node, computed in _texts(module):
            end = node.end_lineno or node.lineno
            spans.append((node.lineno, node.col_offset, end, node.end_col_offset or 0))
            lines += [line.encode("utf-8", "replace") for line in computed]
    for first, start, last, end in spans:
        for number in range(first, min(last, len(lines)) + 1):
            line = lines[number - 1]
            begin, stop = (start if number == first else 0), (end if number == last else len(line))
            lines[number - 1] = line[:begin] + b" " * (stop - begin) + line[stop:]
    return b"\n".join(lines).decode("utf-8", "replace")


def _texts(module: ast.Module) -> Iterator[tuple[ast.Constant | ast.JoinedStr, list[str]]]:
    """Every string, and the expressions that an f-string holds, without their own strings."""
    waiting: list[ast.AST] = [module]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.JoinedStr):
            values = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
            names = [n for value in values for n in ast.walk(value) if isinstance(n, ast.Name)]
            yield node, [" ".join(name.id for name in names)]
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str | bytes):
                yield node, []
        else:
            waiting.extend(ast.iter_child_nodes(node))


def _idle_spans(module: ast.Module, source: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Idle statements and comments: first line (from 1), first byte in it, last line, end byte."""
    for node in ast.walk(module):
        if isinstance(node, ast.Expr) and is_idle(node):
            end = node.end_lineno or node.lineno
            yield node.lineno, node.col_offset, end, node.end_col_offset or 0
    text = source.decode("utf-8", "replace")
    lines = text.split("\n")
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                start = len(lines[row - 1][:column].encode())
                yield row, start, row, start + len(token.string.encode())
    except (tokenize.TokenError, SyntaxError):
        return  # only for an encoding that is not ours; what was found stands


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a statement stands."""

    prefix: str = ""
    owner: ast.ClassDef | None = None
    nested: bool = False


@dataclass(slots=True)
class _Reader:
    lines: list[str]
    functions: list[Function] = field(default_factory=list[Function])
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    names: set[str] = field(default_factory=set[str])
    aliases: dict[str, str] = field(default_factory=dict[str, str])

    def block(self, statements: Sequence[ast.stmt], place: _Place) -> None:
        """Read statements, without recursion: how deep they go is the author's choice."""
        waiting = deque([(statements, place)])
        while waiting:
            block, here = waiting.popleft()
            self._define(block, here)
            for statement in block:
                waiting.extend(self._inner(statement, here))
        self._settle()

    def _define(self, block: Sequence[ast.stmt], place: _Place) -> None:
        """Note what one block binds; of two with one name the later stands."""
        last: dict[str, Function | ast.AST] = {}
        for statement in block:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                function = self._function(statement, place)
                before = last.pop(function.name, None)
                if isinstance(before, Function) and (function.quiet or function.abstract):
                    self.functions.append(before)
                last[function.name] = function
            elif isinstance(statement, ast.ClassDef):
                last.pop(place.prefix + statement.name, None)
            for name, value in _bound(statement):
                used = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
                if isinstance(value, ast.Lambda):
                    last[place.prefix + name] = _lambda(place.prefix + name, value)
                elif not isinstance(value, ast.Constant) and name not in used:
                    last[place.prefix + name] = value
        for name, what in last.items():
            if isinstance(what, Function):
                self.functions.append(what)
            elif isinstance(what, ast.Name):
                self.aliases[name] = what.id
            else:
                self.names.add(name)

    def _settle(self) -> None:
        """Take an alias for what it names, and drop stubs that other blocks bind anew."""
        known = {function.name: function for function in sorted(self.functions, key=written)}
        for name, target in self.aliases.items():
            found = known.get(f"{name.rpartition('.')[0]}.{target}") or known.get(target)
            if found is not None and not written(found):
                known[name] = replace(found, name=name, owner="")
                self.functions.append(known[name])
            elif target in self.bases:
                self.bases[name.rpartition(".")[2]] = (target,)
            else:
                self.names.add(name)
        self.functions = [f for f in self.functions if written(f) or f.name not in self.names]

    def _inner(
        self, statement: ast.stmt, place: _Place
    ) -> Iterator[tuple[Sequence[ast.stmt], _Place]]:
        match statement:
            case ast.ClassDef():
                self.bases[statement.name] = tuple(_simple(base) for base in _parents(statement))
                yield (
                    statement.body,
                    _Place(f"{place.prefix}{statement.name}.", statement, place.nested),
                )
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield statement.body, _Place(f"{place.prefix}{statement.name}.", None, True)
            case ast.If():
                never = isinstance(statement.test, ast.Constant) and not statement.test.value
                # Never run either: what stands there is for readers of types.
                if not never and _simple(statement.test) != "TYPE_CHECKING":
                    yield statement.body, place
                yield statement.orelse, place
            case ast.Try() | ast.TryStar():
                yield from ((handler.body, place) for handler in statement.handlers)
                yield from ((b, place) for b in (statement.body, statement.orelse))
                yield statement.finalbody, place
            case ast.With() | ast.AsyncWith() | ast.For() | ast.AsyncFor() | ast.While():
                yield statement.body, place
            case _:
                return

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, place: _Place) -> Function:
        decorators = [_simple(decorator) for decorator in node.decorator_list]
        accessor = next((d for d in decorators if d in ("setter", "deleter", "getter")), "")
        body = body_of(node.body, is_method=place.owner is not None)
        text = self.lines[node.lineno - 1 : node.end_lineno]
        if body in ("constant", "nothing", "empty") and any(map(comment_says_todo, text)):
            body = "todo"
        bound = place.owner is not None and "staticmethod" not in decorators
        return Function(
            name=f"{place.prefix}{node.name}{'.' if accessor else ''}{accessor}",
            line=node.lineno,
            body=body,
            inputs=_inputs(node.args, bound=bound),
            fingerprint=_fingerprint(node),
            owner=place.owner.name if place.owner else "",
            abstract=_is_abstract(body, decorators, place.owner),
            quiet=_is_quiet(node.name, decorators, place),
        )


def _bound(statement: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    """The names that a statement binds, each to its value, or to what it imports."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        yield from (((n.asname or n.name).partition(".")[0], n) for n in statement.names)
    elif isinstance(statement, ast.Assign | ast.AnnAssign) and (value := statement.value):
        annotated = isinstance(statement, ast.AnnAssign)
        for target in [statement.target] if annotated else statement.targets:
            parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            if parts == [target] or len(values) != len(parts):
                values = [value] * len(parts)
            names = [part.id if isinstance(part, ast.Name) else "" for part in parts]
            yield from zip(names, values, strict=True)


def _lambda(name: str, value: ast.Lambda) -> Function:
    return Function(
        name=name,
        line=value.lineno,
        body=lambda_body(value),
        inputs=_inputs(value.args, bound=False),
        fingerprint=_fingerprint(value),
        quiet=True,
    )


def _inputs(arguments: ast.arguments, *, bound: bool) -> bool:
    plain = len(arguments.posonlyargs) + len(arguments.args) - (1 if bound else 0)
    return plain > 0 or bool(arguments.kwonlyargs or arguments.vararg or arguments.kwarg)


def _is_abstract(body: Body, decorators: list[str], owner: ast.ClassDef | None) -> bool:
    """Whether its declaration says that others fill it in."""
    if any(name.startswith(("overload", "singledispatch", "abstract")) for name in decorators):
        return True
    if owner is None:
        return False
    parents = {_simple(parent) for parent in _parents(owner)}
    parents |= {_simple(keyword.value) for keyword in owner.keywords}
    return bool(
        parents & {"Protocol", "Interface"}
        or (body in ("todo", "declines") and parents & {"ABC", "ABCMeta"})
    )


def _is_quiet(name: str, decorators: list[str], place: _Place) -> bool:
    """Whether its declaration gives an empty body a use."""
    owner = place.owner
    with_bases = owner is not None and (
        any(_simple(parent) != "object" for parent in owner.bases) or bool(owner.keywords)
    )
    return (
        place.nested
        or with_bases
        or any(decorator not in _NO_MEANING for decorator in decorators)
        or _DUNDER.fullmatch(name) is not None
    )


def _parents(node: ast.ClassDef) -> list[ast.expr]:
    return [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]


def _simple(node: ast.expr) -> str:
    """The last part of a dotted name, called or not; "" for any other expression."""
    while isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _fingerprint(root: ast.AST) -> str:
    """A digest of a syntax tree without its idle statements; iterative, for trees of any depth."""
    import hashlib

    digest = hashlib.sha256()
    waiting: deque[object] = deque([root])
    while waiting:
        item = waiting.popleft()
        if isinstance(item, ast.AST):
            digest.update(type(item).__name__.encode())
            for name, value in ast.iter_fields(item):
                if name in ("type_comment", "kind", "type_ignores"):
                    continue
                waiting.append(value)
        elif isinstance(item, list):
            items = without_idle(cast("list[object]", item))
            digest.update(b"[%d" % len(items))
            waiting.extend(items)
        else:
            shown = hex(item) if isinstance(item, int) else repr(item)
            digest.update(f"{type(item).__name__}:{shown}".encode("utf-8", "replace"))
        digest.update(b"\0")
    return digest.hexdigest()
