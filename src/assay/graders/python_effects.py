"""What Python code does that an agent runs, as far as its text tells."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping

from assay.graders.stubs.python import parse_python

_LOOKING: Mapping[str, str] = {
    "modules": "ast base64 collections csv datetime difflib glob hashlib itertools json math "
    "os pathlib pprint re statistics string struct sys textwrap tomllib yaml",
    "names": "False None True Path Counter abs all any bool bytes dict enumerate filter float "
    "hex int isinstance iter len list map max min next pprint print range repr reversed round "
    "set sorted str sum tuple type zip",
    "attributes": "DictReader Counter argv basename count decode dirname dump dumps encode end "
    "endswith exists find findall finditer fullmatch get getsize glob group hexdigest index "
    "is_dir is_file isdigit isdir isfile items iterdir join keys lineno listdir literal_eval "
    "load loads lower lstrip maketrans match md5 most_common name names parent parents parse "
    "parts path pformat pprint read read_bytes read_text reader readline readlines relative_to "
    "resolve rglob rsplit rstrip safe_load search sha1 sha256 split splitext splitlines "
    "st_size start startswith stat stem stdin strip sub suffix title unified_diff upper values "
    "version walk",
}
"""What Python code may use that only looks at files."""
_ACTING = frozenset(dir(builtins)) - {*_LOOKING["names"].split()}
_LONGEST_CODE = 20_000


def only_reads(code: str) -> bool:
    """Whether Python code has nothing in it by which files are changed."""
    statements = _parsed(code)
    if statements is None:
        return False
    nodes = [node for statement in statements for node in ast.walk(statement)]
    modules, names, attributes = ({*words.split()} for words in _LOOKING.values())
    opened = {id(node.func) for node in nodes if isinstance(node, ast.Call) and _opens(node)}
    names |= modules | {node.arg for node in nodes if isinstance(node, ast.arg)}
    names |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    brought = {one.name for node in imports for one in node.names}
    if not brought <= names | attributes or not {node.module for node in imports} <= modules:
        return False
    names |= {one.asname or one.name for node in imports for one in node.names}
    if not names.isdisjoint(_ACTING):  # it is Python's own until it is another
        return False

    def is_known(node: ast.AST) -> bool:
        if isinstance(node, ast.Import):
            return all(one.name in modules and one.asname is None for one in node.names)
        if isinstance(node, ast.Name):
            return node.id in names or id(node) in opened
        return not isinstance(node, ast.Attribute) or node.attr in attributes or id(node) in opened

    return all(map(is_known, nodes))


def only_states_constants(code: str) -> bool:
    """Whether Python code does nothing: it names constants, or prints them."""
    statements = _parsed(code)
    return statements is not None and all(map(_is_constant, statements))


def _parsed(code: str) -> list[ast.stmt] | None:
    """The statements of Python code; None of what is none, or is too long to be read."""
    tree = parse_python(code) if len(code) <= _LONGEST_CODE else ""
    return None if isinstance(tree, str) else tree.body


def _opens(call: ast.Call) -> bool:
    """Whether a call opens a file to read it: ``open(path)``, ``path.open("rb")``."""
    if isinstance(call.func, ast.Name) and call.func.id == "open":
        modes = call.args[1:2]
    elif isinstance(call.func, ast.Attribute) and call.func.attr == "open":
        modes = call.args[:1]
    else:
        return False
    modes += [keyword.value for keyword in call.keywords if keyword.arg in (None, "mode", "opener")]
    return all(isinstance(one, ast.Constant) and one.value in ("r", "rb", "rt") for one in modes)


def _is_constant(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assign | ast.Expr):
        value = statement.value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            is_print = value.func.id == "print" and not value.keywords
            return is_print and all(isinstance(one, ast.Constant) for one in value.args)
        return isinstance(value, ast.Constant)
    return isinstance(statement, ast.Pass)
