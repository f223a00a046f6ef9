"""What the body of a function comes to, in the languages that tree-sitter reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from assay.graders.stubs import Body, Ending, body_with, is_for_subclasses, says_todo

_BLOCKS = frozenset(
    {
        *("statement_block", "block", "compound_statement", "constructor_body", "statement_list"),
        *("body_statement", "block_body", "unsafe_block", "expression_list"),
        "parenthesized_expression",
    }
)
_VALUES = frozenset({"block", "block_body", "body_statement", "method"})
_EFFECTS = re.compile(
    r"call|invocation|await|yield|new_expression|assignment|update|creation|macro|postfix|inc_|dec_"
    r"|send|throw|delete|go_statement|defer|method|command"
)
_ENDS_LITERAL = re.compile(
    r"number|integer|float|true|false|null|nil|undefined|string\w*|escape_sequence|char\w*|simple_symbol"
    r"|raw_string\w*|template_string|\w+_literal|interpreted_string_literal_content|symbol|null_literal"
    r"|rune|unary_expression|sign|rational|complex"
)
_EMPTY_VALUES = frozenset(
    {
        *("[]", "{}", "std::nullopt", "Optional.empty()", "List.of()", "Map.of()"),
        *("Default::default()", "String::new()", "Vec::new()", "vec![]", "HashMap::new()"),
        *("Ok(())", "Some(())"),
    }
)
_NOTHING = frozenset({"null", "nil", "undefined", "None", "()", "void 0", "nullptr", "NULL"})
_DEFINITIONS = re.compile(r"function_declaration|class_declaration|function_item|use_declaration")
_TODO_CALLS = re.compile(
    r"(?:std::)?(?:todo|unimplemented)!|NotImplemented\w*|raise\(?\s*\(?NotImplementedError"
)
_ENDING_CALLS = frozenset(
    {"panic", "panic!", "unreachable!", "abort", "std::abort", "raise", "exit"}
)
_TODO_ERRORS = re.compile(r"NotImplemented|UnsupportedOperationException|NotSupported")
_TALK = re.compile(
    r"console\.\w+|fmt\.Print\w*|print\w*!?|eprintln!|log\.\w+|puts|System\.(?:out|err)\.\w+|printf"
)


class Node(Protocol):
    """A node of a tree-sitter tree, as far as we use it."""

    # Its kind, in the words of the grammar; its source.
    type: str
    text: bytes | None
    # Its parts, tokens included; without mere tokens; what it is a part of.
    children: list[Node]
    named_children: list[Node]
    parent: Node | None
    # Whether it is more than a token; holds or is what does not parse; was made up by the parser.
    is_named: bool
    has_error: bool
    is_error: bool
    is_missing: bool
    # Row and column, from 0.
    start_point: tuple[int, int]

    def child_by_field_name(self, name: str, /) -> Node | None:
        """Return the part that has a role."""
        ...


def text_at(node: Node, *roles: str) -> str:
    """The source of the first part of a node that has one of these roles; empty where none has."""
    found = (node.child_by_field_name(role) for role in roles)
    return next((text_of(one) for one in found if one is not None), "")


def text_of(node: Node) -> str:
    """The source of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def children(node: Node) -> list[Node]:
    """The parts of a node that are neither tokens nor comments."""
    return [child for child in node.named_children if "comment" not in child.type]


def body_of(body: Node | None, *, is_method: bool) -> Body:
    """What a body comes to: a block of statements, or an expression that is returned."""
    if body is None:
        return "empty"
    ending = _ending([body], 0) if body.type in _BLOCKS else _returned(body)
    return body_with(ending, is_method=is_method)


def _ending(statements: Sequence[Node], depth: int) -> Ending:
    if depth > 20:
        return "real"
    for statement in statements:
        ending = _one(statement, depth)
        if ending != "falls":
            return ending
    return "falls"


def _one(node: Node, depth: int) -> Ending:  # noqa: PLR0911 - a table of statements
    kind = node.type
    inner = children(node)
    if kind in _BLOCKS:
        return _ending(inner, depth + 1)
    if kind in ("throw_statement", "throw_expression"):
        return _thrown(text_of(node))
    if kind in ("return_statement", "return_expression", "return"):
        return _returned(inner[0]) if inner else "nothing"
    if kind == "expression_statement" and len(inner) == 1:
        return "falls" if _pure(inner[0]) else _one(inner[0], depth + 1)
    if kind in ("if_statement", "if_expression") and _always(node):
        chosen = node.child_by_field_name("consequence")
        return "real" if chosen is None else _one(chosen, depth + 1)
    if kind == "empty_statement" or _DEFINITIONS.fullmatch(kind):
        return "falls"
    called = _called(node)
    if called:
        return _call(called, text_of(node))
    if kind == "assignment_statement" and text_of(node).split("=")[0].strip(" _,") == "":
        return "falls" if _pure(inner[-1]) else "real"
    if not _pure(node):
        return "real"
    # The last expression of a block is its value in Rust and Ruby, and nothing elsewhere.
    is_value = node.parent is not None and node.parent.type in _VALUES
    if is_value and "declaration" not in kind and "statement" not in kind:
        return _returned(node)
    return "falls" if "statement" in kind or "declaration" in kind or _is_value(node) else "real"


def _always(node: Node) -> bool:
    return text_at(node, "condition").strip("() ") in ("true", "1", "!0", "!false")


def _called(node: Node) -> str:
    for role in ("function", "macro", "method", "name"):
        found = node.child_by_field_name(role)
        if found is not None and _EFFECTS.search(node.type):
            receiver = node.child_by_field_name("object")
            name = text_of(found) + ("!" if role == "macro" else "")
            return f"{text_of(receiver)}.{name}" if receiver is not None else name
    return ""


def _call(called: str, text: str) -> Ending:
    if _TODO_CALLS.match(called) or (called == "raise" and "NotImplemented" in text):
        return _said(text)
    if called in _ENDING_CALLS:
        return _said(text) if says_todo(text) else "raises"
    if called == "assert" and re.search(r"\(\s*(?:0|false)\b", text):
        return "todo"
    if called in ("assert!", "debug_assert!") and re.search(r"\(\s*false\b", text):
        return "todo"
    if _TALK.fullmatch(called) and says_todo(text):
        return "falls"
    return "real"


def _thrown(text: str) -> Ending:
    return _said(text) if _TODO_ERRORS.search(text) or says_todo(text) else "raises"


def _said(text: str) -> Ending:
    """How an error ends that says that something is still to be written."""
    return "left" if is_for_subclasses(text) else "todo"


def _returned(value: Node) -> Ending:
    kind = value.type
    if kind in ("parenthesized_expression", "as_expression", "satisfies_expression"):
        inner = children(value)
        return _returned(inner[0]) if inner and len(text_of(value)) < 10_000 else "real"
    called = _called(value)
    if called:
        ending = _call(called, text_of(value))
        if ending in ("todo", "left", "raises"):
            return ending
    text = " ".join(text_of(value).split()) if len(value.text or b"") < 1_000 else ""
    if text in _NOTHING:
        return "nothing"
    if text in _EMPTY_VALUES:
        return "constant"
    if says_todo(text) and re.search(r"rr|Status|reject|Fail", text):
        return "todo"  # an error value that says so, as in `return errors.New("not implemented")`
    return "constant" if _is_value(value) and _pure(value) else "real"


def _is_value(node: Node) -> bool:
    """Whether a node is made of literals alone."""
    waiting = [node]
    while waiting:
        item = waiting.pop()
        if item.type in _BLOCKS or item.type in ("unary_expression", "unary"):
            waiting.extend(children(item))
        elif text_of(item)[:40] in _NOTHING:
            continue
        elif not _ENDS_LITERAL.fullmatch(item.type):
            return False
        elif item.type in (
            "template_string",
            "string",
            "array_literal",
            "composite_literal",
            "func_literal",
        ):
            waiting.extend(children(item))
    return True


def _pure(node: Node) -> bool:
    waiting = [node]
    while waiting:
        item = waiting.pop()
        if _EFFECTS.search(item.type):
            return False
        waiting.extend(item.named_children)
    return True
