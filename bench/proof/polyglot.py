"""The exercises in six languages that models are compared by, against their published solutions."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.proof.material import Case, Difference, Source
from bench.proof.suites import Exercise, Published, proven, published

ABOUT = "the published solution of each exercise gets everything, and no stub passes"
SOURCE = Source(
    "Aider-AI/polyglot-benchmark",
    "7e0611e77b54e2dea774cdc0aa00cf9f7ed6144f",
    "MIT",
    also="npm install --no-save --prefix . expect@29.7.0",
)
"""It has no licence file of its own; its page points to Exercism's tracks, which are MIT."""
AGREE, OF = 1_103, 1_248
DIFFERENCES = (
    Difference(
        "*-*/apart",
        "by design",
        "Only pytest, unittest and `node --test` can judge a solution from another process.",
        said="shared: only pytest*",
    ),
    Difference(
        "python-paasio/apart",
        "by design",
        "The tests replace `super` in the solution's module by a class of their own.",
    ),
    Difference("javascript-grep/apart", "by design", "The tests start the solution as a program."),
    Difference(
        "javascript-promises/apart",
        "by design",
        "The solution calls functions of a test after the test has ended.",
    ),
    *(
        Difference(
            f"{name}/floor *",
            "theirs",
            "The exercise is to rewrite code that passes its tests as it is given.",
        )
        for name in ("*-ledger", "go-markdown", "java-tree-building")
    ),
)
_RUNNER = "import { describe, test, it, beforeEach, afterEach } from 'node:test'; "
_EXPECT = "import { expect } from 'expect'; "


def cases(directory: Path) -> Iterator[Case]:
    """Each check of each exercise, of the languages whose compiler or runner is here."""
    exercises = [
        *_python(directory),
        *_javascript(directory),
        *_rust(directory),
        *_cpp(directory),
        *_go(directory),
        *_java(directory),
    ]
    return proven(exercises)


def _places(directory: Path, language: str) -> list[Path]:
    practice = directory / language / "exercises/practice"
    return sorted(place for place in practice.glob("*") if place.is_dir())


def _left_out(why: str, places: list[Path]) -> None:
    if places:
        names = ", ".join(place.name for place in places)
        print(f"left out, {why}: {len(places)} ({names})", file=sys.stderr)


def _python(directory: Path) -> Iterator[Exercise]:
    for place in _places(directory, "python"):
        of = published(place)
        yield Exercise(f"python-{place.name}", of.given, of.tests, of.solution)


def _javascript(directory: Path) -> Iterator[Exercise]:
    """The tests are written for Jest: they get its ``expect`` here, and the runner of Node."""
    places, packages = _places(directory, "javascript"), directory / "node_modules"
    if not (shutil.which("node") and packages.is_dir()):
        _left_out("JavaScript needs node, and expect in the clone", places)
        return
    # Its code alone: declarations of types are half of the files.
    kept = {
        str(file.relative_to(directory)): file.read_bytes()
        for file in packages.rglob("*")
        if file.suffix in (".js", ".mjs", ".cjs", ".json") and file.is_file()
    }
    mixed: list[Path] = []
    for place in places:
        of = published(place)
        (name, test), *_ = of.tests.items()  # there is one
        is_module = "require(" not in test
        if is_module and any("module.exports" in text for text in of.solution.values()):
            mixed.append(place)
            continue
        names = "const { describe, test, it, beforeEach, afterEach } = require('node:test'); "
        head = (
            _RUNNER + _EXPECT if is_module else f"{names}const {{ expect }} = require('expect'); "
        )
        # Exercism's own checks take away the x, too, by which all tests but the first are left out.
        run = re.sub(r"\bx(test|it)\(", r"\1(", test)
        data = {str(one.relative_to(place)): one.read_bytes() for one in place.glob("data/*")}
        package = '{"type": "module"}' if is_module else "{}"
        yield Exercise(
            f"javascript-{place.name}",
            {**kept, **data, "package.json": package, **_modules(of.given)},
            _modules({name: head + run}),
            _modules(of.solution),
            grader={"type": "tests", "cmd": f"node --test {name}"},
        )
    _left_out("Babel alone imports what they export by module.exports", mixed)


def _modules(files: Mapping[str, str]) -> dict[str, str]:
    """What Babel allows and Node does not: imports without the suffix, and ``require`` as well."""
    found: dict[str, str] = {}
    for name, text in files.items():
        content = re.sub(r"(\bfrom '\./[\w-]+)'", r"\1.js'", text)
        if "require(" in text and re.search(r"^export ", text, re.MULTILINE):
            made = "import { createRequire } from 'node:module'; "
            content = f"{made}const require = createRequire(import.meta.url); {content}"
        found[name] = content
    return found


def _rust(directory: Path) -> Iterator[Exercise]:
    places = _places(directory, "rust")
    if not shutil.which("cargo"):
        _left_out("Rust needs cargo", places)
        return
    needy = [place for place in places if _has_crates(place)]
    _left_out("they need crates, which are not fetched", needy)
    for place in places:
        if place not in needy:
            of = published(place)
            tests = {name: re.sub(r"#\[ignore.*\]", "", text) for name, text in of.tests.items()}
            grader = {"type": "tests", "cmd": "cargo test --no-fail-fast --all-features"}
            yield Exercise(f"rust-{place.name}", of.given, tests, of.solution, grader=grader)


def _has_crates(place: Path) -> bool:
    files = (place / "Cargo.toml", place / ".meta/Cargo-example.toml")
    texts = [file.read_text("utf-8") for file in files if file.is_file()]
    return any(re.search(r"^\[dependencies\]\s+\w", text, re.MULTILINE) for text in texts)


def _cpp(directory: Path) -> Iterator[Exercise]:
    places = _places(directory, "cpp")
    if not shutil.which("g++"):
        _left_out("C++ needs g++", places)
        return
    needy = [place for place in places if "Boost" in (place / "CMakeLists.txt").read_text("utf-8")]
    _left_out("they need Boost", needy)
    catch: dict[str, str | bytes] = {}
    for place in places:
        if place not in needy:
            of = published(place)
            catch = catch or _catch(place / "test")
            yield _compiled(f"cpp-{place.name}", of, catch)


def _compiled(name: str, of: Published, catch: Mapping[str, str | bytes]) -> Exercise:
    sources = [file for file in (*of.given, *of.tests) if file.endswith(".cpp")]
    build = f"g++ -std=c++17 -DEXERCISM_RUN_ALL_TESTS {' '.join(sources)} test/main.o -pthread"
    run = "./tests -r junit -o report.xml"
    return Exercise(
        name,
        of.given,
        {**catch, **of.tests},
        of.solution,
        grader={
            "type": "tests",
            "cmd": f"{build} -o tests && {run}",
            "junit_xml": "report.xml",
        },
    )


def _catch(tests: Path) -> dict[str, str | bytes]:
    """The library of the tests, which takes ten times as long to compile as an exercise: once."""
    with tempfile.TemporaryDirectory() as home:
        made = Path(home, "main.o")
        command = ["g++", "-std=c++17", "-c", str(tests / "tests-main.cpp"), "-o", str(made)]
        subprocess.run(command, check=True)
        return {
            "test/main.o": made.read_bytes(),
            "test/catch.hpp": (tests / "catch.hpp").read_text("utf-8"),
        }


def _go(directory: Path) -> Iterator[Exercise]:
    places = _places(directory, "go")
    if not shutil.which("go"):
        _left_out("Go needs go", places)
        return
    reversed_ = [place for place in places if (place / ".meta/.skip_tests").exists()]
    _left_out("whoever solves them writes the tests", reversed_)
    newer = [place for place in places if _needs_a_newer_go(place)]
    _left_out("they need a newer Go", newer)
    for place in places:
        if place not in reversed_ and place not in newer:
            of = published(place)
            # The tables of the tests count as files to look at there, or have no name.
            tables = {file.name: file.read_text("utf-8") for file in place.glob("cases_test.go")}
            tests = {**of.tests, **tables}
            given = {name: text for name, text in of.given.items() if name not in tables}
            module = {"go.mod": (place / "go.mod").read_text("utf-8")}
            yield Exercise(
                f"go-{place.name}",
                {**module, **given},
                tests,
                of.solution,
                grader={"type": "tests", "cmd": "go test"},
            )


def _needs_a_newer_go(place: Path) -> bool:
    """Whether its solution does not compile, for a package that this Go has not."""
    told = subprocess.run(
        ["go", "vet", str(place / ".meta/example.go")], capture_output=True, text=True, check=False
    )
    return "is not in GOROOT" in told.stderr or "is not in std" in told.stderr


_JARS = Path("/usr/share/java")
_JUNIT = _JARS / "junit-platform-console-standalone.jar"
_CLASSES = ("junit-jupiter-api", "junit-jupiter-engine", "junit-jupiter-params", "assertj-core")


def _java(directory: Path) -> Iterator[Exercise]:
    """The tests are built with Gradle there; here, by the compiler and JUnit's own console."""
    places = _places(directory, "java")
    if not (shutil.which("javac") and _JUNIT.is_file()):
        _left_out("Java needs javac and Debian's junit5 and libassertj-core-java", places)
        return
    needy = [place for place in places if _has_packages(place)]
    _left_out("they need packages, or a newer AssertJ", needy)
    classes = ":".join(["made", *(str(_JARS / f"{name}.jar") for name in _CLASSES)])
    for place in places:
        if place not in needy:
            of = published(place)
            tests = {
                name: re.sub(r"@Disabled(\(.*?\))?", "", text) for name, text in of.tests.items()
            }
            reference = (place / ".meta/src/reference/java").glob("*.java")
            sources = "$(find src -name '*.java')"
            build = f"javac -encoding UTF-8 -cp {classes} -d made {sources}"
            run = f"java -cp {_JUNIT}:{classes} org.junit.platform.console.ConsoleLauncher"
            yield Exercise(
                f"java-{place.name}",
                of.given,
                tests,
                {f"src/main/java/{file.name}": file.read_text("utf-8") for file in reference},
                grader={
                    "type": "tests",
                    "cmd": f"{build} && {run} --scan-classpath made --reports-dir reports",
                    "junit_xml": "reports/TEST-junit-jupiter.xml",
                },
            )


def _has_packages(place: Path) -> bool:
    packages = re.findall(
        r"mplementation .*\"([\w.]+):", (place / "build.gradle").read_text("utf-8")
    )
    tests = (file.read_text("utf-8") for file in place.glob("src/test/java/*.java"))
    return bool({*packages} - {"org.junit", "org.junit.jupiter", "org.assertj"}) or any(
        ".hasDimensions(" in text for text in tests
    )
