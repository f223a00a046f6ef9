"""What of an agent's changes gets into the grading tree: the rules behind a case's `submission`.

A submission may change everything but what decides how it is judged: tests, the configuration of
runners and builds, installed packages, start-up hooks, caches, version control. Those stay as the
source has them. Patterns read as in a ``.gitignore``: without a slash they match a name at any
depth, with one they start at the root of the workspace; a directory stands for all that is in it.
Case and Unicode form make no difference, because on some file systems they make none either.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias

from assay.frozen import frozen
from assay.graders.signs import JAVA_TEST_LIBRARIES
from assay.tasks.rules import Ruled, texts
from assay.types.codec import Problem

Suspicion: TypeAlias = Literal["flag", "hold", "zero"]
Verdict: TypeAlias = Literal["taken", "protected", "excluded"]

KEPT_FROM_SOURCE: Mapping[str, tuple[str, ...]] = {
    "tests": (
        "tests",
        "/test",
        "**/src/test",
        "__tests__",
        "__snapshots__",
        "__mocks__",
        "test_*.py",
        "*_test.py",
        "*.test.[jt]s",
        "*.test.[jt]sx",
        "*.test.[cm][jt]s",
        "*.spec.[jt]s",
        "*.spec.[jt]sx",
        "*.spec.[cm][jt]s",
        "*_spec.rb",
        "*_test.go",
        "*Test.java",
        "*Tests.java",
        "*TestCase.java",
        "*Test.kt",
    ),
    "test runner configuration": (
        "conftest.py",
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "tox.ini",
        "setup.cfg",
        "noxfile.py",
        ".coveragerc",
        "jest.config.*",
        "jest.setup.*",
        "vitest.config.*",
        "vitest.workspace.*",
        "vite.config.*",
        "karma.conf.*",
        "playwright.config.*",
        ".mocharc*",
        ".nycrc*",
        ".taprc",
        "ava.config.*",
        "babel.config.*",
        ".babelrc*",
        ".swcrc",
        "tsconfig*.json",
        "nextest.toml",
        ".rspec",
        "phpunit.xml*",
        "junit-platform.properties",
        "**/META-INF/services/org.junit*",
    ),
    "linter configuration": (
        "ruff.toml",
        ".ruff.toml",
        ".flake8",
        "mypy.ini",
        ".mypy.ini",
        "pyrightconfig.json",
        ".pylintrc",
        "pylintrc",
        ".eslintrc*",
        "eslint.config.*",
        "biome.json*",
        ".prettierrc*",
        "clippy.toml",
        ".clippy.toml",
        "rustfmt.toml",
        ".rustfmt.toml",
        ".golangci.*",
    ),
    "build configuration": (
        "pyproject.toml",
        "setup.py",
        "package.json",
        "package-lock.json",
        "npm-shrinkwrap.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "pnpm-workspace.yaml",
        ".npmrc",
        ".yarnrc*",
        ".pnp.*",
        "bunfig.toml",
        "deno.json*",
        "Cargo.toml",
        "Cargo.lock",
        "build.rs",
        ".cargo",
        "rust-toolchain*",
        "go.mod",
        "go.sum",
        "go.work*",
        "pom.xml",
        "*.gradle",
        "*.gradle.kts",
        "gradle.properties",
        "gradlew*",
        "/gradle",
        "mvnw*",
        ".mvn",
        "Makefile",
        "GNUmakefile",
        "*.mk",
        "CMakeLists.txt",
        "*.cmake",
        "CMake*Presets.json",
        "justfile",
        "Taskfile.y*ml",
        "Rakefile",
        "Gemfile*",
        "composer.json",
    ),
    "start-up hooks": (
        "sitecustomize.py",
        "usercustomize.py",
        "*.pth",
        "pyvenv.cfg",
        ".bashrc",
        ".bash_profile",
        ".profile",
        ".envrc",
    ),
    "installed packages": (
        "node_modules",
        ".venv",
        "/venv",
        "/vendor",
        "site-packages",
        "__pypackages__",
        "*.egg-info",
        "*.dist-info",
        "*.egg-link",
        "*.egg",
        "*.jar",
        ".tox",
        ".nox",
        ".yarn",
    ),
    "caches and build output": (
        "__pycache__",
        "*.pyc",
        "*.pyo",
        "*.class",
        "CMakeCache.txt",
        ".fingerprint",
        ".pytest_cache",
        ".hypothesis",
        ".mypy_cache",
        ".ruff_cache",
        ".coverage",
        ".gradle",
        "/target",
        "*.tsbuildinfo",
    ),
    "version control": (".git", ".hg", ".svn", ".gitmodules"),
}
"""What a submission cannot change unless its case includes it: what it is, and the patterns."""

_LIBRARIES = "a package of a test library"
_HOOKS = "start-up hooks"
_TARGETS = "what the makefile makes or includes"
_STAND_INS = "a module in place of Python's own or an installed one"
_SIGNS = {
    _HOOKS: "planted a start-up hook",
    _LIBRARIES: "a new package has the name of a test library's",
    _STAND_INS: "a new module has the name of one that is not the submission's",
}
_MODULE = re.compile(r"(.*?)(?:/__init__)?(?:\.pyc?|(?:\.[^/]*)?\.so)", re.DOTALL)
_PLAIN_NAME = re.compile(r"[^/*?\[]+/*", re.DOTALL)


@frozen(kw_only=True)
class SubmissionSpec(Ruled):
    """Which of the agent's changes are graded. Patterns read as in a .gitignore.

    Attributes:
        include: Paths that the submission may change although they are protected, such as
            package.json for a task that is about it.
        exclude: Paths whose changes are left out, whatever else is said.
        protect: Further paths that stay as they are in the source; ** for all but ``include``.
        on_suspicion: What happens where the audit finds a sign that the submission speaks to its
            judge: ``flag`` says so, ``hold`` gives no reward until a person has decided with
            `assay runs review`, ``zero`` gives 0.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()
    on_suspicion: Suspicion = "flag"

    def _problems(self) -> Iterator[Problem]:
        for name in ("include", "exclude", "protect"):
            given: tuple[str, ...] = getattr(self, name)
            yield from texts(name, given)
            for number, pattern in enumerate(given):
                if pattern.startswith("!") or ".." in pattern.split("/") or "\0" in pattern:
                    message = f"{pattern!r} is not a path pattern inside the workspace"
                    yield Problem((name, number), message, "such as src/*.py")


class Rules:
    """Decides, path by path, whose version is graded.

    Args:
        spec: What the case says.
        asked_for: Paths that commands build or are called by, and that the source does not have: a
            file there would stand for work that was never done. Also what a makefile includes.
        source: Paths of the source. Packages of Java's test libraries are kept from a submission,
            whose classes would be found first, unless the source has some of that library itself.
        stand_ins: Modules of Python that a module at this path, without its suffix, would replace.
    """

    def __init__(
        self,
        spec: SubmissionSpec | None = None,
        *,
        asked_for: Iterable[str] = (),
        stand_ins: Iterable[str] = (),
        source: Iterable[str] = (),
    ) -> None:
        spec = spec or SubmissionSpec()
        self._include = _matcher(spec.include)
        self._exclude = _matcher(spec.exclude)
        self._protect = _matcher(spec.protect)
        self._defaults = [(what, _matcher(globs)) for what, globs in KEPT_FROM_SOURCE.items()]
        self._defaults.append((_TARGETS, _matcher(f"/{path}" for path in asked_for)))
        given = "\n".join(f"/{path}" for path in source)
        libraries = (name.replace(".", "/") for name in JAVA_TEST_LIBRARIES)
        kept = (f"**/{path}" for path in libraries if f"/{path}/" not in given)
        self._defaults.append((_LIBRARIES, _matcher(kept)))
        self._stand_ins = frozenset(map(_fold, stand_ins))

    def decide(self, path: str) -> tuple[Verdict, str]:
        """Whose version of a path is graded, and why where it is not the submission's."""
        folded = _fold(path)
        if self._exclude.matches(folded):
            return "excluded", "the case excludes it"
        if self._include.matches(folded):
            return "taken", ""
        if self._protect.matches(folded):
            return "protected", "the case protects it"
        for what, matcher in self._defaults:
            if matcher.matches(folded):
                return "protected", what
        module = _MODULE.fullmatch(folded)
        if module and module[1] in self._stand_ins:
            return "protected", _STAND_INS
        return "taken", ""

    def sign(self, path: str) -> str:
        """What a new file at this path is a sign of, for a flag; empty where of nothing."""
        verdict, what = self.decide(path)
        return _SIGNS.get(what, "") if verdict == "protected" else ""


def _fold(path: str) -> str:
    return unicodedata.normalize("NFKC", path).casefold()


class _Globs:
    """Patterns of a `submission`. Plain names are looked up: most are, and regexes take long."""

    def __init__(self, patterns: Iterable[str]) -> None:
        folded = [_fold(pattern) for pattern in patterns]
        self._names = frozenset(p.rstrip("/") for p in folded if _PLAIN_NAME.fullmatch(p))
        self._others = [p for p in folded if not _PLAIN_NAME.fullmatch(p)]

    @cached_property
    def _form(self) -> re.Pattern[str]:
        anchored = [_translate(p) for p in self._others if _is_anchored(p)]
        anywhere = "|".join(_translate(p) for p in self._others if not _is_anchored(p))
        branches = "|".join([*anchored, *([f"(?:.*/)?(?:{anywhere})"] if anywhere else [])])
        return re.compile(rf"(?:{branches})(?:/.*)?\Z", re.DOTALL)

    def matches(self, path: str) -> bool:
        """Whether one of them names a folded path, or a directory above it."""
        if not self._names.isdisjoint(path.split("/")):
            return True
        return bool(self._others) and self._form.match(path) is not None


def _matcher(patterns: Iterable[str]) -> _Globs:
    return _cached(tuple(patterns))


_cached = lru_cache(maxsize=256)(_Globs)


def _is_anchored(pattern: str) -> bool:
    return "/" in pattern.rstrip("/")


def _translate(pattern: str) -> str:
    body = ""
    for piece in re.findall(r"\*\*/|\*\*|\*|\?|\[[^\]/]+\]|[^*?\[]+|\[", pattern.strip("/")):
        if piece == "**/":
            body += "(?:.*/)?"
        elif piece == "**":
            body += ".*"
        elif piece == "*":
            body += "[^/]*"
        elif piece == "?":
            body += "[^/]"
        elif piece.startswith("[") and len(piece) > 1:
            inner = piece[1:-1].replace("\\", "\\\\").replace("[", "\\[")
            body += "[^" + inner[1:] + "]" if inner.startswith("!") else f"[{inner}]"
        else:
            body += re.escape(piece)
    return body
