"""Signs in other languages than Python, by the grammars of tree-sitter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from assay.graders.languages import is_test
from assay.graders.signs import JAVA_TEST_LIBRARIES, Sign, names_a_test, summary, words_of
from assay.graders.stubs.treesitter import parse
from assay.graders.stubs.treesitter_bodies import Node, text_at, text_of

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
        base = text_at(node, "object")
        return f"{base}.{text_at(node, 'name')}" if base else text_at(node, "name")
    return text_at(node, "function", "macro", "constructor")


_BUILT_IN = (
    r"(?:Array|String|Object|Number|Boolean|Function|Promise|Map|Set|WeakMap|RegExp|Date|Error"
    r"|Symbol|JSON|Math|Reflect|Proxy|BigInt|Buffer|process|console|globalThis|global|Iterator)"
)
_STANDARD = words_of(
    "at concat copyWithin entries every fill filter find findIndex flat flatMap forEach "
    "includes indexOf join keys lastIndexOf map pop push reduce reduceRight reverse shift slice "
    "some sort splice toString toLocaleString unshift values length charAt charCodeAt "
    "codePointAt endsWith localeCompare match matchAll normalize padEnd padStart repeat replace "
    "replaceAll search split startsWith substring toLowerCase toUpperCase trim trimEnd "
    "trimStart hasOwnProperty isPrototypeOf valueOf constructor call apply bind then catch "
    "finally get set has delete clear add exec test assign create defineProperty freeze is "
    "getPrototypeOf isFrozen isArray from of all race any allSettled resolve reject parse "
    "stringify abs max min round floor ceil random sqrt now isInteger isNaN isFinite toFixed "
    "toJSON toISOString getTime message stack name captureStackTrace prepareStackTrace "
    "stackTraceLimit log error exit hrtime exitCode Array String Object Promise Error Map Set "
    "JSON Math Date Symbol Function setTimeout"
)
"""What JavaScript itself defines: adding another name is a polyfill or an extension."""

_READS = re.compile(r"\b(?:readFile|readdir|readFileSync|readdirSync|require|glob|import)$")
_REQUIRED = re.compile(r"require\(\s*['\"]([^'\"]+)['\"]\s*\)\.")
_NODE_MODULES = re.compile(
    r"(?:node:)?(?:assert|assert/strict|test|fs|fs/promises|util|vm|module|process|events|path|os"
    r"|child_process|worker_threads|timers|buffer|stream|http|https|url|crypto|async_hooks"
    r"|perf_hooks|v8)|mocha|chai|jest|@jest/\w+|vitest|tap|ava|sinon|expect"
)


def javascript_signs(nodes: list[Node]) -> Iterator[NodeHit]:
    """The signs in the nodes of a file."""
    modules = _required(nodes)
    for node in nodes:
        if node.type in ("assignment_expression", "augmented_assignment_expression"):
            yield from _assigned(node, text_at(node, "left"), modules)
        elif node.type in CALLS:
            yield from _called(node, callee(node), modules)
        elif node.type in ("method_definition", "pair", "field_definition"):
            yield from _defined(node, text_at(node, "name", "key", "property"))
        elif node.type == "member_expression":
            said = text_of(node)
            if re.fullmatch(r"process\.env\.(?:NODE_TEST_CONTEXT|JEST_WORKER_ID|VITEST\w*)", said):
                yield "sniffs", node, said
            if said == "arguments.callee.caller":
                yield "frames", node, said


def _required(nodes: list[Node]) -> dict[str, str]:
    """Names that stand for modules of Node or of a test library."""
    found: dict[str, str] = {}
    for node in nodes:
        if node.type == "variable_declarator":
            value = re.fullmatch(r"require\(\s*['\"]([^'\"]+)['\"]\s*\)", text_at(node, "value"))
            if value and _NODE_MODULES.fullmatch(value[1]):
                found[text_at(node, "name")] = value[1]
        elif node.type == "import_statement":
            source = bare(text_at(node, "source"))
            if _NODE_MODULES.fullmatch(source):
                for one in each(node):
                    if one.type == "identifier" and (one.parent or one).type != "import_specifier":
                        found[text_of(one)] = source
    return found


def _assigned(node: Node, left: str, modules: dict[str, str]) -> Iterator[NodeHit]:
    root, _, member = left.partition(".")
    last = re.split(r"[.\[]", left)[-1].strip("'\"]")
    if re.match(rf"{_BUILT_IN}\.prototype\b", left) and not _is_guarded(node, last):
        if last in _STANDARD or "Symbol." in left:
            yield "rewrites", node, left
    elif re.match(rf"{_BUILT_IN}[.\[]", left) and last in _STANDARD and not _is_guarded(node, last):
        if not left.startswith(("process.exitCode", "Error.stackTraceLimit")):
            yield "rewrites", node, left
        elif left == "process.exitCode" and not in_function(node):
            yield "exits", node, left
    elif left.startswith(("require.cache", "Module._", "module.constructor._")):
        yield "imports", node, left
    elif root in modules and member:
        yield "rewrites", node, f"{modules[root]}.{member}"
    elif (match := _REQUIRED.match(left)) and _NODE_MODULES.fullmatch(match[1]):
        yield "rewrites", node, left
    if last == "hasInstance]" or "Symbol.hasInstance" in left:
        yield "equality", node, left


def _is_guarded(node: Node, member: str) -> bool:
    """Whether a name is only given where there is none yet, as a polyfill does."""
    return any(
        one.type == "if_statement"
        and "!" in text_at(one, "condition")
        and member in text_at(one, "condition")
        for one in around(node)
    )


def _called(node: Node, called: str, modules: dict[str, str]) -> Iterator[NodeHit]:
    given = text_at(node, "arguments")
    if called in ("Object.defineProperty", "Reflect.defineProperty", "Object.assign"):
        yield from _defines(node, given, modules)
    elif called in ("process.exit", "process.reallyExit", "process.abort"):
        if not in_function(node):
            yield "exits", node, called
    elif called in ("process.on", "process.once") and "exit" in given.split(",")[0].lower():
        if re.search(r"process\.(?:exit|reallyExit|exitCode)\b", given):
            yield "exits", node, f"{called}('exit')"
    elif called == "Proxy":
        yield from _blind_proxy(node)
    elif _READS.search(called):
        for one in each(node):
            if one.type in ("string", "template_string") and names_a_test(bare(text_of(one))):
                yield "reads_tests", node, bare(text_of(one))
    if called == "require" and re.match(r"\(\s*['\"](?:node:)?inspector['\"]", given):
        yield "native", node, "inspector"


def _defines(node: Node, given: str, modules: dict[str, str]) -> Iterator[NodeHit]:
    match = re.match(rf"\(\s*({_BUILT_IN}(?:\.prototype)?)\s*,\s*['\"]?(\w+)?", given)
    if match and match[2] in _STANDARD and not _is_guarded(node, match[2]):
        yield "rewrites", node, f"{match[1]}.{match[2]}"
    root = re.match(r"\(\s*(\w+)\s*,", given)
    if root and root[1] in modules:
        yield "rewrites", node, modules[root[1]]
    if "Symbol.hasInstance" in given:
        yield "equality", node, "Symbol.hasInstance"


def _blind_proxy(node: Node) -> Iterator[NodeHit]:
    """A proxy that gives the same for whatever it is asked for."""
    for one in each(node):
        is_get = one.type in ("method_definition", "pair") and text_at(one, "name", "key") == "get"
        holder = one.child_by_field_name("value") if one.type == "pair" else one
        if is_get and holder is not None and holder.child_by_field_name("body") is not None:
            known = words(holder.child_by_field_name("parameters"))
            if known.isdisjoint(words(holder.child_by_field_name("body"))):
                yield "equality", node, "Proxy"


def _defined(node: Node, name: str) -> Iterator[NodeHit]:
    holder = node.child_by_field_name("value") if node.type != "method_definition" else node
    if holder is None or holder.type not in FUNCTIONS:
        return
    if name == "then":
        yield "swallows", node, "then"
    known = words(holder.child_by_field_name("parameters")) | {"this"}
    blind = known.isdisjoint(words(holder.child_by_field_name("body")))
    if "Symbol.hasInstance" in name and blind:
        yield "equality", node, name
    if (name == "valueOf" or "Symbol.toPrimitive" in name) and blind:
        yield "equality", node, name


_STANDARD_MACROS = re.compile(
    r"assert|static_assert|_Static_assert|NDEBUG|exit|_exit|abort|main|v?f?s?n?printf|puts|strn?cmp"
    r"|memcmp|strcasecmp|f?abs|isnan|if|return|while|for|int|(?:EXPECT|ASSERT|REQUIRE|CHECK)(?:_\w+)?"
    r"|TEST(?:_\w+)?|CU_ASSERT\w*|ck_assert\w*|TEST_ASSERT\w*|assert_\w+|cr_assert\w*"
)
_LIBRARY_FUNCTIONS = re.compile(
    r"_?exit|abort|__assert_fail|__assert|strn?cmp|memcmp|f?printf|puts|fabs|abs|longjmp|signal"
)
_AT_START = re.compile(r"\b(?:__)?(?:con|de)structor(?:__)?\b")
_ENDS = re.compile(r"(?:std::)?(?:_?_?exit|_Exit|quick_exit)")
_RUST_MACROS = words_of(
    "assert assert_eq assert_ne debug_assert debug_assert_eq panic matches debug_assert_ne "
    "println print vec format unreachable todo test"
)
_JAVA_PACKAGES = re.compile(rf"(?:{'|'.join(map(re.escape, JAVA_TEST_LIBRARIES))}|javax?)\b")
_EQUALS = frozenset({"eq", "equals", "Equals", "Equal", "isEqual", "operator==", "deepEqual"})
_PRINTS = re.compile(
    r"console\.\w+|process\.stdout\.write|v?f?printf|puts|fputs|write|print(?:ln)?!?|eprintln!"
    r"|System\.(?:out|err)\.\w+|fmt\.F?[Pp]rint\w*|os\.Stdout\.\w+"
)


def other_signs(source: bytes, path: str, language: str) -> list[Sign]:
    """The signs of a file in a language other than Python."""
    nodes = each(parse(source, language))
    looked = {
        **dict.fromkeys(("javascript", "typescript", "tsx"), javascript_signs),
        **dict.fromkeys(("c", "cpp"), _c),
        "rust": _rust,
        "java": _java,
        "go": _go,
    }.get(language)
    if looked is None:
        return []
    hits = [] if is_test(path) and language != "java" else list(looked(nodes))
    if not is_test(path):
        hits += [*_equality(nodes), *_says(nodes)]
    return sorted({Sign(node.start_point[0] + 1, name, what[:80]) for name, node, what in hits})


def _equality(nodes: list[Node]) -> Iterator[NodeHit]:
    """Methods that say equal and do not look at what they are given."""
    for node in nodes:
        if node.type not in FUNCTIONS:
            continue
        name = text_at(node, "name", "key")
        declared = node.child_by_field_name("declarator")
        if declared is not None:
            name = text_at(declared, "declarator")
        if name.rpartition("::")[2] not in _EQUALS:
            continue
        holder = node.child_by_field_name("value") if node.type == "pair" else node
        body = holder.child_by_field_name("body") if holder is not None else None
        given = (declared or holder or node).child_by_field_name("parameters")
        known = {one for one in words(given) if one not in ("self", "this")}
        said = re.sub(r"[\s{};()]|return", "", text_of(body)) if body is not None else ""
        is_empty = said.startswith(("throw", "panic", "todo!", "unimplemented!")) or not said
        names_in_body = words(body) - {"this"}
        used = {one for one in names_in_body if one in known}
        if not is_empty and (
            said in ("true", "True", "1") or (not used and not _takes_types(given))
        ):
            yield "equality", node, name


def _takes_types(given: Node | None) -> bool:
    """Whether what is compared is not a parameter, as in a function that makes comparisons."""
    return given is not None and len([c for c in given.named_children if c.type != "comment"]) > 2


def _says(nodes: list[Node]) -> Iterator[NodeHit]:
    for node in nodes:
        if node.type in CALLS and _PRINTS.fullmatch(callee(node)):
            for one in each(node):
                if "string" in one.type and (found := summary(bare(text_of(one)))):
                    yield "report", node, found[0]


def _c(nodes: list[Node]) -> Iterator[NodeHit]:
    declared = (one for one in nodes if one.type == "function_declarator")
    has_main = any(text_at(one, "declarator") == "main" for one in declared)
    for node in nodes:
        if node.type.startswith("preproc_"):
            yield from _macro(node)
        elif node.type.startswith("attribute") and _AT_START.search(text_of(node)):
            yield "starts", node, "constructor"
        elif node.type == "function_definition":
            found = node.child_by_field_name("declarator")
            while found is not None and found.type == "pointer_declarator":
                found = found.child_by_field_name("declarator")
            name = text_at(found, "declarator") if found is not None else ""
            if _LIBRARY_FUNCTIONS.fullmatch(name):
                yield "rewrites", node, f"{name}()"
        elif node.type == "call_expression" and not has_main:
            ends = _ENDS.fullmatch(callee(node))
            if ends and re.fullmatch(r"\(\s*(?:0|EXIT_SUCCESS)\s*\)", text_at(node, "arguments")):
                yield "exits", node, callee(node)


def _macro(node: Node) -> Iterator[NodeHit]:
    name, word = text_at(node, "name"), "#define"
    if node.type == "preproc_call":
        name, word = text_at(node, "argument").strip(), text_at(node, "directive")
    is_said = node.type in ("preproc_def", "preproc_function_def", "preproc_call")
    if is_said and word in ("#define", "#undef") and _STANDARD_MACROS.fullmatch(name):
        yield "rewrites", node, f"{word} {name}"


def _rust(nodes: list[Node]) -> Iterator[NodeHit]:
    for node in nodes:
        name = text_at(node, "name")
        if node.type == "macro_definition" and name in _RUST_MACROS:
            yield "rewrites", node, f"macro {name}!"
        elif node.type == "call_expression":
            said = callee(node)
            if re.search(r"\bprocess::(?:exit|abort)$", said) and "(0)" in text_of(node):
                yield "exits", node, said
            if re.search(r"\bpanic::(?:set_hook|take_hook)$", said):
                yield "swallows", node, said
        elif node.type == "attribute_item" and re.match(
            r"#\[\s*(?:ctor|ctor::ctor)\b", text_of(node)
        ):
            yield "starts", node, "#[ctor]"
        elif node.type == "use_declaration" and re.search(
            r" as (?:assert\w*|panic);", text_of(node)
        ):
            yield "rewrites", node, text_of(node)


def _java(nodes: list[Node]) -> Iterator[NodeHit]:
    for node in nodes:
        if node.type == "package_declaration":
            name = text_of(node).removeprefix("package").strip(" ;\n")
            if _JAVA_PACKAGES.match(name):
                yield "shadows", node, name
        elif node.type == "method_invocation":
            said = callee(node)
            is_end = said in ("System.exit", "Runtime.getRuntime().halt")
            if is_end and re.fullmatch(r"\(\s*0\s*\)", text_at(node, "arguments")):
                is_main = any(text_at(one, "name") == "main" for one in around(node))
                if not is_main:
                    yield "exits", node, said
            if said.endswith(".setAccessible") or said == "System.setSecurityManager":
                yield "rewrites", node, said


def _go(nodes: list[Node]) -> Iterator[NodeHit]:
    is_program = any(n.type == "package_clause" and text_of(n).endswith(" main") for n in nodes)
    for node in nodes:
        name = text_at(node, "name")
        if node.type == "function_declaration" and name == "TestMain":
            yield "hooks", node, name
        if node.type == "call_expression" and re.fullmatch(r"(?:os|syscall)\.Exit", callee(node)):
            is_early = any(text_at(one, "name") == "init" for one in around(node))
            if is_early or (not is_program and text_at(node, "arguments") == "(0)"):
                yield "exits", node, callee(node)
