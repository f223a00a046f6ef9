"""Tests that sources declare, canaries planted into them, toolchains. Pure but for the last."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import GraderError
from assay.graders.testing import runners
from assay.graders.testing.authors import Authors, read_authors
from assay.graders.testing.outcomes import Outcome, TestOutcome
from assay.graders.testing.reports import Canary, plant_canary, without_canaries
from assay.graders.testing.runners import Toolchain, tools_for
from assay.graders.testing.static_ids import (
    language_of,
    matches_id,
    read_static_tests,
    unheard,
)
from assay.types import Workspace
from tests.each import each

GO = """package kit

import "testing"

func TestMain(m *testing.M) {}
func TestAdd(t *testing.T) { t.Run("one", func(t *testing.T) {}) }
func Testify(t *testing.T) {}
func helper(t *testing.T)  {}
// func TestCommented(t *testing.T) {}
var s = `
func TestQuoted(t *testing.T) {}
\\`
func Test_lower(tt *testing.T) {}
func TestLater(t *testing.T) {
	// not yet
	t.Parallel()
	t.Skip("later")
}
func TestThere(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH == "mips" { t.Skip("elsewhere") }
}
func TestElsewhere(t *testing.T) {
	if runtime.GOOS == "linux" || testing.Short() { t.Skip() }
}
func TestIf(t *testing.T) {
	if kit.Broken() || testing.Short() { t.Skip() }
}
func TestSome(t *testing.T) {
	if kit.Broken() {
		t.Skip()
	}
	t.Run("a b", func(t *testing.T) { t.SkipNow() })
	t.Run("c", func(t *testing.T) { t.Log(); t.Skip() })
	t.Run(name, func(t *testing.T) { t.Run("d", func(t *testing.T) { t.Skip() }) })
}
"""
RUST = """use kit::add;
#[test]
fn adds() { let c = '"'; let r = r#"#[test] fn quoted() {}"#; }
// #[test] fn commented() {}
mod deep {
    mod er { #[test] #[should_panic] fn panics() {} }
    #[ignore] #[test] fn later() {}
    #[tokio::test(flavor = "x")]
    async fn waits() {}
}
#[test]
#[ignore = "slow"]
fn slow() {}
fn no_test<'a>(x: &'a str) {}
"""
JAVA = """package org.kit;
import org.junit.jupiter.api.Test;
class KitTest {
    @Test void adds() { String s = "@Test void quoted() {}"; }
    @Test
    @DisplayName("it (really) halves")
    public void halves() throws Exception {}
    @Disabled @Test void later() {}
    @ParameterizedTest @ValueSource(ints = {1, 2}) void each(int n) {}
    @BeforeEach void before() {}
    // @Test void commented() {}
    @Nested class Inner { @Test void deep() {} }
    @Test(enabled = false) void never() {}
    @Test @DisabledOnOs(OS.WINDOWS) void here() {}
    @Disabled("why") @Nested class Off { @Test void over() {} }
}
"""
JAVASCRIPT = r"""const test = require('node:test');
describe('math', () => {
  it('adds', () => {});
  it("it's \"quoted\"", async () => {});
  describe.skip('off', () => { it('never', () => {}); });
  it.skip('later', () => {});
  xit('also later', () => {});
});
test('top', { timeout: 1 }, () => {});
test('', () => {});
test('caf\u00e9\n\x41', () => {});
test(`computed ${name}`, () => {});
test('pre' + name, () => {});
test.each([[1]])('each %i', () => {});
// it('commented', () => {});
const s = "it('in text', () => {})";
/x/.test('not a test');
await t.test('sub', () => {});
test('options', { skip: true }, () => {});
test('reason', { timeout: f(1, 2), skip: 'why' }, () => {});
test('todo', { todo: true });
test('no', { skip: false, todo: '' }, () => {});
test('unsure', { skip: process.env.X }, () => {});
test('also unsure', { skip: true, ...more }, () => {});
test('of a part', { skip: true && no }, () => {});
test('deep', { skip: { skip: true } }, () => {});
describe('closed', { skip: true }, () => { it('in', () => {}); });
test('outer', async (t) => {
  await t.test('left', { skip: true }, () => {});
  await t.test('twice', { skip: true }, () => {});
  await t.test('twice', () => {});
});
it('without a function');
test.concurrent.skip('chained', () => {});
test.describe('group', () => { test.it('x', () => {}); test('inside', () => {}); });
if (x) { test.skip('either', () => {}); } else { test('either', () => {}); }
"""


@each(
    ("path", "text", "names", "skipped"),
    [
        (
            "kit_test.go",
            GO,
            ("TestAdd", "Test_lower", "TestThere", "TestSome"),
            ("TestLater", "TestElsewhere", "TestSome/a_b"),
        ),
        ("kit.go", GO, (), ()),
        (
            "tests/hidden.rs",
            RUST,
            ("adds", "deep::er::panics", "deep::waits"),
            ("deep::later", "slow"),
        ),
        (
            "src/test/java/org/kit/KitTest.java",
            JAVA,
            (
                "KitTest::adds",
                "KitTest::halves",
                "KitTest::each",
                "KitTest$Inner::deep",
                "KitTest::here",
            ),
            ("KitTest::later", "KitTest::never", "KitTest$Off::over", "KitTest$Off"),
        ),
        (
            "kit.test.mjs",
            JAVASCRIPT,
            (
                "math > adds",
                'math > it\'s "quoted"',
                "top",
                "caf\u00e9\nA",
                "no",
                "unsure",
                "also unsure",
                "of a part",
                "deep",
                "outer",
                "group > x",
                "group > inside",
                "either",
            ),
            (
                "math > off > never",
                "math > later",
                "math > also later",
                "options",
                "reason",
                "todo",
                "closed > in",
                "without a function",
                "chained",
                "outer > left",
            ),
        ),
    ],
)
def test_declared_tests_are_found(
    path: str, text: str, names: tuple[str, ...], skipped: tuple[str, ...]
) -> None:
    found = read_static_tests(path, text)
    assert (found.names, found.skipped) == (names, skipped)


@each(
    ("name", "test_id", "means"),
    [
        ("TestAdd", "kit::TestAdd", True),
        ("TestAdd", "kit::TestAdd/one", True),
        ("TestAdd", "kit::TestAddAll", False),
        ("Add", "kit::TestAdd", False),
        ("KitTest::adds", "org.kit.KitTest::adds()", True),
        ("KitTest::adds", "org.kit.KitTest::adds(int)[1]", True),
        ("KitTest::adds", "org.OtherKitTest::adds", False),
        ("math > adds", "./a.test.js > math > adds", True),
        ("adds", "x adds", True),
        ("adds", "", False),
    ],
)
def test_ids_of_runners_are_recognised(name: str, test_id: str, *, means: bool) -> None:
    assert matches_id(name, test_id) is means


def test_unheard_tests_are_told() -> None:
    ids = ["kit::TestAdd", "kit::TestHalf/one"]
    assert unheard(["TestAdd", "TestHalf", "TestGone"], ids) == ("TestGone",)


@given(
    st.sampled_from(["a_test.go", "a.rs", "A.java", "a.js", "a.txt"]),
    st.text(max_size=200) | st.text(alphabet="({[`'\"/*#@!test ifn\n", max_size=120),
)
def test_nothing_raises(path: str, text: str) -> None:
    assert isinstance(read_static_tests(path, text).names, tuple)


def authors_of(files: Mapping[str, str]) -> Authors:
    return read_authors(files, Workspace(path="/nowhere"), console=None, junit=True)


class TestLeftOut:
    """Tests that their author leaves out, as each runner reports them."""

    FILES: Mapping[str, str] = {
        "kit_test.go": GO,
        "tests/hidden.rs": RUST,
        "KitTest.java": JAVA,
        "kit.test.mjs": JAVASCRIPT,
        "tests/test_kit.py": "import pytest, unittest\n@pytest.mark.skip\ndef test_off(): ...\n"
        "@pytest.mark.skipif(kit.old)\ndef test_old(): ...\n"
        "class KitTest(unittest.TestCase):\n"
        "    @unittest.skip('why')\n    def test_two(self): ...\n",
    }

    @each(
        ("test_id", "spared"),
        [
            ("kit::TestLater", True),
            ("kit::TestSome", False),
            ("kit::TestSome/a_b", True),
            ("kit::TestSome/c", False),
            ("slow", True),
            ("adds", False),
            ("org.kit.KitTest::later()", True),
            ("org.kit.KitTest::here", False),
            ("org.kit.KitTest$Off::org.kit.KitTest$Off", True),
            ("kit.test.mjs::math > later", True),  # Vitest
            ("math later::math later", True),  # jest-junit
            ("also later::math also later", True),  # mocha-junit-reporter
            ("math::later", True),  # xunit
            ("kit.test.mjs::math > adds", False),
            ("kit.test.mjs::computed options", False),
            ("tests.test_kit::test_off", True),
            ("tests.test_kit::test_old", False),
            ("tests.test_kit.KitTest::test_two", True),
            ("tests.test_kit.KitTest.test_two", True),  # unittest
        ],
    )
    def test_by_name(self, test_id: str, *, spared: bool) -> None:
        authors = authors_of(self.FILES)
        for outcome in ("skipped", "passed", "failed"):
            found = authors.left_out({test_id: TestOutcome(id=test_id, outcome=outcome)})
            assert found == ({test_id} if spared and outcome == "skipped" else set())

    def test_where_a_report_only_counts_no_more_are_left_out_than_the_author_does(self) -> None:
        authors = authors_of({"a.test.js": "it.skip('a', f); it.skip('b', f); it('c', f);"})
        outcomes: dict[str, TestOutcome] = {}
        for name in ("passed 1", "skipped 1", "skipped 2", "skipped 3"):
            outcome: Outcome = "passed" if name == "passed 1" else "skipped"
            outcomes[name] = TestOutcome(id=name, outcome=outcome)
        assert authors.left_out(outcomes) == {"skipped 1", "skipped 2"}
        assert authors_of({"a.test.js": "it('c', f);"}).left_out(outcomes) == set()

    def test_a_name_that_another_file_runs_is_expected(self) -> None:
        authors = authors_of({"a.test.js": "it.skip('a', f)", "b.test.js": "it('a', f)"})
        assert authors.left_out({"a": TestOutcome(id="a", outcome="skipped")}) == set()


CANARY = Canary(name="c0ffee", planted="0123456789abcdef")


class TestCanaries:
    """A test that must fail."""

    @each(
        ("path", "text", "planted"),
        [
            ("kit_test.go", GO, "func TestC0ffeex3(t *testing.T)"),
            (
                "kit_test.go",
                GO.replace('"testing"', 'tt "testing"').replace("*testing.T", "*tt.T"),
                "(t *tt.T)",
            ),
            ("tests/hidden.rs", RUST, "fn c0ffeex3()"),
            ("kit.test.ts", JAVASCRIPT, "'c0ffeex3'"),
        ],
    )
    def test_it_is_appended(self, path: str, text: str, planted: str) -> None:
        changed = plant_canary(path, text, CANARY, number=3)
        assert changed is not None
        assert re.sub(r" defer \w+\.Run\(.*?\}\);", "", changed).startswith(text)
        assert planted in changed
        assert CANARY.planted in changed
        own = set(read_static_tests(path, changed).names) - set(read_static_tests(path, text).names)
        if language_of(path) in ("go", "rust") and "tt " not in changed:
            assert len(own) == 1

    @each(
        ("path", "text"),
        [
            ("KitTest.java", JAVA),
            ("helper.rs", "fn add() {}"),
            ("kit_test.go", 'package kit\nimport . "testing"\nfunc TestA(t *T) {}'),
            ("data.json", "{}"),
        ],
    )
    def test_what_cannot_have_one_gets_none(self, path: str, text: str) -> None:
        assert plant_canary(path, text, CANARY) is None

    @each(
        ("reported", "planted", "left", "wrong"),
        [
            ({"kit::TestC0ffeex0": "failed", "kit::TestAdd": "passed"}, 1, 1, ""),
            ({"c0ffeex0": "failed", "c0ffeex1": "failed", "adds": "passed"}, 2, 1, ""),
            ({"c0ffeex0": "failed", "adds": "passed"}, 2, 1, "canary missing"),
            ({"c0ffeex0": "failed", "c0ffeex0 2": "failed"}, 2, 0, "canary missing"),
            ({"c0ffeex0": "passed", "adds": "passed"}, 1, 1, "canary passed"),
            ({"c0ffeex0": "skipped"}, 1, 0, "canary passed"),
            ({"a.js::c0ffeex0 c0ffeex0": "failed"}, 1, 0, ""),
            ({"adds": "passed"}, 0, 1, ""),
            ({"kit::TestAdd": "passed", "kit::TestAdd/c0ffeey0": "skipped"}, 1, 1, ""),
            ({"kit::TestAdd/c0ffeey0": "passed"}, 1, 0, "canary passed"),
            ({"kit::TestAdd/c0ffeey0": "failed"}, 1, 0, "canary missing"),  # it was begun
        ],
    )
    def test_it_must_have_failed(
        self, reported: dict[str, Outcome], planted: int, left: int, wrong: str
    ) -> None:
        outcomes = {name: TestOutcome(id=name, outcome=one) for name, one in reported.items()}
        real, why, _ = without_canaries(outcomes, CANARY, planted=dict.fromkeys(range(planted), 1))
        assert (len(real), why) == (left, wrong)


def _program(path: Path, text: str = "#!/bin/sh\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


class TestToolchains:
    """What of a toolchain outside the system's directories is shown."""

    @pytest.fixture(autouse=True)
    def _fresh(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path / "home"))

    @pytest.fixture
    def put(self, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
        """Puts directories on the path."""
        return lambda *places: monkeypatch.setenv("PATH", f"{':'.join(map(str, places))}:/nowhere")

    def test_a_toolchain_that_does_not_answer_is_an_error_and_no_0(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, put: Callable[..., None]
    ) -> None:
        monkeypatch.setattr(runners, "_ASK_SECONDS", 0.01)
        os.mkfifo(tmp_path / "fifo")
        _program(tmp_path / "bin" / "rustc", f"#!/bin/sh\nread line < {tmp_path}/fifo\n")
        put(tmp_path / "bin")
        with pytest.raises(GraderError, match="has not answered within"):
            tools_for("cargo test")

    def test_rustup_s_choice_is_resolved_to_the_toolchain_itself(
        self, tmp_path: Path, put: Callable[..., None]
    ) -> None:
        home = tmp_path / "home"
        sysroot = home / ".rustup" / "toolchains" / "stable"
        _program(sysroot / "bin" / "rustc")
        _program(home / ".cargo" / "bin" / "rustc", f"#!/bin/sh\necho {sysroot}\n")
        put(home / ".cargo" / "bin")
        tools = tools_for("cd sub && cargo test --quiet")
        assert tools.mounts == ((str(sysroot.resolve()), "/opt/toolchains/rust"),)
        assert tools.path_entries == ("/opt/toolchains/rust/bin",)
        assert tools.env["CARGO_NET_OFFLINE"] == "true"

    def test_of_a_home_s_local_directory_only_the_program_is_shown(
        self, tmp_path: Path, put: Callable[..., None]
    ) -> None:
        local = tmp_path / "home" / ".local"
        _program(local / "bin" / "node")
        (local / "share").mkdir()
        put(local / "bin")
        tools = tools_for("npm test")
        assert tools.mounts == (
            (str((local / "bin/node").resolve()), "/opt/toolchains/node/bin/node"),
        )
        assert tools.env["ASSAY_NODE"] == "/opt/toolchains/node/bin/node"

    def test_a_version_manager_s_node_is_shown_whole(
        self, tmp_path: Path, put: Callable[..., None]
    ) -> None:
        version = tmp_path / "home" / ".nvm" / "versions" / "v22"
        _program(version / "bin" / "node")
        put(version / "bin")
        assert tools_for("node --test").mounts == (
            (str(version.resolve()), "/opt/toolchains/node"),
        )

    def test_what_is_not_installed_is_named(self, tmp_path: Path, put: Callable[..., None]) -> None:
        put(tmp_path)
        assert tools_for("mvn -o test").missing == ("java", "mvn")

    def test_a_makefile_of_the_source_says_what_make_needs(
        self, tmp_path: Path, put: Callable[..., None]
    ) -> None:
        _program(tmp_path / "sdk/go/bin/go", f"#!/bin/sh\necho {tmp_path}/sdk/go\n")
        put(tmp_path / "sdk/go/bin")
        (tmp_path / "Makefile").write_text("test:\n\tgo test ./...\n", "utf-8")
        source = Workspace(path="/nowhere", source=str(tmp_path))
        equipped = runners.equipped("make -s test", source)
        assert equipped.env["GOPROXY"] == "off"
        assert equipped.mounts == ((str((tmp_path / "sdk/go").resolve()), "/opt/toolchains/go"),)
        assert "GOPROXY" not in runners.equipped("ls", source).env

    def test_other_commands_need_nothing(self) -> None:
        for cmd in ("make test", "python3 -m pytest", "", "./cargo.sh.txt"):
            assert tools_for(cmd) == Toolchain()

    @pytest.mark.skipif(not os.access("/usr/bin/sh", os.X_OK), reason="no /usr/bin/sh")
    def test_the_system_s_own_need_no_mount(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def shell(_: str) -> str:
            return "/usr/bin/sh"

        monkeypatch.setattr("shutil.which", shell)
        assert tools_for("node --test").mounts == ()
