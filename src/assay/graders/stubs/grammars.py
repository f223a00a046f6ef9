"""What the grammars of tree-sitter call things, language by language."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GRAMMARS", "Grammar"]

_C_FUNCTIONS = frozenset({"function_definition"})
_JS_FUNCTIONS = frozenset(
    {
        *("function_declaration", "generator_function_declaration", "method_definition"),
        *("function_expression", "arrow_function", "generator_function"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """One language.

    Attributes:
        package: The package that brings its grammar.
        entry: The function of the package that returns it.
        functions: Node types of functions and methods that may have a body.
        classes: Node types of what holds methods.
        interfaces: Those of them whose methods others fill in.
        strict: Whether a tree with errors means that the file does not parse. Not for C and C++,
            whose macros no parser understands without the compiler.
    """

    package: str
    entry: str = "language"
    functions: frozenset[str]
    classes: frozenset[str] = frozenset()
    interfaces: frozenset[str] = frozenset()
    strict: bool = True


_JS_CLASSES = frozenset({"class_declaration", "class"})
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
        functions=frozenset({"function_declaration", "method_declaration"}),
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
        functions=frozenset({"method", "singleton_method"}),
        classes=frozenset({"class", "module", "singleton_class"}),
    ),
}
"""Every language that is read by tree-sitter, by the name `language_of` gives it."""
