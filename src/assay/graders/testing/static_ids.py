"""Find the tests that an injected source declares, by reading it and running nothing.

What a runner reports can be less than what was injected: a solution that ends the process leaves
tests unheard. The names found here say which. Only literal names are found; a name that is
computed, or a test that a macro makes, is not, and so is not missed either.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from assay.graders.conditions import all_of, any_of, condition
from assay.graders.testing.hidden import Language, language_of

C_LIKE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`""", re.DOTALL
)
"""Comments and strings of JavaScript and Java."""

GO = re.compile(C_LIKE.pattern.replace(r"`(?:\\.|[^`\\])*`", "`[^`]*`"), re.DOTALL)
"""Those of Go, where a backslash between backquotes is nothing special."""

# A quote may begin a lifetime, a raw string has its own end, and comments may hold comments.
RUST = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<hashes>#*)".*?"(?P=hashes)|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'""",
    re.DOTALL,
)
"""Comments and strings of Rust."""

_ARCH = {"x86_64": "amd64", "aarch64": "arm64"}
GO_HERE = {"GOOS": "linux", "GOARCH": _ARCH.get(platform.machine(), platform.machine())}
"""What Go calls the system and the machine that tests run on."""

_PAIRS = {"(": ")", "[": "]", "{": "}"}


def blank(text: str, pattern: re.Pattern[str]) -> str:
    """The text with comments and strings turned to spaces of equal length.

    Newlines stay, and so do a string's quotes.
    """

    def blanked(match: re.Match[str]) -> str:
        found = match.group()
        if found.startswith(("//", "/*")):
            return re.sub(r"[^\n]", " ", found)
        return found[0] + re.sub(r"[^\n]", " ", found[1:-1]) + found[-1]

    return pattern.sub(blanked, text)


def closing(code: str, at: int, pair: str) -> int:
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


def pieces(code: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The spans between the commas of a list, those of brackets inside it not counted."""
    depth = 0
    begin = start
    for place in range(start, end):
        if code[place] in _PAIRS:
            depth += 1
        elif code[place] in _PAIRS.values():
            depth -= 1
        elif code[place] == "," and depth == 0:
            yield begin, place
            begin = place + 1
    yield begin, end


_CALL = re.compile(
    r"(?<![\w$.])(?:(?P<context>(?!(?:test|it)\.)[A-Za-z_$][\w$]*)\.(?=test\b))?"
    r"(?P<word>test|it|describe|suite|context|xit|xtest|xdescribe|xcontext|fit|fdescribe)"
    r"(?P<variant>(?:\.\w+)*)\s*\(\s*(?P<quote>[\"'`])"
)
_SUITES = frozenset({"describe", "suite", "context", "xdescribe", "xcontext", "fdescribe"})
_SKIPPED = frozenset({"skip", "todo"})
_OTHER = frozenset({"each", "for", "step", "use", "extend", "skipIf", "runIf"})
_KEY = re.compile(r"\s*(?P<key>[\w$]+)\s*:\s*(?P<value>.*?)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Call:
    """A test or suite; `sub` for one that a test declares by its own context."""

    start: int
    end: int
    name: str
    suite: bool
    skipped: bool
    sub: bool


def read_javascript(text: str) -> Iterator[tuple[str, bool | None]]:
    """The full names of the tests, and whether the author leaves each out.

    Of other subtests (``t.test``) that is not said (None): whether they come to be declared is up
    to the code around them.
    """
    code = blank(text, C_LIKE)
    calls = [call for match in _CALL.finditer(code) if (call := _read(match, text, code))]
    subtests: dict[str, bool] = {}
    for call in calls:
        if call.suite:
            continue
        around = [one for one in calls if one.start < call.start < one.end]
        # Node gives a subtest the name of the test around it; others have no such thing.
        outer = around if call.sub else [one for one in around if one.suite]
        name = " > ".join([*(one.name for one in outer), call.name])
        skipped = call.skipped or any(one.skipped for one in outer)
        if not call.sub:
            yield name, skipped
        elif any(not one.suite for one in around):
            subtests[name] = subtests.get(name, True) and skipped
    yield from ((name, skipped or None) for name, skipped in subtests.items())


def _read(match: re.Match[str], text: str, code: str) -> _Call | None:
    variants = match["variant"].split(".")[1:]
    word = match["word"]
    if _OTHER.intersection(variants):
        return None
    begin = match.end()
    end = code.find(match["quote"], begin)
    name = text[begin:end]
    rest = code[end + 1 : end + 200].lstrip()
    if end < 0 or not name or "${" in name or rest[:1] not in (",", ")"):
        return None  # computed
    opening = code.index("(", match.end("variant"))
    closes = closing(code, opening, "()")
    arguments = list(pieces(code, opening + 1, closes))
    return _Call(
        start=match.start(),
        end=closes,
        name=_ESCAPE.sub(_said, name),
        suite=bool(_SUITES.intersection([word, *variants])),
        skipped=word.startswith("x")
        or rest[0] == ")"  # a name without a test
        or bool(_SKIPPED.intersection(variants))
        or _options_skip(arguments[1:2], text, code),
        sub=match["context"] is not None,
    )


def _options_skip(arguments: Sequence[tuple[int, int]], text: str, code: str) -> bool:
    """Whether a test's second argument is an object that says so, whatever else happens."""
    for start, end in arguments:
        inside = code[start:end]
        opening = start + len(inside) - len(inside.lstrip())
        if code[opening : opening + 1] != "{" or not inside.rstrip().endswith("}"):
            return False
        values: dict[str, str] = {}
        for begin, stop in pieces(code, opening + 1, start + len(inside.rstrip()) - 1):
            entry = code[begin:stop].strip()
            if entry.startswith(("...", "[", "'", '"')):
                return False  # it may say something else
            if found := _KEY.fullmatch(code, begin, stop):
                values[found["key"]] = text[found.start("value") : found.end("value")]
        return any(_is_true(values.get(key, "")) for key in _SKIPPED)
    return False


def _is_true(value: str) -> bool:
    """Whether a value is ``true`` or a reason: one string that is not empty."""
    return value == "true" or bool(re.fullmatch(r"'[^'\\]+'|\"[^\"\\]+\"|`[^`\\$]+`", value))


_ANY = re.compile(
    r"(?<![\w$.])(?P<word>test|it|specify|describe|suite|context)(?P<variant>(?:\.\w+)*)\s*"
    r"(?P<opening>[(`])"
)
_DECLARING = re.compile(r"(?:function|class)\s+$")
_FILLED = re.compile(r"%[a-zA-Z#$]|\$\{[^}]*\}|\$#?[\w.]+")


def computed_names(text: str) -> tuple[tuple[str, ...], bool]:
    """What is known of names that are not literal."""
    code = blank(text, C_LIKE)
    parts: dict[str, None] = {}
    anything = suites = False
    leaves: list[str] = []
    for match in _ANY.finditer(code):
        if _DECLARING.search(code, max(0, match.start() - 20), match.start()):
            continue
        variants = match["variant"].split(".")[1:]
        opening = match.start("opening")
        many = bool({"each", "for"}.intersection(variants))
        if many:
            opening = _after_table(code, opening)
        elif code[opening] == "`":
            continue
        name = _name_at(text, code, opening + 1) if opening >= 0 else None
        if _SUITES.intersection([match["word"], *variants]):
            suites = suites or many or name is None or "${" in name
        elif name is None:
            anything = anything or _takes_function(code, opening)
        else:
            leaves.append(_as_pattern(name))
            if many or "${" in name:
                parts[leaves[-1]] = None
    if suites:
        parts.update(dict.fromkeys(leaves))
    return tuple(part for part in parts if part != ".*"), anything or ".*" in parts


def _after_table(code: str, opening: int) -> int:
    """Where the bracket of ``each(table)(...)`` or ``each`table`(...)`` opens; -1 if none does."""
    end = closing(code, opening, "()") if code[opening] == "(" else code.find("`", opening + 1)
    rest = code[end + 1 :]
    after = end + 1 + len(rest) - len(rest.lstrip())
    return after if end >= 0 and code[after : after + 1] == "(" else -1


def _name_at(text: str, code: str, begin: int) -> str | None:
    """The string that is the whole of the first argument; None if that is something else."""
    begin += len(code[begin:]) - len(code[begin:].lstrip())
    quote = code[begin : begin + 1]
    if quote not in ("'", '"', "`"):
        return None
    end = code.find(quote, begin + 1)
    rest = code[end + 1 : end + 200].lstrip()
    return text[begin + 1 : end] if end >= 0 and rest[:1] in (",", ")") else None


def _takes_function(code: str, opening: int) -> bool:
    """Whether a call without a literal name hands over a function, as one of a test does."""
    return opening < 0 or bool(
        re.search(r"=>|\bfunction\b", code[opening : closing(code, opening, "()")])
    )


def _as_pattern(name: str) -> str:
    return ".*".join(re.escape(part) for part in _FILLED.split(_ESCAPE.sub(_said, name)))


_HEX = r"(?!d[89a-f]..)[\da-f]"  # half a character stays as it is written
_ESCAPE = re.compile(
    rf"\\(?:u\{{({_HEX}{{1,5}})\}}|u({_HEX}{{4}})|x([\da-f]{{2}})|(.))", re.DOTALL | re.IGNORECASE
)


def _said(escape: re.Match[str]) -> str:
    digits = escape[1] or escape[2] or escape[3]
    return chr(int(digits, 16)) if digits else {"n": "\n", "t": "\t"}.get(escape[4], escape[4])


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticTests:
    """Tests that a source declares."""

    names: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    possible: tuple[str, ...] = ()
    # The program without which a test of these names leaves itself out.
    needing: Mapping[str, str] = field(default_factory=dict[str, str])


def read_static_tests(path: str, text: str) -> StaticTests:
    """Find the tests of one source."""
    language = language_of(path)
    if language is None or (language == "go" and not path.endswith("_test.go")):
        return StaticTests()
    found: dict[str, bool | str | None] = {}
    for name, skipped in _READERS[language](text):
        found[name] = found.get(name, True) and skipped
    return StaticTests(
        names=tuple(n for n, skipped in found.items() if skipped is False or type(skipped) is str),
        skipped=tuple(name for name, skipped in found.items() if skipped is True),
        possible=tuple(name for name, skipped in found.items() if skipped is None),
        needing={name: program for name, program in found.items() if type(program) is str},
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


GO_TEST = re.compile(
    r"^func\s+(?P<name>Test(?![a-z])\w*)\s*"
    r"\(\s*(?P<t>\w+)\s+\*(?P<testing>\w+)\.T\s*\)\s*\{",
    re.MULTILINE,
)
_GO_RUN = re.compile(
    r"\.Run\(\s*(?:(?P<quote>[\"`])(?P<name>[^\"`]*)(?P=quote)|[^,()]*(?:\([^()]*\))?)\s*,"
    r"\s*func\s*\(\s*(?P<t>\w+)\s+\*\w+\.T\s*\)\s*\{"
)
_GO_FIRST = r"\s*(?:\w+\.(?:Helper|Parallel)\(\)\s*;?\s*)*"
_GO_SKIP = re.compile(_GO_FIRST + r"(?P<t>\w+)\.Skip(?:f|Now)?\(")
_GO_SKIP_IF = re.compile(_GO_FIRST + r"if\s+(?P<when>[^{};]+)\{" + _GO_SKIP.pattern)
_GO_SKIP_WITHOUT = re.compile(
    _GO_FIRST + r"(?:if\s+)?_,\s*(?P<error>\w+)\s*:?=\s*exec\.LookPath\("
    r"\s*[\"`](?P<program>[^\"`]*)[\"`]\s*\)\s*;?\s*(?:if\s+)?(?P=error)\s*!=\s*nil\s*\{"
    + _GO_SKIP.pattern
)
_GO_SYSTEM = re.compile(r"runtime\.(?P<what>GOOS|GOARCH)\s*(?P<sign>[!=]=)\s*\"(?P<name>\w+)\"")


def _go(text: str) -> Iterator[tuple[str, bool | str | None]]:
    """Tests; and of subtests with literal names those whose first statement skips them.

    Of those that are left out where a run is to be short it is not said (None), and of those that
    look for a program, for which.
    """
    code = blank(text, GO)
    around: list[tuple[int, int, str | None]] = []
    subtests: dict[str, bool] = {}
    found = [*GO_TEST.finditer(code), *_GO_RUN.finditer(code)]
    for match in sorted(found, key=lambda one: one.start()):
        skip = _GO_SKIP.match(code, match.end())
        skips = skip is not None and skip["t"] == match["t"]
        start, end = match.start(), closing(code, match.end() - 1, "{}")
        if match.re is GO_TEST:
            around = [(start, end, match["name"])]
            skipped: bool | str | None = skips
            condition = _GO_SKIP_IF.match(code, match.end())
            if condition is not None and condition["t"] == match["t"]:
                skipped = _skips(text[condition.start("when") : condition.end("when")])
            without = _GO_SKIP_WITHOUT.match(code, match.end())
            if without is not None and without["t"] == match["t"]:
                skipped = text[without.start("program") : without.end("program")]
            if match["name"] != "TestMain":
                yield match["name"], skipped
            continue
        name = text[match.start("name") : match.end("name")] if match["quote"] else None
        around.append((start, end, name and re.sub(r"\s", "_", name)))
        path = [one for begin, stop, one in around if begin <= start < stop]
        if len(path) > 1:
            full = "/".join(one or "\0" for one in path)
            subtests[full] = subtests.get(full, True) and skips
    yield from ((name, True) for name, skipped in subtests.items() if skipped and "\0" not in name)


def _skips(condition: str) -> bool | None:
    """Whether a condition of Go holds here whatever the work is; None where a short run decides."""
    found: list[bool | None] = []
    for part in condition.split("||"):
        if system := _GO_SYSTEM.fullmatch(part.strip()):
            is_here = GO_HERE[system["what"]] == system["name"]
            found.append(is_here is (system["sign"] == "=="))
        else:
            found.append(None if part.strip() == "testing.Short()" else False)
    return any_of(found)


_RUST_TEST = re.compile(
    r"#\[\s*(?:\w+\s*::\s*)*test\s*(?:\([^\]]*\))?\]"
    r"(?P<attributes>(?:\s*#\[[^\]]*\])*)\s*(?:pub\s*(?:\([^)]*\)\s*)?)?(?:async\s+)?fn\s+(?P<name>\w+)"
)
_RUST_ATTRIBUTES = re.compile(r"(?:#\[[^\]]*\]\s*)+$")
_RUST_MODULE = re.compile(r"(?:\bpub(?:\([^)]*\))?\s+)?\bmod\s+(?P<name>\w+)\s*\{")
_RUST_CFG = re.compile(r"#!?\[\s*cfg\s*\(")
_CFG_WORD = re.compile(r"\w+\s*=\s*\"[^\"]*\"|\w+|[(),]")
_CFG_HERE = frozenset({"unix", "test", "panic=unwind", "target_os=linux", "target_family=unix"})
_CFG_OTHER = re.compile(r"windows|doctest|miri|loom|target_(?:os|family)=.*")


def _rust(text: str) -> Iterator[tuple[str, bool | None]]:
    """Tests; of those that a condition leaves out, here or perhaps, it is not said (None)."""
    code = blank(text, RUST)
    modules: list[tuple[int, int, str, bool]] = []
    for match in _RUST_MODULE.finditer(code):
        sure = cfg_holds(text[_attributes_at(code, match.start()) : match.start()]) is True
        end = closing(code, match.end() - 1, "{}")
        modules.append((match.start(), end, match["name"], sure))
    for match in _RUST_TEST.finditer(code):
        around = [one for one in modules if one[0] < match.start() < one[1]]
        span = slice(_attributes_at(code, match.start()), match.end("attributes"))
        sure = cfg_holds(text[span]) is True and all(one[3] for one in around)
        ignored = bool(re.search(r"#\[\s*ignore\b", code[span]))
        perhaps = not sure or re.search(r"\bcfg_attr\b[^\]]*\bignore\b", code[span])
        name = "::".join([*(one[2] for one in around), match["name"]])
        yield name, ignored or (None if perhaps else False)


def _attributes_at(code: str, place: int) -> int:
    """Where the attributes begin that end at a place."""
    begin = max(0, place - 2000)
    above = _RUST_ATTRIBUTES.search(code[begin:place])
    return begin + above.start() if above else place


def cfg_of_file(text: str, features: Collection[str]) -> bool | None:
    """Whether a whole file of Rust is compiled; None where that depends on more."""
    inner = [line for line in text.splitlines() if line.startswith("#![")]
    return cfg_holds("\n".join(inner), features)


def cfg_holds(attributes: str, features: Collection[str] = ()) -> bool | None:
    """Whether the conditions in some attributes of Rust hold; None where that depends on more."""

    def holds(word: str) -> bool | None:
        key, _, value = word.partition("=")
        if word in _CFG_HERE or (key == "feature" and {value, "--all-features"} & {*features}):
            return True
        return False if _CFG_OTHER.fullmatch(word) else None

    found: list[bool | None] = []
    for one in _RUST_CFG.finditer(attributes):
        inside = attributes[one.end() : closing(attributes, one.end() - 1, "()")]
        words = [re.sub(r"[\s\"]", "", word) for word in _CFG_WORD.findall(inside)]
        signs = ["!" if word == "not" else word for word in words]
        found.append(condition(["all", "(", *signs, ")"], holds))
    return all_of(found)


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
            around = [name for begin, stop, name, _ in classes if begin <= start and end <= stop]
            yield "$".join(around), True


_READERS: Mapping[Language, Callable[[str], Iterator[tuple[str, bool | str | None]]]] = {
    "go": _go,
    "java": _java,
    "javascript": read_javascript,
    "rust": _rust,
}
