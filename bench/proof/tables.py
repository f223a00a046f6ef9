"""Tables of pytest's ``parametrize`` in a file of tests, read without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table.

    Attributes:
        place: The test's name and the row's line.
        values: Its values by the names of the test's arguments.
    """

    place: str
    values: dict[str, object]


def rows(file: Path) -> Iterator[Row]:
    """Each row of plain values of every parametrised test in a file; other rows are left out."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for call in node.decorator_list:
                if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("parametrize"):
                    yield from _rows(node.name, call)


def _rows(test: str, call: ast.Call) -> Iterator[Row]:
    told, table = _plain(call.args[0]), call.args[1]
    names = told.split(",") if isinstance(told, str) else _items(told)
    for line in table.elts if isinstance(table, ast.List) else ():
        marked = isinstance(line, ast.Call)  # pytest.param(...)
        values = [*map(_plain, line.args)] if marked else _items(_plain(line))
        if len(values) == len(names):
            named = {str(name).strip(): value for name, value in zip(names, values, strict=True)}
            yield Row(f"{test}:{line.lineno}", named)


def _items(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()


def _plain(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None
