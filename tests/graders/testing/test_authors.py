"""Whose tests a report names: padding by a submission's own, and its own that fail. Pure."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from assay.graders.testing.authors import Authors, Counted, read_authors
from assay.graders.testing.console import read_console
from assay.graders.testing.junit import read_junit
from assay.graders.testing.outcomes import TestOutcome
from assay.types import Workspace
from tests.each import each
from tests.written_files import write_files

PADS = range(99)
WORDS = {"pass": "ok", "fail": "FAILED"}


@dataclass(frozen=True, kw_only=True)
class Ecosystem:
    """A hidden file, a test of the source, the submission's own, and how reports name them."""

    hidden: dict[str, str]
    theirs: tuple[str, ...] = ()
    own: dict[str, str]
    pads: tuple[str, ...] = ()
    form: str
    source: dict[str, str] = field(default_factory=dict[str, str])


def cargo(tests: Mapping[str, str]) -> str:
    lines = [f"test {name} ... {WORDS[word]}" for name, word in tests.items()]
    return "\n".join([f"running {len(lines)} tests", *lines])


def go(tests: Mapping[str, str]) -> str:
    events: list[dict[str, str]] = []
    for name, word in tests.items():
        package, test = name.split("::")
        events.append({"Action": "run", "Package": package, "Test": test})
        events.append({"Action": word, "Package": package, "Test": test})
    return "\n".join(json.dumps(event) for event in events)


def tap(tests: Mapping[str, str]) -> str:
    return "\n".join(
        f"{'ok' if word == 'pass' else 'not ok'} {number} - {name}"
        for number, (name, word) in enumerate(tests.items(), 1)
    )


def junit(tests: Mapping[str, str]) -> str:
    cases = ""
    for name, word in tests.items():
        group, _, test = name.partition("::")
        inner = "" if word == "pass" else "<failure/>"
        cases += f'<testcase classname="{group}" name="{test}">{inner}</testcase>'
    return f"<testsuite>{cases}</testsuite>".replace(" > ", " &gt; ")


def outcomes(form: str, tests: Mapping[str, str]) -> dict[str, TestOutcome]:
    if form == "junit":
        return read_junit({"report.xml": junit(tests).encode()})
    writers = {"cargo": cargo, "go-json": go, "tap": tap}
    return read_console(form, writers[form](tests))


JS = "describe('math', () => { it('adds', f); it('halves', f); });"
JS_OWN = "describe('own', () => {" + "".join(f"it('p{n}', f);" for n in PADS) + "});"
RUST = "#[test] fn adds() {} mod deep { #[test] fn halves() {} }"
RUST_OWN = "pub fn add() {} mod t {" + "".join(f"#[test] fn p{n}() {{}}\n" for n in PADS) + "}"
GO = (
    'package kit\nimport "testing"\n'
    "func TestAdds(t *testing.T) {}\nfunc TestHalves(t *testing.T) {}\n"
)
GO_OWN = "package kit\n" + "".join(f"func TestP{n}(t *testing.T) {{}}\n" for n in PADS)
JAVA = "package org.kit;\nclass KitTest { @Test void adds() {} @Test void halves() {} }"
JAVA_OWN = "class PadTest {" + "".join(f"@Test void p{n}() {{}}\n" for n in PADS) + "}"

CARGO = Ecosystem(
    hidden={"tests/s.rs": RUST},
    theirs=("adds", "deep::halves"),
    source={"src/lib.rs": ""},
    own={"src/lib.rs": RUST_OWN},
    pads=tuple(f"t::p{n}" for n in PADS),
    form="cargo",
)
GO_MODULE = Ecosystem(
    hidden={"sums/kit_test.go": GO},
    theirs=("kit/sums::TestAdds", "kit/sums::TestHalves"),
    source={"go.mod": "module kit\n"},
    own={"sums/own_test.go": GO_OWN},
    pads=tuple(f"kit/sums::TestP{n}" for n in PADS),
    form="go-json",
)
ECOSYSTEMS = {
    "cargo": replace(
        CARGO, source={"src/lib.rs": "", "src/old.rs": "mod tests { #[test] fn stays() {} }"}
    ),
    "cargo, with the hidden tests' names in modules of its own": replace(
        CARGO,
        own={"src/lib.rs": "".join(f"mod a{n} {{ #[test] fn adds() {{}} }}\n" for n in PADS)},
        pads=tuple(f"a{n}::adds" for n in PADS),
    ),
    "cargo, by a macro": replace(
        CARGO,
        source={},
        own={"src/lib.rs": "macro_rules! t { ($($n:ident)*) => { $(#[test] fn $n() {})* } }"},
        pads=tuple(f"q{n}" for n in PADS),
    ),
    "cargo, by examples of the documentation": replace(
        CARGO,
        own={"src/lib.rs": "/// ```\n/// ```\npub fn add() {}"},
        pads=tuple(f"src/lib.rs - add (line {n})" for n in PADS),
    ),
    "nextest": Ecosystem(
        hidden={"tests/s.rs": RUST},
        theirs=("kit::s::adds", "kit::s::deep::halves"),
        own={"src/lib.rs": RUST_OWN},
        pads=tuple(f"kit::t::p{n}" for n in PADS),
        form="junit",
    ),
    "go": GO_MODULE,
    "go, with the hidden tests' names in packages of its own": replace(
        GO_MODULE,
        own={f"a{n}/sums/own_test.go": GO for n in PADS},
        pads=tuple(f"kit/a{n}/sums::TestAdds" for n in PADS),
    ),
    "jest": Ecosystem(
        hidden={"test/kit.test.js": JS},
        theirs=("math adds::math adds", "math halves::math halves"),
        own={"src/own.test.js": JS_OWN},
        pads=tuple(f"own p{n}::own p{n}" for n in PADS),
        form="junit",
    ),
    "vitest": Ecosystem(
        hidden={"test/kit.test.ts": JS},
        theirs=("test/kit.test.ts::math > adds", "test/kit.test.ts::math > computed 7"),
        own={"src/own.test.ts": JS},
        pads=tuple(f"src/own.test.ts::math > p{n}" for n in PADS),
        form="junit",
    ),
    "surefire": Ecosystem(
        hidden={"src/test/java/org/kit/KitTest.java": JAVA},
        theirs=("org.kit.KitTest::adds", "org.kit.KitTest::halves(int)[1]"),
        own={"src/test/java/PadTest.java": JAVA_OWN},
        pads=tuple(f"PadTest::p{n}" for n in PADS),
        form="junit",
    ),
    "surefire, with the hidden class's name in packages of its own": Ecosystem(
        hidden={"src/test/java/org/kit/KitTest.java": JAVA},
        theirs=("org.kit.KitTest::adds", "org.kit.KitTest::halves"),
        own={f"src/test/java/a{n}/KitTest.java": JAVA.replace("org.kit", f"a{n}") for n in PADS},
        pads=tuple(f"a{n}.KitTest::adds" for n in PADS),
        form="junit",
    ),
    "tap": Ecosystem(
        hidden={"test/kit.test.js": JS},
        theirs=("math adds", "math halves"),
        own={"test/own.test.js": JS_OWN},
        pads=tuple(f"own p{n}" for n in PADS),
        form="tap",
    ),
}


def authors_of(one: Ecosystem) -> Authors:
    with tempfile.TemporaryDirectory() as root:
        write_files(Path(root, "source"), {".keep": "", **one.source})
        write_files(Path(root, "tree"), {**one.source, **one.own})
        place = Workspace(path=f"{root}/tree", source=f"{root}/source", changes=(*one.own,))
        is_junit = one.form == "junit"
        console = None if is_junit else one.form
        return read_authors(one.hidden, place, console=console, junit=is_junit)


def count(one: Ecosystem, tests: Mapping[str, str]) -> Counted:
    return authors_of(one).count(outcomes(one.form, tests), canaries=False)


@each("name", ECOSYSTEMS)
def test_padding_with_tests_of_its_own_gains_nothing(name: str) -> None:
    one = ECOSYSTEMS[name]
    authors = authors_of(one)
    padded = dict.fromkeys(one.theirs, "fail") | dict.fromkeys(one.pads, "pass")
    for canaries in (False, True):
        found = authors.count(outcomes(one.form, padded), canaries=canaries)
        assert found.ids == {*one.theirs}
        assert any("99 tests are not the author's" in line for line in found.notes)
    # Nor where the hidden tests are never heard of.
    found = authors.count(outcomes(one.form, dict.fromkeys(one.pads, "pass")), canaries=False)
    assert (found.ids, len(found.missing)) == (set(), 2)


# Whose a test is that nobody is seen to declare, as by a macro, is not known.
@each("name", [name for name in ECOSYSTEMS if "macro" not in name])
def test_an_own_test_that_fails_costs_nothing(name: str) -> None:
    one = ECOSYSTEMS[name]
    found = count(one, dict.fromkeys(one.theirs, "pass") | {one.pads[0]: "fail"})
    assert (found.ids, found.missing) == ({*one.theirs}, ())
    assert "1 test is not the author's" in found.notes[0]


def test_tests_of_files_that_were_left_alone_count() -> None:
    names = ("adds", "deep::halves", "old::tests::stays", "t::p1")
    reported: dict[str, str] = dict.fromkeys(names, "pass")
    assert count(ECOSYSTEMS["cargo"], reported).ids == {*reported} - {"t::p1"}


@each(
    ("hidden", "form", "tests"),
    [
        ({"kit_test.go": GO}, "go-json", ["kit::TestAdds", "kit::TestAdds/one", "kit::TestHalves"]),
        (
            {"tests/s.rs": "#[rstest]\n#[case(1)]\nfn adds(#[case] n: i32) {}"},
            "cargo",
            ["adds::case_1", "adds::case_2"],
        ),
        (
            {"a.test.js": "describe(name, () => { it('adds', f); it.each([1])('has %i', f); });"},
            "junit",
            ["kit adds::kit adds", "kit has 1::kit has 1", "kit has 2::kit has 2"],
        ),
        ({"a.test.js": "for (const n of all) test(n, () => {});"}, "junit", ["x::a b", "x::c d"]),
        (
            {"src/test/kotlin/KitTest.kt": "package org.kit\nclass KitTest"},
            "junit",
            ["org.kit.KitTest::adds()", "org.kit.KitTest::adds(int)[2]"],
        ),
        ({"tests/test_kit.py": "def test_a(): ..."}, "junit", ["tests.test_kit::test_a[1]"]),
        ({"kit.bats": "@test 'adds' { true; }"}, "tap", ["adds", "halves"]),
    ],
)
def test_names_that_reading_does_not_find_whole_still_count(
    hidden: dict[str, str], form: str, tests: list[str]
) -> None:
    readable = {path: text for path, text in hidden.items() if not path.endswith(".bats")}
    one = Ecosystem(
        hidden=readable,
        source={"go.mod": "module kit\n"},
        own={"src/lib.rs": "pub fn add() {}", "kit.js": "f();", "kit.go": "package kit"},
        form=form,
    )
    assert count(one, dict.fromkeys(tests, "pass")).ids == {*tests}


def test_where_all_of_the_author_s_tests_are_in_changed_files_their_names_count() -> None:
    one = Ecosystem(
        hidden={},
        source={"src/lib.rs": "mod t { #[test] fn adds() {} }"},
        own={"src/lib.rs": "mod t { #[test] fn adds() {} #[test] fn pads() {} }"},
        form="cargo",
    )
    found = count(one, {"t::adds": "fail", "t::pads": "pass"})
    assert found.ids == {"t::adds"}


def test_a_report_that_only_counts_is_capped_at_what_the_author_declares() -> None:
    one = Ecosystem(hidden={"kit.test.js": JS}, own={"own.test.js": JS_OWN}, form="mocha")
    padded = read_console("mocha", "  99 passing (1s)\n  2 failing\n")
    found = authors_of(one).count(padded, canaries=False)
    assert found.ids == {"failed 1", "failed 2"}
    (note,) = found.notes
    assert note == (
        "the report does not name every test as its source does, so tests of the submission's own "
        "cannot be told apart: of 101 no more than the 2 that the author declares count, "
        "failures first"
    )


def test_a_report_of_one_language_misses_no_test_of_another() -> None:
    one = Ecosystem(
        hidden={"tests/s.rs": RUST, "tests/test_s.py": "def test_a(): ...", "kit.test.js": JS},
        theirs=(),
        own={"src/lib.rs": ""},
        pads=(),
        form="cargo",
    )
    assert count(one, {"adds": "pass"}).missing == ("deep::halves",)


def test_without_a_source_everything_counts_and_a_note_says_so(tmp_path: Path) -> None:
    authors = read_authors(
        {"tests/s.rs": RUST}, Workspace(path=str(tmp_path)), console="cargo", junit=False
    )
    heard = outcomes("cargo", {"adds": "pass", "t::p1": "pass"})
    found = authors.count(heard, canaries=True)
    assert found.ids == {"adds", "t::p1"}
    assert "cannot be told apart" in found.notes[0]
