"""Whether a test that a foreign runner reports is one that a given file declares.

Runners name a test by its file, by the class or package that its file makes up, or by its bare
name. The first two settle whose it is; a bare name has to fit as a whole, for a submission may
have a test ``a1::adds`` beside its author's ``adds``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

from assay.graders.testing.expected import is_test_file
from assay.graders.testing.javascript_ids import computed_names
from assay.graders.testing.lexing import C_LIKE, RUST, blank
from assay.graders.testing.static_ids import StaticTests, language_of, read_static_tests

__all__ = ["SURE", "TestFile", "kind_of", "read_test_file"]

SURE = 10_000
"""How sure a claim by a file's own path, class or package is; by names it is their length."""

_JVM = {".java", ".kt", ".groovy", ".scala"}
_COUNT = re.compile(r"#\d+$| #\d+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class TestFile:
    """A source with tests.

    Attributes:
        path: Its path in the workspace.
        kind: Its language; all of the JVM's are ``java``.
        tests: What it declares by literal names.
        loose: What else its tests may be called, where names are computed in a known way.
        computed: Whether some of its tests may have any name.
        claim: How surely an id is of this file: 0 if it is not.
    """

    __test__ = False

    path: str
    kind: str
    tests: StaticTests
    loose: tuple[re.Pattern[str], ...] = ()
    computed: bool = False
    claim: Callable[[str], int]

    def may_mean(self, test_id: str) -> bool:
        """Whether an id fits a name that is computed in a known way."""
        return any(pattern.fullmatch(test_id) for pattern in self.loose)


def kind_of(path: str) -> str | None:
    """The language that tests in a file are written in; None where they cannot be told."""
    suffix = PurePosixPath(path).suffix
    if suffix in _JVM:
        return "java"
    if suffix == ".go":
        return "go" if path.endswith("_test.go") else None
    return "python" if suffix == ".py" else language_of(path)


def read_test_file(
    path: str, text: str, *, junit: bool, modules: Mapping[str, str]
) -> TestFile | None:
    """Read a source; None if nothing in it looks like a test.

    Args:
        path: Its path in the workspace.
        text: The source.
        junit: Whether ids come from JUnit files, which put a class in front.
        modules: Go modules by the directory of their ``go.mod``.
    """
    kind = kind_of(path)
    if kind is None:
        return None
    tests = read_static_tests(path, text)
    match kind:
        case "rust":
            return _rust(path, text, tests, junit=junit)
        case "go":
            return _go(path, text, tests, modules)
        case "java":
            return _java(path, text, tests)
        case "python":
            return _python(path, text, tests)
        case _:
            return _javascript(path, text, tests)


_RUST_ROOTS = ("src", "tests", "benches", "examples")
_RUST_DOCTEST = re.compile(r"(?:\./)?(?P<path>\S+\.rs) - ")
_RUST_PROGRAM = re.compile(r"^bin/[\w-]+::")
_RUST_LOOSE = re.compile(
    r"#\[\s*(?:\w+\s*::\s*)*(?:rstest|test_case|case|test_matrix|parameterized|quickcheck"
    r"|wasm_bindgen_test|test_log|traced_test)\b[^\]]*\][^{}]*?\bfn\s+(?P<name>\w+)"
)
_RUST_COMPUTED = re.compile(r"\b(?:fn|mod)\s+\$|\bfn\s+\w*~|\b(?:paste|seq)!")


def _rust(path: str, text: str, tests: StaticTests, *, junit: bool) -> TestFile | None:
    code = blank(text, RUST)
    places, binary = _rust_places(path)
    names = {f"{place}{name}" for name in (*tests.names, *tests.skipped) for place in places}
    generated = [found["name"] for found in _RUST_LOOSE.finditer(code)]
    loose = tuple(
        re.compile(rf"(?:[\w/-]+::)*{re.escape(name)}(?:::\w+)*") for name in set(generated)
    )

    def claim(test_id: str) -> int:
        if doctest := _RUST_DOCTEST.match(test_id):
            return _by_path(doctest["path"], path)
        if test_id in names:
            return len(test_id)
        if not junit:
            return 0
        crate, _, rest = test_id.partition("::")
        own = rest.removeprefix(f"{binary}::") if binary else _RUST_PROGRAM.sub("", rest)
        return len(own) if crate and own in names and (not binary or own != rest) else 0

    computed = bool(_RUST_COMPUTED.search(code)) and "test" in code
    if names or loose or computed or "```" in text:
        return TestFile(
            path=path, kind="rust", tests=tests, loose=loose, computed=computed, claim=claim
        )
    return None


def _rust_places(path: str) -> tuple[list[str], str]:
    """What may stand before the names in a file; and the program, where tests have their own."""
    steps = list(PurePosixPath(path.removesuffix(".rs")).parts)
    roots = [index for index, step in enumerate(steps[:-1]) if step in _RUST_ROOTS]
    if not roots:
        return ["", f"{steps[-1]}::"], ""
    root, inner = steps[roots[-1]], steps[roots[-1] + 1 :]
    if root == "src" and inner[0] == "bin":
        return ["".join(f"{step}::" for step in inner[2:] if step != "main")], ""
    if root != "src" and len(inner) == 1:
        return [""], inner[0]
    if inner[-1] in ("mod", "lib", "main"):
        inner = inner[:-1]
    places = ["".join(f"{step}::" for step in inner)]
    if root != "src":  # tests/program/main.rs, or modules beside it
        places.append("".join(f"{step}::" for step in inner[1:]))
    return places, ""


_GO_ANY = re.compile(r"^func\s+(?P<name>(?:Test|Fuzz|Example)\w*)\s*\(", re.MULTILINE)


def _go(path: str, text: str, tests: StaticTests, modules: Mapping[str, str]) -> TestFile | None:
    names = {match["name"] for match in _GO_ANY.finditer(blank(text, C_LIKE))}
    folder = PurePosixPath(path).parent
    package, exact = folder.as_posix().removeprefix("."), False
    for above in (folder, *folder.parents):
        if module := modules.get(above.as_posix()):
            inner = folder.relative_to(above).as_posix()
            package, exact = (module if inner == "." else f"{module}/{inner}"), True
            break

    def claim(test_id: str) -> int:
        place, separator, test = test_id.partition("::")
        if exact:
            same = place == package or package.endswith(f"/{place}")
        else:
            same = not package or place == package or place.endswith(f"/{package}")
        if not same or (separator and test.partition("/")[0] not in names):
            return 0
        return SURE if place == package else SURE - 1

    if not names:
        return None
    return TestFile(path=path, kind="go", tests=tests, claim=claim)


_JVM_PACKAGE = re.compile(r"^\s*package\s+(?P<name>[\w.]+)", re.MULTILINE)
_JVM_CLASS = re.compile(r"\b(?:class|interface|record|object)\s+(?P<name>\w+)")


def _java(path: str, text: str, tests: StaticTests) -> TestFile | None:
    code = blank(text, C_LIKE)
    package = _JVM_PACKAGE.search(code)
    classes = {match["name"] for match in _JVM_CLASS.finditer(code)}
    start = f"{package['name']}." if package else ""
    full = {f"{start}{name}" for name in classes}

    def claim(test_id: str) -> int:
        place = _class_in(test_id)
        if place in full:
            return SURE
        # Gradle's console may leave packages out.
        return SURE - 1 if " > " in test_id and "::" not in test_id and place in classes else 0

    if not classes or not re.search("test|spec", f"{path} {text}", re.IGNORECASE):
        return None
    return TestFile(path=path, kind="java", tests=tests, claim=claim)


@lru_cache(maxsize=100_000)
def _class_in(test_id: str) -> str:
    return re.split(r"::| > |\(", test_id, maxsplit=1)[0].partition("$")[0]


def _python(path: str, text: str, tests: StaticTests) -> TestFile | None:
    steps = path.removesuffix(".py").split("/")
    modules = [".".join(steps[start:]) for start in range(len(steps))]

    def claim(test_id: str) -> int:
        place = test_id.partition("::")[0]
        if place.endswith(".py"):
            return _by_path(place, path)
        for start, module in enumerate(modules):
            if test_id.startswith(module) and test_id[len(module) : len(module) + 1] in (
                "",
                ".",
                ":",
            ):
                return SURE - start
        return 0

    if not is_test_file(path) and not re.search(r"\bdef test|TestCase", text):
        return None
    return TestFile(path=path, kind="python", tests=tests, claim=claim)


_SCRIPT = re.compile(r"(?:\|[^|]+\| )?(?P<path>[^\s:>]+\.[cm]?[jt]sx?)(?=::| > | failed to run|$)")
_STEP = re.compile(r"::| [>\u203a] ")


def _javascript(path: str, text: str, tests: StaticTests) -> TestFile | None:
    names = {_STEP.sub(" ", name): len(name) for name in (*tests.names, *tests.skipped)}
    parts, computed = computed_names(text)
    loose = tuple(re.compile(rf"(?:.*[ :])?(?:{part})", re.DOTALL) for part in parts)

    def claim(test_id: str) -> int:
        script, whole, tail = _spoken(test_id)
        return _by_path(script, path) if script else max(names.get(whole, 0), names.get(tail, 0))

    if not names and not loose and not computed:
        return None
    return TestFile(
        path=path, kind="javascript", tests=tests, loose=loose, computed=computed, claim=claim
    )


@lru_cache(maxsize=100_000)
def _spoken(test_id: str) -> tuple[str, str, str]:
    """The file in an id, the sentence that all of it is, and the one behind its class."""
    script = _SCRIPT.match(test_id)
    plain = _COUNT.sub("", test_id)
    whole, tail = _STEP.sub(" ", plain), _STEP.sub(" ", plain.rpartition("::")[2])
    return script["path"] if script else "", whole, tail


def _by_path(reported: str, path: str) -> int:
    """How surely a path that a runner tells is that of a file; it may leave directories out."""
    plain = reported.removeprefix("/workspace/").removeprefix("./")
    if plain == path:
        return SURE
    left_out = path.removesuffix(f"/{plain}")
    return SURE - left_out.count("/") - 1 if left_out != path else 0
