"""What a grader's source imports, and which of it is not there when it runs."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

__all__ = ["HOSTED", "foreign_imports", "imported_packages"]

HOSTED = {
    "ast_grep_py": "ast-grep-py 0.36.2",
    "deepdiff": "deepdiff 8.4.2",
    "jsonschema": "jsonschema 4.23.0",
    "nltk": "nltk 3.9.1",
    "numpy": "numpy 2.2.4",
    "pandas": "pandas 2.2.3",
    "pydantic": "pydantic 2.10.6",
    "rapidfuzz": "rapidfuzz 3.10.1",
    "rdkit": "rdkit 2024.9.6",
    "rouge_score": "rouge-score 0.1.2",
    "scipy": "scipy 1.15.2",
    "skbio": "scikit-bio 0.6.3",
    "sklearn": "scikit-learn 1.6.1",
    "sqlparse": "sqlparse 0.5.3",
    "sympy": "sympy 1.13.3",
    "yaml": "pyyaml 6.0.2",
}
"""Packages of OpenAI's image ``2025-05-08`` by what is imported, with their versions."""

_IMPORTERS = ("__import__", "import_module")


def imported_packages(tree: ast.AST) -> tuple[str, ...]:
    """Top-level names that a syntax tree imports anywhere, sorted.

    ``__import__("x")`` and ``import_module("x")`` are found where the name is written out.
    """
    return tuple(sorted({name.partition(".")[0] for node in ast.walk(tree) for name in _of(node)}))


def foreign_imports(tree: ast.AST) -> tuple[str, ...]:
    """Those of `imported_packages` that are not in the standard library."""
    return tuple(name for name in imported_packages(tree) if name not in sys.stdlib_module_names)


def _of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module
    elif isinstance(node, ast.Call) and node.args:
        called, first = node.func, node.args[0]
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name in _IMPORTERS and isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield first.value
