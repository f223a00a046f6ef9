"""Find the tests that an injected source declares, by reading it and running nothing.

What a runner reports can be less than what was injected: a solution that ends the process leaves
tests unheard. The names found here say which. Only literal names are found; a name that is
computed, or a test that a macro makes, is not, and so is not missed either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal, TypeAlias

from assay.graders.testing.javascript_ids import computed_names, read_javascript
from assay.graders.testing.lexing import C_LIKE, RUST, blank, closing

__all__ = [
    "Language",
    "StaticTests",
    "is_computed",
    "language_of",
    "matches_id",
    "read_static_tests",
    "unheard",
]

Language: TypeAlias = Literal["go", "java", "javascript", "rust"]

_SUFFIXES: Mapping[str, Language] = {
    ".cjs": "javascript",
    ".cts": "javascript",
    ".go": "go",
    ".java": "java",
    ".js": "javascript",
    ".jsx": "javascript",
    ".mjs": "javascript",
    ".mts": "javascript",
    ".rs": "rust",
    ".ts": "javascript",
    ".tsx": "javascript",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticTests:
    """Tests that a source declares.

    Attributes:
        names: What is expected to run: ``TestAdd``, ``tests::adds``, ``KitTest::adds``,
            ``math > adds``.
        skipped: Names that the source itself always leaves out (``#[ignore]``, ``@Disabled``,
            ``it.skip``).
    """

    names: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


def language_of(path: str) -> Language | None:
    """The language of a file by its suffix; None for one whose tests are not found here."""
    return _SUFFIXES.get(PurePosixPath(path).suffix)


def read_static_tests(path: str, text: str) -> StaticTests:
    """Find the tests of one source.

    Args:
        path: Path in the workspace; its suffix says the language.
        text: The source.
    """
    language = language_of(path)
    if language is None or (language == "go" and not path.endswith("_test.go")):
        return StaticTests()
    found: dict[str, bool] = {}
    for name, skipped in _READERS[language](text):
        found[name] = found.get(name, True) and skipped
    return StaticTests(
        names=tuple(name for name, skipped in found.items() if not skipped),
        skipped=tuple(name for name, skipped in found.items() if skipped),
    )


_RUST_COMPUTED = re.compile(
    r"\b(?:fn|mod)\s+\$|\bfn\s+\w*~|\b(?:paste|seq)!|#\[\s*(?:\w+\s*::\s*)*(?:rstest|test_case|case"
    r"|test_matrix|parameterized|quickcheck|wasm_bindgen_test|test_log|traced_test)\b"
)


def is_computed(path: str, text: str) -> bool:
    """Whether a source may have tests whose names are not written in it as they are reported."""
    language = language_of(path)
    if language == "javascript":
        parts, anything = computed_names(text)
        return bool(parts) or anything
    return language == "rust" and bool(_RUST_COMPUTED.search(blank(text, RUST)))


def matches_id(name: str, test_id: str) -> bool:
    """Whether a runner's id means a test found here.

    Runners put packages, files and suites in front (``kit::tests::adds``, ``org.KitTest::adds``)
    and parameters or subtests behind (``adds(int)[1]``, ``TestAdd/two``).
    """
    start = test_id.rfind(name)
    while start >= 0:
        before, after = test_id[:start], test_id[start + len(name) :]
        if (not before or before.endswith(("::", " > ", ".", "/", " "))) and (
            not after or after[0] in "([/{" or after.startswith((" > ", " #", "#"))
        ):
            return True
        start = test_id.rfind(name, 0, start)
    return False


def unheard(names: Collection[str], ids: Collection[str]) -> tuple[str, ...]:
    """Those of the names that no id stands for."""
    return tuple(name for name in names if not any(matches_id(name, one) for one in ids))


_GO_TEST = re.compile(
    r"^func\s+(?P<name>Test(?![a-z])\w*)\s*\(\s*(?P<t>\w+)\s+\*\w+\.T\s*\)\s*\{", re.MULTILINE
)
_GO_RUN = re.compile(
    r"\.Run\(\s*(?:(?P<quote>[\"`])(?P<name>[^\"`]*)(?P=quote)|[^,()]*(?:\([^()]*\))?)\s*,"
    r"\s*func\s*\(\s*(?P<t>\w+)\s+\*\w+\.T\s*\)\s*\{"
)
_GO_SKIP = re.compile(r"\s*(?:\w+\.(?:Helper|Parallel)\(\)\s*;?\s*)*(?P<t>\w+)\.Skip(?:f|Now)?\(")


def _go(text: str) -> Iterator[tuple[str, bool]]:
    """Tests; and of subtests with literal names those whose first statement skips them."""
    code = blank(text, C_LIKE)
    around: list[tuple[int, int, str | None]] = []
    subtests: dict[str, bool] = {}
    found = [*_GO_TEST.finditer(code), *_GO_RUN.finditer(code)]
    for match in sorted(found, key=lambda one: one.start()):
        skip = _GO_SKIP.match(code, match.end())
        skipped = skip is not None and skip["t"] == match["t"]
        start, end = match.start(), closing(code, match.end() - 1, "{}")
        if match.re is _GO_TEST:
            around = [(start, end, match["name"])]
            if match["name"] != "TestMain":
                yield match["name"], skipped
            continue
        name = text[match.start("name") : match.end("name")] if match["quote"] else None
        around.append((start, end, name and re.sub(r"\s", "_", name)))
        path = [one for begin, stop, one in around if begin <= start < stop]
        if len(path) > 1:
            full = "/".join(one or "\0" for one in path)
            subtests[full] = subtests.get(full, True) and skipped
    yield from ((name, True) for name, skipped in subtests.items() if skipped and "\0" not in name)


_RUST_TEST = re.compile(
    r"#\[\s*(?:\w+\s*::\s*)*test\s*(?:\([^\]]*\))?\]"
    r"(?P<attributes>(?:\s*#\[[^\]]*\])*)\s*(?:pub\s*(?:\([^)]*\)\s*)?)?(?:async\s+)?fn\s+(?P<name>\w+)"
)
_RUST_ATTRIBUTES = re.compile(r"(?:#\[[^\]]*\]\s*)+$")
_RUST_MODULE = re.compile(r"\bmod\s+(?P<name>\w+)\s*\{")


def _rust(text: str) -> Iterator[tuple[str, bool]]:
    code = blank(text, RUST)
    modules = [
        (match.start(), closing(code, match.end() - 1, "{}"), match["name"])
        for match in _RUST_MODULE.finditer(code)
    ]
    for match in _RUST_TEST.finditer(code):
        above = _RUST_ATTRIBUTES.search(code[max(0, match.start() - 2000) : match.start()])
        attributes = match["attributes"] + (above.group() if above else "")
        path = [name for start, end, name in modules if start < match.start() < end]
        yield "::".join([*path, match["name"]]), bool(re.search(r"#\[\s*ignore\b", attributes))


_JAVA_ANNOTATION = r"@[\w.]+(?:\s*\((?:[^()]|\([^()]*\))*\))?\s*"
_JAVA_MODIFIERS = r"(?:(?:public|protected|private|static|final|abstract|synchronized)\s+)*"
_JAVA_CLASS = re.compile(
    rf"(?P<annotations>(?:{_JAVA_ANNOTATION}){{0,12}}){_JAVA_MODIFIERS}"
    r"\b(?:class|record|interface)\s+(?P<name>\w+)[^{;]*\{"
)
_JAVA_TEST = re.compile(
    rf"(?P<annotations>(?:{_JAVA_ANNOTATION}){{1,12}}){_JAVA_MODIFIERS}(?:<[^>]*>\s*)?"
    r"[\w.<>\[\]?, ]+?\s+(?P<name>\w+)\s*\("
)
_JAVA_MARK = re.compile(r"@(?:[\w.]+\.)?(?:Test|ParameterizedTest|RepeatedTest|TestFactory)\b")
_JAVA_SKIP = re.compile(
    r"@(?:[\w.]+\.)?(?:(?:Disabled|Ignore)\b|Test\s*\([^()]*\benabled\s*=\s*false\b)"
)


def _java(text: str) -> Iterator[tuple[str, bool]]:
    """Methods; and classes that are left out as a whole, which some runners report as one test."""
    code = blank(text, C_LIKE)
    classes = [
        (
            match.start(),
            closing(code, match.end() - 1, "{}"),
            match["name"],
            bool(_JAVA_SKIP.search(match["annotations"])),
        )
        for match in _JAVA_CLASS.finditer(code)
    ]
    for match in _JAVA_TEST.finditer(code):
        if not _JAVA_MARK.search(match["annotations"]):
            continue
        around = [one for one in classes if one[0] < match.start("name") < one[1]]
        skipped = bool(_JAVA_SKIP.search(match["annotations"]))
        path = "$".join(name for _, _, name, _ in around)
        yield f"{path}::{match['name']}", skipped or any(one[3] for one in around)
    for start, end, _, skipped in classes:
        if skipped:
            yield (
                "$".join(
                    name for begin, stop, name, _ in classes if begin <= start and end <= stop
                ),
                True,
            )


_READERS: Mapping[Language, Callable[[str], Iterator[tuple[str, bool]]]] = {
    "go": _go,
    "java": _java,
    "javascript": read_javascript,
    "rust": _rust,
}
