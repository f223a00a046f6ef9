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

__all__ = ["Language", "StaticTests", "language_of", "matches_id", "read_static_tests", "unheard"]

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


_C_LIKE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`""", re.DOTALL
)
# A quote may begin a lifetime, a raw string has its own end, and comments may hold comments.
_RUST = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<hashes>#*)".*?"(?P=hashes)|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'""",
    re.DOTALL,
)


def _blank(text: str, pattern: re.Pattern[str], *, strings: bool = True) -> str:
    """The text with comments, and strings unless told otherwise, turned to spaces of equal length.

    Newlines stay, and so do a string's quotes.
    """

    def blanked(match: re.Match[str]) -> str:
        found = match.group()
        if found.startswith(("//", "/*")):
            return re.sub(r"[^\n]", " ", found)
        if not strings:
            return found
        return found[0] + re.sub(r"[^\n]", " ", found[1:-1]) + found[-1]

    return pattern.sub(blanked, text)


def _closing(code: str, at: int, pair: str) -> int:
    """Where the bracket that opens at a place closes; the end of the text if it never does."""
    depth = 0
    for place in range(at, len(code)):
        if code[place] == pair[0]:
            depth += 1
        elif code[place] == pair[1]:
            depth -= 1
            if depth == 0:
                return place
    return len(code)


_GO_TEST = re.compile(r"^func\s+(Test(?![a-z])\w*)\s*\(\s*\w+\s+\*testing\.T\s*\)", re.MULTILINE)


def _go(text: str) -> Iterator[tuple[str, bool]]:
    for match in _GO_TEST.finditer(_blank(text, _C_LIKE)):
        if match[1] != "TestMain":
            yield match[1], False


_RUST_TEST = re.compile(
    r"#\[\s*(?:\w+\s*::\s*)*test\s*(?:\([^\]]*\))?\]"
    r"(?P<attributes>(?:\s*#\[[^\]]*\])*)\s*(?:pub\s*(?:\([^)]*\)\s*)?)?(?:async\s+)?fn\s+(?P<name>\w+)"
)
_RUST_ATTRIBUTES = re.compile(r"(?:#\[[^\]]*\]\s*)+$")
_RUST_MODULE = re.compile(r"\bmod\s+(?P<name>\w+)\s*\{")


def _rust(text: str) -> Iterator[tuple[str, bool]]:
    code = _blank(text, _RUST)
    modules = [
        (match.start(), _closing(code, match.end() - 1, "{}"), match["name"])
        for match in _RUST_MODULE.finditer(code)
    ]
    for match in _RUST_TEST.finditer(code):
        above = _RUST_ATTRIBUTES.search(code[max(0, match.start() - 2000) : match.start()])
        attributes = match["attributes"] + (above.group() if above else "")
        path = [name for start, end, name in modules if start < match.start() < end]
        yield "::".join([*path, match["name"]]), bool(re.search(r"#\[\s*ignore\b", attributes))


_JAVA_CLASS = re.compile(r"\b(?:class|record|interface)\s+(?P<name>\w+)[^{;]*\{")
_JAVA_ANNOTATION = r"@[\w.]+(?:\s*\((?:[^()]|\([^()]*\))*\))?\s*"
_JAVA_TEST = re.compile(
    rf"(?P<annotations>(?:{_JAVA_ANNOTATION}){{1,12}})"
    r"(?:(?:public|protected|private|static|final|synchronized)\s+)*(?:<[^>]*>\s*)?"
    r"[\w.<>\[\]?, ]+?\s+(?P<name>\w+)\s*\("
)
_JAVA_MARK = re.compile(r"@(?:[\w.]+\.)?(?:Test|ParameterizedTest|RepeatedTest|TestFactory)\b")


def _java(text: str) -> Iterator[tuple[str, bool]]:
    code = _blank(text, _C_LIKE)
    classes = [
        (match.start(), _closing(code, match.end() - 1, "{}"), match["name"])
        for match in _JAVA_CLASS.finditer(code)
    ]
    for match in _JAVA_TEST.finditer(code):
        if not _JAVA_MARK.search(match["annotations"]):
            continue
        around = [name for start, end, name in classes if start < match.start() < end]
        skipped = re.search(r"@(?:[\w.]+\.)?(?:Disabled|Ignore)\b", match["annotations"])
        yield "::".join(["$".join(around), match["name"]]), bool(skipped)


_JS_CALL = re.compile(
    r"(?<![\w$.])(?P<word>test|it|describe|suite|context|xit|xtest|xdescribe|fit|fdescribe)"
    r"(?P<variant>(?:\.\w+)*)\s*\(\s*(?P<quote>[\"'`])"
)
_JS_SUITES = frozenset({"describe", "suite", "context", "xdescribe", "fdescribe"})
_JS_SKIPPED = frozenset({".skip", ".todo"})
_JS_OTHER = frozenset({".each", ".for", ".step", ".use", ".extend"})


@dataclass(frozen=True, slots=True)
class _Call:
    start: int
    end: int
    name: str
    suite: bool
    skipped: bool


def _javascript(text: str) -> Iterator[tuple[str, bool]]:
    code = _blank(text, _C_LIKE)
    calls = [call for match in _JS_CALL.finditer(code) if (call := _call(match, text, code))]
    for call in calls:
        if call.suite:
            continue
        around = [one for one in calls if one.suite and one.start < call.start < one.end]
        skipped = call.skipped or any(one.skipped for one in around)
        yield " > ".join([*(one.name for one in around), call.name]), skipped


def _call(match: re.Match[str], text: str, code: str) -> _Call | None:
    if match["variant"] in _JS_OTHER:
        return None
    begin = match.end()
    end = code.find(match["quote"], begin)
    name = text[begin:end]
    rest = code[end + 1 : end + 200].lstrip()
    if end < 0 or "${" in name or rest[:1] not in (",", ")"):
        return None  # computed
    name = re.sub(r"\\(.)", r"\1", name)
    opening = code.index("(", match.start())
    word = match["word"]
    return _Call(
        start=match.start(),
        end=_closing(code, opening, "()"),
        name=name,
        suite=word in _JS_SUITES,
        skipped=word.startswith("x") or match["variant"] in _JS_SKIPPED,
    )


_READERS: Mapping[Language, Callable[[str], Iterator[tuple[str, bool]]]] = {
    "go": _go,
    "java": _java,
    "javascript": _javascript,
    "rust": _rust,
}
