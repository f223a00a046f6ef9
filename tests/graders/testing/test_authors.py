"""Whose tests a report names: padding by a submission's own, and its own that fail. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from assay.graders.testing.authors import Counted, read_authors
from assay.graders.testing.console import read_console
from assay.graders.testing.junit import read_junit
from assay.graders.testing.outcomes import TestOutcome
from assay.types import Workspace
from tests.written_files import write_files

PADS = range(99)
WORDS = {"pass": "ok", "fail": "FAILED"}


@dataclass(frozen=True, kw_only=True)
class Ecosystem:
    """A hidden file, a test of the source, the submission's own, and how reports name them."""

    hidden: dict[str, str]
    theirs: tuple[str, ...]
    own: dict[str, str]
    pads: tuple[str, ...]
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

ECOSYSTEMS = {
    "cargo": Ecosystem(
        hidden={"tests/s.rs": RUST},
        theirs=("adds", "deep::halves"),
        source={"src/lib.rs": "", "src/old.rs": "mod tests { #[test] fn stays() {} }"},
        own={"src/lib.rs": RUST_OWN},
        pads=tuple(f"t::p{n}" for n in PADS),
        form="cargo",
    ),
    "cargo, with the hidden tests' names in modules of its own": Ecosystem(
        hidden={"tests/s.rs": RUST},
        theirs=("adds", "deep::halves"),
        source={"src/lib.rs": ""},
        own={"src/lib.rs": "".join(f"mod a{n} {{ #[test] fn adds() {{}} }}\n" for n in PADS)},
        pads=tuple(f"a{n}::adds" for n in PADS),
        form="cargo",
    ),
    "cargo, by a macro": Ecosystem(
        hidden={"tests/s.rs": RUST},
        theirs=("adds", "deep::halves"),
        own={"src/lib.rs": "macro_rules! t { ($($n:ident)*) => { $(#[test] fn $n() {})* } }"},
        pads=tuple(f"q{n}" for n in PADS),
        form="cargo",
    ),
    "cargo, by examples of the documentation": Ecosystem(
        hidden={"tests/s.rs": RUST},
        theirs=("adds", "deep::halves"),
        source={"src/lib.rs": ""},
        own={"src/lib.rs": "/// ```\n/// ```\npub fn add() {}"},
        pads=tuple(f"src/lib.rs - add (line {n})" for n in PADS),
        form="cargo",
    ),
    "nextest": Ecosystem(
        hidden={"tests/s.rs": RUST},
        theirs=("kit::s::adds", "kit::s::deep::halves"),
        own={"src/lib.rs": RUST_OWN},
        pads=tuple(f"kit::t::p{n}" for n in PADS),
        form="junit",
    ),
    "go": Ecosystem(
        hidden={"sums/kit_test.go": GO},
        theirs=("kit/sums::TestAdds", "kit/sums::TestHalves"),
        source={"go.mod": "module kit\n"},
        own={"sums/own_test.go": GO_OWN},
        pads=tuple(f"kit/sums::TestP{n}" for n in PADS),
        form="go-json",
    ),
    "go, with the hidden tests' names in packages of its own": Ecosystem(
        hidden={"sums/kit_test.go": GO},
        theirs=("kit/sums::TestAdds", "kit/sums::TestHalves"),
        source={"go.mod": "module kit\n"},
        own={f"a{n}/sums/own_test.go": GO for n in PADS},
        pads=tuple(f"kit/a{n}/sums::TestAdds" for n in PADS),
        form="go-json",
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


def put(root: Path, files: Mapping[str, str]) -> None:
    write_files(root, files)


def workspace(root: Path, source: Mapping[str, str], own: Mapping[str, str]) -> Workspace:
    (root / "source").mkdir()
    put(root / "source", source)
    put(root / "tree", {**source, **own})
    return Workspace(path=str(root / "tree"), source=str(root / "source"), changes=(*own,))


def count(root: Path, one: Ecosystem, tests: Mapping[str, str]) -> Counted:
    place = workspace(root, one.source, one.own)
    is_junit = one.form == "junit"
    authors = read_authors(
        one.hidden, place, console=None if is_junit else one.form, junit=is_junit
    )
    return authors.count(outcomes(one.form, tests), canaries=False)


@pytest.fixture(params=list(ECOSYSTEMS))
def ecosystem(request: pytest.FixtureRequest) -> Ecosystem:
    return ECOSYSTEMS[request.param]


def test_padding_with_tests_of_its_own_gains_nothing(tmp_path: Path, ecosystem: Ecosystem) -> None:
    reported = dict.fromkeys(ecosystem.theirs, "fail") | dict.fromkeys(ecosystem.pads, "pass")
    found = count(tmp_path, ecosystem, reported)
    assert found.ids == {*ecosystem.theirs}
    assert any("99 tests are not the author's" in line for line in found.notes)


def test_padding_while_the_hidden_tests_are_never_heard_of_gains_nothing(
    tmp_path: Path, ecosystem: Ecosystem
) -> None:
    found = count(tmp_path, ecosystem, dict.fromkeys(ecosystem.pads, "pass"))
    assert found.ids == set()
    assert len(found.missing or ()) == 2


def test_an_own_test_that_fails_costs_nothing(tmp_path: Path, ecosystem: Ecosystem) -> None:
    if "macro" in ecosystem.own.get("src/lib.rs", ""):
        pytest.skip("whose a test is that nobody is seen to declare is not known")
    reported = dict.fromkeys(ecosystem.theirs, "pass") | {ecosystem.pads[0]: "fail"}
    found = count(tmp_path, ecosystem, reported)
    assert (found.ids, found.missing) == ({*ecosystem.theirs}, ())
    assert "1 test is not the author's" in found.notes[0]


def test_tests_of_files_that_were_left_alone_count(tmp_path: Path) -> None:
    names = ("adds", "deep::halves", "old::tests::stays", "t::p1")
    reported: dict[str, str] = dict.fromkeys(names, "pass")
    assert count(tmp_path, ECOSYSTEMS["cargo"], reported).ids == {*reported} - {"t::p1"}


@pytest.mark.parametrize(
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
    tmp_path: Path, hidden: dict[str, str], form: str, tests: list[str]
) -> None:
    readable = {path: text for path, text in hidden.items() if not path.endswith(".bats")}
    one = Ecosystem(
        hidden=readable,
        theirs=(),
        source={"go.mod": "module kit\n"},
        own={"src/lib.rs": "pub fn add() {}", "kit.js": "f();", "kit.go": "package kit"},
        pads=(),
        form=form,
    )
    assert count(tmp_path, one, dict.fromkeys(tests, "pass")).ids == {*tests}


def test_where_all_of_the_author_s_tests_are_in_changed_files_their_names_count(
    tmp_path: Path,
) -> None:
    one = Ecosystem(
        hidden={},
        theirs=(),
        source={"src/lib.rs": "mod t { #[test] fn adds() {} }"},
        own={"src/lib.rs": "mod t { #[test] fn adds() {} #[test] fn pads() {} }"},
        pads=(),
        form="cargo",
    )
    found = count(tmp_path, one, {"t::adds": "fail", "t::pads": "pass"})
    assert found.ids == {"t::adds"}


def test_a_report_that_only_counts_is_capped_at_what_the_author_declares(tmp_path: Path) -> None:
    place = workspace(tmp_path, {}, {"own.test.js": JS_OWN})
    authors = read_authors({"kit.test.js": JS}, place, console="mocha", junit=False)
    padded = read_console("mocha", "  99 passing (1s)\n  2 failing\n")
    found = authors.count(padded, canaries=False)
    assert found.ids == {"failed 1", "failed 2"}
    assert "cannot be told apart" in found.notes[0]
    assert "no more than the 2" in found.notes[0]


def test_without_a_source_everything_counts_and_a_note_says_so(tmp_path: Path) -> None:
    authors = read_authors(
        {"tests/s.rs": RUST}, Workspace(path=str(tmp_path)), console="cargo", junit=False
    )
    heard = outcomes("cargo", {"adds": "pass", "t::p1": "pass"})
    found = authors.count(heard, canaries=True)
    assert found.ids == {"adds", "t::p1"}
    assert "cannot be told apart" in found.notes[0]
