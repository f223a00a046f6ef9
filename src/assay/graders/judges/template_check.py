"""What is worth a look in a template before it is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from assay.errors import nearest
from assay.graders.judges.template import step_into
from assay.graders.judges.template_syntax import (
    Each,
    Expression,
    If,
    Lookup,
    Node,
    Path,
    With,
    parsed,
)
from assay.scoring.json_safe import Json

__all__ = ["check_template", "names_used"]


def check_template(template: str, known: Mapping[str, Json]) -> list[str]:
    """What is worth a look in a template: variables that there are none of.

    Args:
        template: The template.
        known: A sample of the variables. Of a list its first item says what the others are like;
            an empty mapping may hold anything.

    Returns:
        Warnings, each with its line.

    Raises:
        InputError: For a template that is none, with its line.
    """
    warnings: list[str] = []
    for line, path, scope in _uses(parsed(template), [dict(known)]):
        if isinstance(scope, dict) and scope and path.steps[0] not in scope:
            hint = nearest(path.steps[0], list(scope))
            if path.steps[0] == "template_variables":
                hint = "its entries are variables themselves: {{NAME}}"
            warnings.append(f"line {line}: there is no variable {path.text!r} ({hint})")
    return list(dict.fromkeys(warnings))


def names_used(template: str) -> frozenset[str]:
    """The first names of all paths in a template."""
    return frozenset(path.steps[0] for _, path, _ in _uses(parsed(template), [{}]))


def _uses(nodes: Sequence[Node], scopes: list[Json]) -> Iterator[tuple[int, Path, Json]]:
    """Every path with a name, its line, and a sample of what it is looked up in."""
    for node in nodes:
        if isinstance(node, str):
            continue
        for path in _paths(node.value):
            if path.is_data or not path.steps:
                continue
            scope = scopes[-1 - path.up] if path.up < len(scopes) else {}
            yield node.line, path, scope
        if isinstance(node, If):
            yield from _uses(node.body, scopes)
            yield from _uses(node.otherwise, scopes)
        elif isinstance(node, Each | With):
            inner = _sample(node.value, scopes, is_item=isinstance(node, Each))
            if node.names:  # names of one's own: what they are is not followed
                inner = {}
            yield from _uses(node.body, [*scopes, inner])
            yield from _uses(node.otherwise, scopes)


def _paths(expression: Expression) -> Iterator[Path]:
    if isinstance(expression, Path):
        yield expression
    elif isinstance(expression, Lookup):
        yield from _paths(expression.of)
        yield from _paths(expression.key)


def _sample(expression: Expression, scopes: Sequence[Json], *, is_item: bool) -> Json:
    if not isinstance(expression, Path) or expression.is_data or expression.up >= len(scopes):
        return {}
    found = step_into(scopes[-1 - expression.up], expression.steps)
    if is_item:
        found = found[0] if isinstance(found, list) and found else None
    return found if isinstance(found, dict) else {}
