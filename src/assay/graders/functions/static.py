"""What can be said of a function grader's source without running it.

Standard library only, and never called in our own process: Python's parser can be made to run for
minutes or to exhaust the stack by the text that it reads, so this too runs in the sandbox
(`assay.graders.functions.checks`), where it finds `reading` beside it.
"""

from __future__ import annotations

import ast
import builtins
import sys
import warnings
from collections.abc import Iterator
from types import CodeType
from typing import NoReturn

from assay.graders.functions.reading import (
    MARK,
    Place,
    bindings,
    deepest,
    foreign_coding,
    global_stores,
    global_uses,
    guilty_lines,
    longest,
    own_nodes,
)

GIVEN = ("StringThread", "StringTurn")
"""Names that every function finds among its globals, and in the modules that we give it."""

_OURS = ("adaptive_harmony", "assay", "assay.types", "assay.types.thread")
_MODULE_NAMES = frozenset(
    f"__{name}__"
    for name in ("annotations", "builtins", "doc", "file", "loader", "name", "package", "spec")
)
_OFFLINE = frozenset(
    ("ftplib", "http", "imaplib", "poplib", "smtplib", "socket", "socketserver", "ssl", "xmlrpc")
)
_HOMES = {
    "Any": "typing",
    "Counter": "collections",
    "Decimal": "decimal",
    "Dict": "typing",
    "Fraction": "fractions",
    "List": "typing",
    "Optional": "typing",
    "OrderedDict": "collections",
    "Path": "pathlib",
    "SequenceMatcher": "difflib",
    "Union": "typing",
    "ceil": "math",
    "defaultdict": "collections",
    "floor": "math",
    "isclose": "math",
    "sqrt": "math",
}
_PACKAGES = {"np": "numpy", "pd": "pandas", "plt": "matplotlib", "tf": "tensorflow"}
_ELSEWHERE = "an external endpoint grader can use packages and the network"
_MANY_DIGITS = "a number of more than 4,300 digits; write it in hexadecimal, or as a power"
_MOST = 20
# As many as Python 3.11 and 3.12 compile. 3.13 compiles three times as many, but what is valid on
# one machine is valid on all.
_MOST_LEVELS = 2_900

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class _FaultError(Exception):
    """The first thing that is wrong, and the check that found it."""

    def __init__(self, check: str, message: str, line: int | None) -> None:
        super().__init__(message)
        self.check, self.message, self.line = check, message, line


def examine(text: str) -> dict[str, object]:
    """Check a source as far as that can be done without running it."""
    said: list[str] = []
    lines: dict[str, int] = {}
    failed: dict[str, object] | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            _examine(text, said, lines)
        except _FaultError as fault:
            failed = {"check": fault.check, "message": fault.message[:1000], "line": fault.line}
    said += [f"line {w.lineno}: {w.message}" for w in caught]
    said = [warning[:300] for warning in dict.fromkeys(said)]
    names = ["syntax", "structure", "signature"]
    passed = names[: names.index(str(failed["check"]))] if failed and _is_early(failed) else names
    return {"passed": passed, "failed": failed, "warnings": said[:_MOST], "lines": lines}


def _is_early(failed: dict[str, object]) -> bool:
    return failed["check"] != "execution"


def _examine(text: str, said: list[str], lines: dict[str, int]) -> None:
    tree, code = _compiled(text)
    function = _structure(tree)
    lines |= guilty_lines(tree, function)
    _signature(function, said)
    _imports(tree, said)
    _names(tree, code, said)


def _compiled(text: str) -> tuple[ast.Module, CodeType]:
    _characters(text)
    tree: ast.Module | None = None
    try:
        tree = ast.parse(text, "grade.py")
        depth, line = deepest(tree)
        if depth <= _MOST_LEVELS:
            return tree, compile(text, "grade.py", "exec", dont_inherit=True)
    except SyntaxError as error:
        at = f"line {error.lineno}, column {error.offset}: " if error.lineno else ""
        said = _MANY_DIGITS if "set_int_max_str_digits" in error.msg else error.msg
        raise _FaultError("syntax", f"{at}{said}", error.lineno) from None
    except (RecursionError, MemoryError):
        line = deepest(tree)[1] if tree else longest(text)
    except (ValueError, OverflowError) as error:
        message = f"line 1: Python cannot compile it: {error}; write it more simply"
        raise _FaultError("syntax", message, 1) from None
    message = "nested too deeply for Python to compile; write it in smaller pieces"
    raise _FaultError("syntax", f"line {line}: {message}", line)


def _characters(text: str) -> None:
    """Refuse what no Python file may hold, with words that help more than the compiler's."""
    if text.startswith(MARK):  # one is dropped before
        raise _FaultError("syntax", "line 1: there are two byte order marks; take them out", 1)
    if foreign := foreign_coding(text):
        line, name = foreign
        message = f"line {line}: it says that it is {name:.40}, but it is read as UTF-8"
        raise _FaultError("syntax", f"{message}; save it as UTF-8 and take the line out", line)
    nul, half = text.find("\0"), -1
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = error.start
    for place, what in ((nul, "a null character"), (half, "half a character, a lone surrogate")):
        if place >= 0:
            line = text.count("\n", 0, place) + 1
            raise _FaultError("syntax", f"line {line}: there is {what}; take it out", line)


def _structure(tree: ast.Module) -> ast.AsyncFunctionDef:
    found = list(bindings(tree, "grade"))
    functions = [node for node in tree.body if isinstance(node, _DEFINITIONS) and node in found]
    if not functions:
        _no_function(tree, found)
    last = functions[-1]
    if len(functions) > 1:
        lines = " and ".join(str(node.lineno) for node in functions[-2:])
        message = f"line {last.lineno}: 'grade' is defined twice, on lines {lines}; keep one"
        raise _FaultError("structure", message, last.lineno)
    if isinstance(last, ast.FunctionDef):
        _refuse(last, "'grade' must be 'async def'; write 'async' before 'def'")
    if not isinstance(last, ast.AsyncFunctionDef):
        _refuse(last, "'grade' is a class; write 'async def grade(thread: StringThread) -> float'")
    again = next((node for node in found if node is not last), None)
    if again is not None:
        other = f"'grade' is set to something else than the function of line {last.lineno}"
        _refuse(again, f"{other}; use another name here")
    if last.decorator_list:
        name = ast.unparse(last.decorator_list[0])
        _refuse(last, f"'grade' is decorated with @{name:.80}; call what it does inside instead")
    for node in own_nodes(last):
        if isinstance(node, ast.Yield | ast.YieldFrom):
            _refuse(node, "'grade' is a generator, because it has a 'yield'; use 'return'")
    return last


def _refuse(node: Place, message: str) -> NoReturn:
    raise _FaultError("structure", f"line {node.lineno}: {message}", node.lineno)


def _no_function(tree: ast.Module, found: list[Place]) -> NoReturn:
    for node in found:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            kind = "a lambda" if isinstance(node.value, ast.Lambda) else "not a function"
            _refuse(node, f"'grade' is {kind}; write 'async def grade(thread): ...'")
        if isinstance(node, ast.Import | ast.ImportFrom):
            _refuse(node, "'grade' is imported; write the function itself in this file")
    for owner in ast.walk(tree):
        for node in ast.iter_child_nodes(owner):
            if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef) and node.name == "grade":
                where = f"in '{owner.name}'" if isinstance(owner, _DEFINITIONS) else "in a block"
                _refuse(node, f"'grade' is {where}; move it to the top level of the file")
    if found:
        _refuse(found[0], "'grade' is not a function; write 'async def grade(thread): ...'")
    others = [n for n in tree.body if isinstance(n, ast.AsyncFunctionDef | ast.FunctionDef)]
    message = "there is no top-level function named 'grade'"
    if others:
        message = f"line {others[-1].lineno}: {message}; rename '{others[-1].name}' to 'grade'"
        raise _FaultError("structure", message, others[-1].lineno)
    raise _FaultError("structure", f"{message}; write 'async def grade(thread): ...'", None)


def _signature(function: ast.AsyncFunctionDef, said: list[str]) -> None:
    given, line = function.args, function.lineno
    stars = [a for a in (given.vararg, given.kwarg) if a is not None]
    parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs, *stars]
    if len(parameters) != 1:
        names = f" ({', '.join(a.arg for a in parameters)})" if parameters else ""
        count = f"'grade' must take exactly one parameter, found {len(parameters)}{names:.200}"
        raise _FaultError("signature", f"line {line}: {count}; take the thread only", line)
    only = parameters[0]
    if only in (*stars, *given.kwonlyargs):
        message = f"the parameter {only.arg!r} must be an ordinary one: 'grade(thread)'"
        raise _FaultError("signature", f"line {line}: {message}", line)
    if given.defaults:
        message = f"the parameter {only.arg!r} must not have a default"
        raise _FaultError("signature", f"line {line}: {message}", line)
    said += _annotation_warnings(function, only)


def _annotation_warnings(function: ast.AsyncFunctionDef, parameter: ast.arg) -> Iterator[str]:
    written, name = _annotation(parameter.annotation), parameter.arg
    if not written:
        yield f"the parameter {name!r} is not annotated; write '{name}: StringThread'"
    elif written.rpartition(".")[2] != "StringThread":
        yield f"the parameter {name!r} is annotated {written:.80}, not StringThread"
    returned = _annotation(function.returns)
    if not returned:
        yield "the return value is not annotated; write '-> float'"
    elif returned == "bool":
        yield (
            "the return value is annotated bool, not float; "
            "a bool is not a score: return 1.0 or 0.0"
        )
    elif returned != "float":
        yield f"the return value is annotated {returned:.80}, not float"


def _annotation(node: ast.expr | None) -> str:
    if node is None:
        return ""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.strip()
    return ast.unparse(node)


def _imports(tree: ast.Module, said: list[str]) -> None:
    guarded = {id(node) for block in ast.walk(tree) for node in _guarded(block)}
    for node in ast.walk(tree):
        if id(node) in guarded:
            continue
        if isinstance(node, ast.ImportFrom):
            if node.level:
                _execution(node.lineno, "there is no package around the file; import by full name")
            _import(node.module or "", node, said)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                _import(alias.name, node, said)


def _import(module: str, node: ast.Import | ast.ImportFrom, said: list[str]) -> None:
    root = module.partition(".")[0]
    names = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
    if module in _OURS:
        unknown = [name for name in names if name not in (*GIVEN, "*", "types", "thread")]
        if unknown:
            has = f"{module!r} has {' and '.join(GIVEN)} here, and no {unknown[0]!r}"
            _execution(node.lineno, has)
    elif root not in sys.stdlib_module_names:
        package = f"{root!r} is not in the standard library, which is all there is in the sandbox"
        _execution(node.lineno, f"{package}; {_ELSEWHERE}")
    elif (
        root in _OFFLINE
        or module == "urllib.request"
        or (module == "urllib" and "request" in names)
    ):
        said.append(f"line {node.lineno}: {module!r} will reach nothing: there is no network")


def _guarded(block: ast.AST) -> Iterator[ast.AST]:
    """The statements that may fail to import, because that is handled, or that never run."""
    if isinstance(block, ast.If) and ast.unparse(block.test).endswith("TYPE_CHECKING"):
        for statement in block.body:
            yield from ast.walk(statement)
    if not isinstance(block, ast.Try):
        return
    caught = {name.id for h in block.handlers for name in ast.walk(h) if isinstance(name, ast.Name)}
    bare = any(handler.type is None for handler in block.handlers)
    if bare or caught & {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}:
        for statement in block.body:
            yield from ast.walk(statement)


def _execution(line: int, message: str) -> NoReturn:
    raise _FaultError("execution", f"line {line}: {message}", line)


def _names(tree: ast.Module, code: CodeType, said: list[str]) -> None:
    uses, known = global_uses(code), global_stores(code)
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    is_open = any(alias.name == "*" for node in imports for alias in node.names)
    is_open = is_open or bool({"globals", "exec", "vars"} & set(uses))
    known |= {*dir(builtins), *GIVEN, *_MODULE_NAMES}
    unknown = sorted((line, name) for name, line in uses.items() if name not in known)
    if not unknown:
        return
    line, name = unknown[0]
    message = f"name {name!r} is not defined; {_how_to_fix(name, known)}"
    if is_open:  # a name may come from where nobody can see it beforehand
        said.append(f"line {line}: {message}")
    else:
        _execution(line, message)


def _how_to_fix(name: str, known: set[str]) -> str:
    if name in _PACKAGES:
        return f"if it is {_PACKAGES[name]}, that is not in the sandbox; {_ELSEWHERE}"
    if name in _HOMES:
        return f"put 'from {_HOMES[name]} import {name}' into the file"
    if name in sys.stdlib_module_names:
        return f"put 'import {name}' into the file"
    import difflib

    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.8)
    return f"did you mean {close[0]!r}?" if close else "define it in the file"
