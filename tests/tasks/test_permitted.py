"""Which of an agent's changes are graded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.tasks.permitted import KEPT_FROM_SOURCE, Rules, SubmissionSpec
from assay.types.codec import ShapeError
from tests.each import each

_TAKEN = [
    "mathkit.py",
    "src/lib.rs",
    "src/main/java/App.java",
    "lib/index.js",
    "django/test/client.py",
    "contest.py",
    "README.md",
    "setup/tool.py",
    "targets/a.c",
    "a/target",
]
_KEPT = [
    ("deep/down/conftest.py", "test runner configuration"),
    ("CONFTEST.PY", "test runner configuration"),
    ("\uff43onftest.py", "test runner configuration"),
    ("jest.config.mjs", "test runner configuration"),
    ("setup.cfg", "test runner configuration"),
    ("tox.ini", "test runner configuration"),
    ("pyproject.toml", "build configuration"),
    ("test_mathkit.py", "tests"),
    ("pkg/kit_test.go", "tests"),
    ("src/kit.test.tsx", "tests"),
    ("src/kit.spec.cjs", "tests"),
    ("src/test/java/KitTest.java", "tests"),
    ("sub/makefile", "build configuration"),
    ("Makefile", "build configuration"),
    ("Cargo.toml", "build configuration"),
    (".cargo/config.toml", "build configuration"),
    ("build.gradle.kts", "build configuration"),
    ("cmake/FindKit.cmake", "build configuration"),
    ("build/CMakeCache.txt", "caches and build output"),
    # Without it cargo builds anew: what it built before would be run for other sources.
    ("rust/target/debug/.fingerprint/kit-1/lib-kit", "caches and build output"),
    ("evil.pth", "start-up hooks"),
    ("node_modules/.bin/jest", "installed packages"),
    ("lib/helper.jar", "installed packages"),
    ("plug.egg-info/entry_points.txt", "installed packages"),
    ("pkg/__pycache__/mod.cpython-311.pyc", "caches and build output"),
    (".git/hooks/post-checkout", "version control"),
]


def test_attack_assertions_of_its_own_in_java() -> None:
    """Its classes are found before the library's; the library's own repository may have them."""
    own = "src/main/java/org/junit/jupiter/api/Assertions.java"
    rules = Rules(source=["pom.xml", "src/main/java/Kit.java"])
    assert rules.decide(own) == ("protected", "a package of a test library")
    assert rules.sign(own) == "a new package has the name of a test library's"
    assert rules.decide("src/main/java/org/junitish/Kit.java")[0] == "taken"
    library = Rules(source=["src/main/java/org/junit/jupiter/api/Test.java"])
    assert library.decide(own)[0] == "taken"
    assert library.decide("src/main/java/org/hamcrest/Is.java")[0] == "protected"


@each("path", _TAKEN)
def test_work_is_taken(path: str) -> None:
    assert Rules().decide(path) == ("taken", "")


@each(("path", "why"), _KEPT)
def test_what_decides_the_judgement_is_kept_from_the_source(path: str, why: str) -> None:
    assert Rules().decide(path) == ("protected", why)


@each(
    ("spec", "path", "verdict"),
    [
        (SubmissionSpec(include=("package.json",)), "package.json", "taken"),
        (SubmissionSpec(include=("package.json",)), "a/package.json", "taken"),
        (SubmissionSpec(include=("/package.json",)), "a/package.json", "protected"),
        (SubmissionSpec(include=("tests/**/*.py",)), "tests/unit/test_a.py", "taken"),
        (SubmissionSpec(include=("tests/**/*.py",)), "tests/conftest.cfg", "protected"),
        (SubmissionSpec(protect=("**",), include=("src",)), "src/a/b.py", "taken"),
        (SubmissionSpec(protect=("**",), include=("src",)), "other.py", "protected"),
        (SubmissionSpec(exclude=("*.log",)), "out/x.log", "excluded"),
        (SubmissionSpec(exclude=("*.log",), include=("*.log",)), "x.log", "excluded"),
        (SubmissionSpec(protect=("data/[a-c]*.csv",)), "data/big.csv", "protected"),
        (SubmissionSpec(protect=("data/[!a-c]*.csv",)), "data/big.csv", "taken"),
        (SubmissionSpec(protect=("a?c",)), "x/abc/d", "protected"),
    ],
)
def test_a_case_has_the_last_word(spec: SubmissionSpec, path: str, verdict: str) -> None:
    assert Rules(spec).decide(path)[0] == verdict


@each("pattern", ["", "!keep", "../out", "a\0b"])
def test_a_pattern_that_means_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(ShapeError):
        SubmissionSpec(include=(pattern,))


@given(st.text(max_size=60), st.sampled_from(sorted(KEPT_FROM_SOURCE)))
def test_any_path_gets_a_verdict(path: str, what: str) -> None:
    assert Rules().decide(path)[0] in ("taken", "protected")
    for pattern in KEPT_FROM_SOURCE[what]:
        if not {"*", "[", "?"} & set(pattern):
            name = pattern.strip("/")
            why = "build configuration" if name == ".gradle" else what  # by "*.gradle", too
            assert Rules().decide(name) == ("protected", why)
            assert Rules().decide(f"{name}/{path}")[0] == "protected"
