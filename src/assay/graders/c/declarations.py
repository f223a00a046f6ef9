"""Read what C headers declare, from their preprocessed text (tree-sitter, extra ``languages``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from assay.graders.stubs.treesitter import parse
from assay.graders.stubs.treesitter_bodies import Node, children, text_of

_MARKER = re.compile(r'#\s*(?:line\s+)?\d+\s+"((?:[^"\\]|\\.)*)"')
_BUILT_IN = {
    **dict.fromkeys(("_Bool", "bool"), "bool"),
    **dict.fromkeys(("__int128", "_Float128", "__builtin_va_list"), "unknown"),
    "void": "void",
}
_BASES = frozenset(
    {
        *("primitive_type", "sized_type_specifier", "type_identifier", "enum_specifier"),
        *("struct_specifier", "union_specifier"),
    }
)


@dataclass(frozen=True, slots=True)
class CType:
    """A type."""

    # What it is, seen through its typedefs; ``plain`` for numbers and enumerations.
    kind: Literal[
        "void", "plain", "bool", "struct", "union", "pointer", "array", "function", "unknown"
    ]
    # How C spells it, without a ``const`` of its own; empty where it has no spelling.
    text: str = ""
    const: bool = False
    target: CType | None = None
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """A member of a structure; without a name where C lets it have none."""

    name: str
    type: CType
    bits: bool = False


@dataclass(frozen=True, slots=True)
class DeclaredParameter:
    """A parameter of a function; ``size``: the number of elements that its array declares."""

    name: str
    type: CType
    size: str = ""


@dataclass(frozen=True, slots=True)
class DeclaredFunction:
    """A function that is declared and not defined."""

    name: str
    returns: CType
    parameters: tuple[DeclaredParameter, ...]
    variadic: bool = False


@dataclass(slots=True)
class Declarations:
    """Everything that a preprocessed header declares."""

    functions: dict[str, DeclaredFunction] = field(default_factory=dict[str, DeclaredFunction])
    variables: set[str] = field(default_factory=set[str])
    structures: dict[str, tuple[Field, ...]] = field(default_factory=dict[str, tuple[Field, ...]])


def read_declarations(preprocessed: str, is_own: Callable[[str], bool]) -> Declarations:
    """Read a header."""
    lines: list[str] = []
    files: list[str] = []
    here = ""
    for line in preprocessed.splitlines():
        marker = _MARKER.match(line)
        if marker:
            here = marker[1]
        lines.append("" if line.startswith("#") else line)
        files.append(here)
    own = {name: is_own(name) for name in set(files)}
    reader = _Reader([own[name] for name in files])
    for node in children(parse("\n".join(lines).encode(), "c")):
        reader.read(node)
    for name in reader.defined:
        reader.found.functions.pop(name, None)
    return reader.found


class _Reader:
    def __init__(self, own_lines: list[bool]) -> None:
        self.found = Declarations()
        self.defined: set[str] = set()
        self._own = own_lines
        self._typedefs: dict[str, CType] = {}

    def read(self, node: Node) -> None:
        if node.type == "type_definition":
            base = self._base(node)
            for declarator in _declarators(node, "type_identifier"):
                name, type_, _ = self._declared(base, declarator)
                if name:
                    self._typedefs[name] = replace(type_, text=name)
        elif node.type == "declaration":
            self._declaration(node)
        elif node.type == "function_definition":
            self._base(node)
            for declarator in _declarators(node, "identifier"):
                self.defined.add(self._declared(CType("void"), declarator)[0])
        elif node.type in _BASES:
            self._specified(node)
        elif node.is_error:
            for child in children(node):
                self.read(child)

    def _declaration(self, node: Node) -> None:
        base = self._base(node)
        if not self._own[node.start_point[0]]:
            return
        for declarator in _declarators(node, "identifier"):
            name, type_, parameters = self._declared(base, declarator)
            if parameters is not None and type_.kind == "function" and type_.target is not None:
                read = self._parameters(parameters)
                if "static" not in _words(node):
                    variadic = any(c.type == "variadic_parameter" for c in children(parameters))
                    self.found.functions[name] = DeclaredFunction(
                        name, type_.target, read, variadic
                    )
            elif name:
                self.found.variables.add(name)

    def _base(self, node: Node) -> CType:
        """The type that a declaration begins with."""
        specifier = node.child_by_field_name("type")
        found = CType("unknown") if specifier is None else self._specified(specifier)
        return replace(found, const=found.const or _is_const(node))

    def _specified(self, node: Node) -> CType:
        words = text_of(node)
        if node.type == "type_identifier" or words in _BUILT_IN:
            kind = _BUILT_IN.get(words)
            if kind is not None:
                return CType(kind, words)  # pyright: ignore[reportArgumentType] - from our table
            return self._typedefs.get(words, CType("unknown", words))
        if node.type in ("primitive_type", "sized_type_specifier"):
            return CType("plain", words)
        tag = node.child_by_field_name("name")
        name = "" if tag is None else text_of(tag)
        if node.type == "enum_specifier":
            return CType("plain", f"enum {name}" if name else "")
        kind = "struct" if node.type == "struct_specifier" else "union"
        key = f"{kind} {name}" if name else f"{kind} at {node.start_point}"
        body = node.child_by_field_name("body")
        if body is not None:
            self.found.structures[key] = tuple(self._fields(body))
        return CType(kind, f"{kind} {name}" if name else "", tag=key)

    def _fields(self, body: Node) -> Iterator[Field]:
        for member in children(body):
            if member.type != "field_declaration":
                continue
            base = self._base(member)
            bits = any(child.type == "bitfield_clause" for child in children(member))
            declarators = [*_declarators(member, "field_identifier")]
            for declarator in declarators:
                name, type_, _ = self._declared(base, declarator)
                yield Field(name, type_, bits)
            if not declarators:
                yield Field("", base, bits)

    def _declared(self, base: CType, node: Node | None) -> tuple[str, CType, Node | None]:
        """Name and type of a declarator, and the parameters if it is a function's."""
        type_, parameters = base, None
        while node is not None:
            inner = node.child_by_field_name("declarator")
            if "pointer_declarator" in node.type:
                type_, parameters = _pointer(type_, const=_is_const(node)), None
            elif "array_declarator" in node.type:
                type_, parameters = CType("array", const=type_.const, target=type_), None
            elif "function_declarator" in node.type:
                type_ = CType("function", target=type_)
                parameters = node.child_by_field_name("parameters")
            elif "parenthesized" in node.type:
                inner = next(iter(children(node)), None)
            else:
                return text_of(node), type_, parameters
            node = inner
        return "", type_, parameters

    def _parameters(self, node: Node) -> tuple[DeclaredParameter, ...]:
        found: list[DeclaredParameter] = []
        for child in children(node):
            if child.type != "parameter_declaration":
                continue
            declarator = child.child_by_field_name("declarator")
            name, type_, _ = self._declared(self._base(child), declarator)
            size = ""
            if type_.kind == "array" and type_.target is not None:
                given = declarator and declarator.child_by_field_name("size")
                size = text_of(given) if given is not None else "[]"
                type_ = _pointer(type_.target)
            found.append(DeclaredParameter(name, type_, size))
        only = found[0] if len(found) == 1 else None
        return () if only and only.type.kind == "void" and not only.name else tuple(found)


def _pointer(target: CType, *, const: bool = False) -> CType:
    spelled = f"{'const ' if target.const and target.kind != 'pointer' else ''}{target.text}"
    if target.const and target.kind == "pointer":
        spelled += " const"
    return CType("pointer", f"{spelled} *" if target.text else "", const=const, target=target)


def _declarators(node: Node, leaf: str) -> Iterator[Node]:
    base = node.child_by_field_name("type")
    for child in children(node):
        if child.type == "init_declarator":
            inner = child.child_by_field_name("declarator")
            if inner is not None:
                yield inner
        elif child.type.endswith("_declarator") or (child.type == leaf and child != base):
            yield child


def _is_const(node: Node) -> bool:
    return "const" in _words(node)


def _words(node: Node) -> set[str]:
    """The qualifiers and storage classes that stand directly in a declaration."""
    kinds = ("type_qualifier", "storage_class_specifier")
    return {text_of(child) for child in children(node) if child.type in kinds}


def identifiers(source: str) -> frozenset[str]:
    """Every word of a C source that could be a name."""
    return frozenset(re.findall(r"[A-Za-z_]\w*", source))


def functions_of_tests(source: str) -> tuple[tuple[str, ...], bool]:
    """The functions ``void test_x(void)`` of a test file, and whether it has a ``main``."""
    names: list[str] = []
    program = False
    for node in children(parse(source.encode(), "c")):
        head = (
            node.child_by_field_name("declarator") if node.type == "function_definition" else None
        )
        if head is None:
            continue
        name = head.child_by_field_name("declarator")
        said, given = (
            text_of(name) if name is not None else "",
            head.child_by_field_name("parameters"),
        )
        program = program or said == "main"
        takes = [text_of(child) for child in children(given)] if given is not None else ["?"]
        returned = node.child_by_field_name("type")
        plain = returned is not None and text_of(returned) == "void" and takes in ([], ["void"])
        if said.startswith("test_") and plain:
            names.append(said)
    return tuple(names), program
