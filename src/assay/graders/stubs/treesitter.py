"""Read other languages than Python, by the grammars of tree-sitter (the extra ``languages``)."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol, cast

from assay.errors import MissingExtraError
from assay.graders.stubs import Code, Function, comment_says_todo
from assay.graders.stubs.treesitter_bodies import Node, body_of, children, text_at, text_of

_C_FUNCTIONS = frozenset({"function_definition"})
_JS_FUNCTIONS = frozenset(
    {
        *("function_declaration", "generator_function_declaration", "method_definition"),
        *("function_expression", "arrow_function", "generator_function"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """One language."""

    package: str
    entry: str = "language"
    functions: frozenset[str]
    classes: frozenset[str] = frozenset()
    interfaces: frozenset[str] = frozenset()
    # Whether a tree with errors means that the file does not parse. Not for C and C++, whose macros
    # no parser understands without the compiler.
    strict: bool = True


_JS_CLASSES = frozenset({"class_declaration", "class"})
_RUBY = frozenset({"method", "singleton_method", "block", "do_block"})
"""Functions of Ruby, which may be without a body; a block is one behind `define_method`."""
_TS_CLASSES = _JS_CLASSES | {"abstract_class_declaration", "interface_declaration"}

GRAMMARS = {
    "javascript": Grammar(
        package="tree_sitter_javascript", functions=_JS_FUNCTIONS, classes=_JS_CLASSES
    ),
    "typescript": Grammar(
        package="tree_sitter_typescript",
        entry="language_typescript",
        functions=_JS_FUNCTIONS,
        classes=_TS_CLASSES,
        interfaces=frozenset({"interface_declaration"}),
    ),
    "tsx": Grammar(
        package="tree_sitter_typescript",
        entry="language_tsx",
        functions=_JS_FUNCTIONS,
        classes=_TS_CLASSES,
        interfaces=frozenset({"interface_declaration"}),
    ),
    "go": Grammar(
        package="tree_sitter_go",
        functions=frozenset({"function_declaration", "method_declaration", "func_literal"}),
    ),
    "rust": Grammar(
        package="tree_sitter_rust",
        functions=frozenset({"function_item"}),
        classes=frozenset({"impl_item", "trait_item", "mod_item"}),
        interfaces=frozenset({"trait_item"}),
    ),
    "java": Grammar(
        package="tree_sitter_java",
        functions=frozenset({"method_declaration", "constructor_declaration"}),
        classes=frozenset(
            {
                *("class_declaration", "interface_declaration", "enum_declaration"),
                *("record_declaration", "annotation_type_declaration"),
            }
        ),
        interfaces=frozenset({"interface_declaration"}),
    ),
    "c": Grammar(package="tree_sitter_c", functions=_C_FUNCTIONS, strict=False),
    "cpp": Grammar(
        package="tree_sitter_cpp",
        functions=_C_FUNCTIONS,
        classes=frozenset({"class_specifier", "struct_specifier", "namespace_definition"}),
        strict=False,
    ),
    "ruby": Grammar(
        package="tree_sitter_ruby",
        functions=_RUBY,
        classes=frozenset({"class", "module", "singleton_class"}),
    ),
}
"""Every language that is read by tree-sitter, by the name `language_of` gives it."""


_BORN_QUIET = re.compile(r"~.*|constructor|initialize")
_DECLARED_QUIET = re.compile(r"@Override\b|\boverride\b|\bvirtual\b")
_TEST_ATTRIBUTE = re.compile(r"#\[\s*(?:(?:\w+\s*::\s*)*test\b|cfg\s*\(\s*test\s*\))")
_WORD = re.compile(r"[A-Za-z_]\w*")
_HERITAGE = frozenset(
    {
        *("class_heritage", "superclass", "super_interfaces", "base_class_clause"),
        *("extends_clause", "implements_clause", "extends_interfaces"),
    }
)


_BINDINGS = frozenset({"variable_declarator", "assignment_expression", "import_specifier", "pair"})
_MAKES = frozenset(
    {"attr_reader", "attr_accessor", "define_method", "alias_method", "def_delegator"}
)
_NO_VALUES = frozenset({"null", "undefined", "number", "function_expression", "arrow_function"})


class _TreeSitter(Protocol):
    Language: Callable[[object], object]
    Parser: Callable[[object], _Parser]


class _Tree(Protocol):
    root_node: Node


class _Parser(Protocol):
    def parse(self, source: bytes, /) -> _Tree: ...


def can_read(language: str) -> bool:
    """Whether this installation has the grammar of a language."""
    grammar = GRAMMARS.get(language)
    return grammar is not None and all(
        importlib.util.find_spec(name) is not None for name in ("tree_sitter", grammar.package)
    )


def require_grammar(language: str) -> None:
    """Refuse a language whose grammar is not installed."""
    if not can_read(language):
        raise MissingExtraError(f"implemented for {language}", extra="languages")


@lru_cache(maxsize=16)
def _parser(language: str) -> _Parser:
    grammar = GRAMMARS[language]
    library = cast("_TreeSitter", importlib.import_module("tree_sitter"))
    entry = cast(
        "Callable[[], object]", getattr(importlib.import_module(grammar.package), grammar.entry)
    )
    return library.Parser(library.Language(entry()))


def parse(source: bytes, language: str) -> Node:
    """The syntax tree of a source in one of the languages of `GRAMMARS`."""
    return _parser(language).parse(source).root_node


def read_tree(source: bytes, language: str) -> Code | str:
    """Read a file of one of the languages of `GRAMMARS`; as text, why it cannot be read."""
    grammar = GRAMMARS[language]
    root = parse(source, language)
    if root.has_error and grammar.strict:
        return f"does not parse: line {_first_error(root)}"
    reader = _Reader(grammar)
    reader.read(root)
    substance = any(
        child.type not in ("package_clause", "package_declaration") for child in children(root)
    )
    return Code(
        functions=tuple(reader.functions),
        bases=reader.bases,
        names=frozenset(reader.names),
        fingerprint=_fingerprint(root),
        substance=substance,
    )


@dataclass(frozen=True, slots=True)
class _Place:
    prefix: str = ""
    owner: str = ""
    interface: bool = False
    bases: bool = False
    nested: bool = False


@dataclass(slots=True)
class _Reader:
    grammar: Grammar
    functions: list[Function] = field(default_factory=list[Function])
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    names: set[str] = field(default_factory=set[str])

    def read(self, root: Node) -> None:
        """Walk the tree with a stack of our own: how deep it goes is the author's choice."""
        waiting = [(root, _Place())]
        while waiting:
            node, place = waiting.pop()
            inner = place
            if node.type in self.grammar.classes and node.is_named:
                inner = self._class(node, place)
            elif node.type in self.grammar.functions and node.is_named:
                function = _function(node, place)
                if function is not None:
                    self.functions.append(function)
                    inner = _Place(f"{function.name}.", nested=True)
            elif (name := _bound(node)) is not None:
                self.names.add(place.prefix + name)
            elif node.type in ("call", "alias") and not _defines(node):
                self.names.update(place.prefix + name for name in _made(node))
            waiting.extend((child, inner) for child in reversed([*_but_tests(children(node))]))

    def _class(self, node: Node, place: _Place) -> _Place:
        name = _class_name(node)
        bases = tuple(_base_names(node))
        if name:
            self.bases[name] = (*self.bases.get(name, ()), *bases)
        abstract = "abstract" in node.type or any(
            "abstract" in text_of(child) for child in children(node) if child.type == "modifiers"
        )
        return _Place(
            prefix=f"{place.prefix}{name}." if name else place.prefix,
            owner=name,
            interface=node.type in self.grammar.interfaces,
            bases=abstract or bool(bases),
            nested=place.nested,
        )


def _class_name(node: Node) -> str:
    if node.type == "impl_item":
        return "".join(_WORD.findall(text_at(node, "type"))[:1])
    return text_at(node, "name")


def _base_names(node: Node) -> Iterator[str]:
    yield from _WORD.findall(text_at(node, "trait"))[:1]
    for child in children(node):
        if child.type in _HERITAGE:
            words = _WORD.findall(text_of(child)[:2_000])
            yield from (w for w in words if w not in ("extends", "implements", "public", "virtual"))


def _but_tests(nodes: Iterable[Node]) -> Iterator[Node]:
    """Nodes without what Rust compiles for its tests alone: an empty test is not a stub."""
    is_test = False
    for node in nodes:
        if node.type == "attribute_item":
            is_test = is_test or _TEST_ATTRIBUTE.match(text_of(node)) is not None
        elif "comment" not in node.type:
            if not is_test:
                yield node
            is_test = False


def _function(node: Node, place: _Place) -> Function | None:
    """A function with a name and a body; None for a declaration or a mere callback."""
    name = _name(node)
    body = node.child_by_field_name("body")
    if not name or (body is None and node.type not in _RUBY):
        return None
    qualified, owner = _belongs(node, name, place)
    said = text_of(node)
    ending = body_of(body, is_method=bool(owner))
    if ending in ("constant", "nothing", "empty") and comment_says_todo(said):
        ending = "todo"
    elif ending in ("nothing", "empty") and any(
        child.type == "field_initializer_list" for child in children(node)
    ):
        ending = "real"  # a constructor of C++ may have all it does before its body
    head = said[: len(said) - len(text_of(body))] if body is not None else said
    inputs = _inputs(node)
    return Function(
        name=qualified,
        line=node.start_point[0] + 1,
        body=ending,
        inputs=inputs,
        fingerprint=_fingerprint(node),
        owner=owner,
        abstract=place.interface or ("@Override" in head and "UnsupportedOperation" in said),
        quiet=place.nested
        or place.bases
        or _DECLARED_QUIET.search(head) is not None
        or (short := name.rpartition("::")[2]) == owner
        or _BORN_QUIET.fullmatch(short) is not None
        or _is_callback(node, inputs=inputs),
    )


def _belongs(node: Node, name: str, place: _Place) -> tuple[str, str]:
    """The qualified name of a function, and its class: Go and C++ say it at the method."""
    receiver = node.child_by_field_name("receiver")
    if receiver is not None and node.type == "method_declaration":
        words = _WORD.findall(text_of(receiver).partition("[")[0])  # without its type parameters
        owner = words[-1] if words else ""
        return f"{owner}.{name}", owner
    if "::" in name:
        return name.replace("::", "."), name.split("::")[-2]
    return f"{place.prefix}{name}", place.owner


def _is_callback(node: Node, *, inputs: bool) -> bool:
    """What is often given only to be called: a value that takes nothing, a member of an object.

    So are methods of Go that take nothing: they mark a type.
    """
    parent = node.parent
    if parent is not None and parent.type in ("object", "pair"):
        return True
    kinds = ("arrow_function", "function_expression", "method_declaration")
    return not inputs and node.type in kinds


def _name(node: Node) -> str:
    if name := text_at(node, "name"):
        return name
    declarator = node.child_by_field_name("declarator")
    while declarator is not None:
        inner = declarator.child_by_field_name("declarator")
        if inner is None:
            return text_of(declarator)
        declarator = inner
    parent = node.parent
    if parent is not None and parent.type == "expression_list":  # of a variable of Go's
        parent = parent.parent
    if parent is None:
        return ""
    if parent.type == "export_statement":
        return "default"
    if node.type in ("block", "do_block"):
        return next(_made(parent), "") if parent.type == "call" and _defines(parent) else ""
    target = {
        "variable_declarator": "name",
        "assignment_expression": "left",
        "pair": "key",
        "var_spec": "name",
        "field_definition": "property",
        "public_field_definition": "name",
    }.get(parent.type)
    found = text_at(parent, target) if target else ""
    return found.removeprefix("module.").removeprefix("exports.")


def _inputs(node: Node) -> bool:
    if node.child_by_field_name("parameter") is not None:
        return True
    parameters = node.child_by_field_name("parameters")
    declarator = node.child_by_field_name("declarator")
    while parameters is None and declarator is not None:
        parameters = declarator.child_by_field_name("parameters")
        declarator = declarator.child_by_field_name("declarator")
    if parameters is None:
        return False
    counted = [c for c in children(parameters) if c.type != "self_parameter"]
    return bool(counted) and [text_of(c) for c in counted] != ["void"]


def _bound(node: Node) -> str | None:
    """What a declaration binds to anything that is neither a function of ours nor a constant."""
    if node.type not in _BINDINGS:
        return None
    value = node.child_by_field_name("value") or node.child_by_field_name("right")
    if value is not None and value.type in _NO_VALUES:
        return None
    for role in ("alias", "name", "left", "key"):
        if found := text_at(node, role):
            return found.removeprefix("module.").removeprefix("exports.")
    return None


def _made(node: Node) -> Iterator[str]:
    """Methods that a call or an alias of Ruby's makes."""
    said, arguments = text_at(node, "method"), node.child_by_field_name("arguments")
    if node.type == "alias":
        yield text_at(node, "name").lstrip(":")
    elif said in _MAKES and arguments is not None:
        words = [text_of(one).strip(":\"'") for one in children(arguments)]
        yield from words if said.startswith("attr") else words[:1]


def _defines(call: Node) -> bool:
    """Whether the block behind a call is the body of a method."""
    is_behind = call.child_by_field_name("block") is not None
    return is_behind and text_at(call, "method") == "define_method"


def _first_error(root: Node) -> int:
    waiting: list[Node] = [root]
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            return node.start_point[0] + 1
        waiting.extend(child for child in reversed(node.children) if child.has_error)
    return root.start_point[0] + 1


def _fingerprint(root: Node) -> str:
    """A digest of the tokens of a tree, without its comments."""
    digest = hashlib.sha256()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if "comment" in node.type:
            continue
        if node.children:
            waiting.extend(reversed(node.children))
        else:
            digest.update((node.text or b"") + b"\0")
    return digest.hexdigest()
