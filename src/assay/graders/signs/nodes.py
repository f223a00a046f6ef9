"""What the readers of tree-sitter's trees share: parts of nodes, their names, what is around."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from assay.graders.signs.sign import words_of
from assay.graders.stubs.treesitter_bodies import Node, text_of

__all__ = [
    "CALLS",
    "FUNCTIONS",
    "NodeHit",
    "around",
    "bare",
    "callee",
    "each",
    "in_function",
    "part",
    "words",
]

NodeHit: TypeAlias = tuple[str, Node, str]
"""A sign: its name, where it is, what stands there."""

FUNCTIONS = words_of(
    "function_declaration method_definition function_expression arrow_function "
    "function_definition function_item method_declaration pair lambda_expression "
    "generator_function_declaration func_literal closure_expression constructor_declaration "
    "static_initializer"
)
"""What functions are called in the grammars."""

CALLS = frozenset({"call_expression", "macro_invocation", "method_invocation", "new_expression"})
"""What calls are called in them."""


def each(root: Node) -> list[Node]:
    """A node and all below it, outer ones first."""
    found = [root]
    for node in found:
        found.extend(node.children)
    return found


def part(node: Node, *roles: str) -> str:
    """The source of the first of these parts that there is."""
    for role in roles:
        if (found := node.child_by_field_name(role)) is not None:
            return text_of(found)
    return ""


def around(node: Node) -> Iterator[Node]:
    """What a node stands in, innermost first."""
    above = node.parent
    while above is not None:
        yield above
        above = above.parent


def in_function(node: Node) -> bool:
    """Whether code runs only when a function is called."""
    return any(one.type in FUNCTIONS for one in around(node))


def words(node: Node | None) -> set[str]:
    """The names that code uses; not those in comments and texts."""
    found: set[str] = set()
    for one in each(node) if node is not None else ():
        if "identifier" in one.type or one.type in ("this", "self"):
            found.add(text_of(one))
    return found


def bare(text: str) -> str:
    """What a literal of text says, about."""
    return text.strip("\"'`").replace("\\n", "\n").strip()


def callee(node: Node) -> str:
    """The source of what a call calls."""
    if node.type == "method_invocation":
        base = part(node, "object")
        return f"{base}.{part(node, 'name')}" if base else part(node, "name")
    return part(node, "function", "macro", "constructor")
