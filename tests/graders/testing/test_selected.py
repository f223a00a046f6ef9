"""What commands run of hidden tests, by their words and by conditions in the sources. Pure."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.graders.testing.authors import read_authors
from assay.graders.testing.commands import read_command
from assay.graders.testing.outcomes import TestOutcome
from assay.graders.testing.reports import Canary, plant_canary
from assay.graders.testing.selected import Selection, modules_of, select
from assay.types import Workspace
from tests.each import each

GO = 'package kit\nimport "testing"\nfunc TestAdd(t *testing.T) {}\nfunc TestSub(t *testing.T) {}\n'
RUST = "#[test] fn adds() {}\n#[test] fn subs() {}\n#[ignore] #[test] fn slow() {}\n"
JS = "it('adds', f); it('subs', f);"
CANARY = Canary(name="c0ffee", planted="0123456789abcdef")


def selection(cmd: str, *modules: str) -> Selection:
    return select(cmd, read_command(cmd), modules=modules)


PLACES = [
    # Go: packages.
    ("go test ./...", "a/kit_test.go", True),
    ("go test", "kit_test.go", True),
    ("go test", "a/kit_test.go", False),
    ("cd a && go test -v -count 1", "a/kit_test.go", True),
    ("go test -timeout 30s ./a ./b/...", "b/c/kit_test.go", True),
    ("go test -timeout 30s ./a ./b/...", "a/c/kit_test.go", False),
    ("go test ./... -args ./a", "b/kit_test.go", True),
    ("go test example.com/kit/a", "a/kit_test.go", False),  # as far as can be told
    ("go test ./...", "testdata/kit_test.go", False),
    ("go test ./testdata", "testdata/kit_test.go", True),
    ("go test ./...", "_old/kit_test.go", False),
    ("go test ./...", "tools/gen/kit_test.go", False),  # a module of its own
    ("go test ./a && go test ./b", "a/kit_test.go", True),
    # Go: names of files.
    ("go test", "kit_windows_test.go", False),
    ("go test", "kit_linux_test.go", True),
    ("go test", "windows_test.go", True),
    ("go test", "_kit_test.go", False),
    # Rust: targets.
    ("cargo test --test a --no-fail-fast", "tests/a.rs", True),
    ("cargo test --test a", "tests/a/main.rs", True),
    ("cargo test --test a", "tests/b.rs", False),
    ("cargo test --test 'a*'", "tests/b.rs", False),
    ("cargo test --lib", "tests/b.rs", False),
    ("cargo test --lib", "src/b.rs", True),
    ("cargo test --doc", "src/b.rs", False),
    ("cargo +nightly test -p kit", "crates/kit/tests/b.rs", True),
    # Jest and the like: patterns of paths.
    ("npx jest --ci", "test/a.test.js", True),
    ("npx jest test/a.test.js", "test/a.test.js", True),
    ("npx vitest run ./test/", "test/a.test.js", True),
    ("npx jest test/a.test.js", "test/b.test.js", False),
    ("npx jest --config my/jest.config.js", "test/b.test.js", True),
    ("mvn test", "src/test/java/KitTest.java", True),
]


@each(("cmd", "path", "runs"), PLACES)
def test_files_that_a_command_runs(cmd: str, path: str, runs: object) -> None:
    assert selection(cmd, ".", "tools").runs(path, "") is runs


CONDITIONS = [
    ("go test -tags slow,db", "//go:build slow && !windows\n\n", True),
    ("go test", "// Slow.\n//go:build slow\n\n", False),
    ("GOFLAGS=-tags=slow go test", "//go:build slow\n", True),
    ("go test -tags $TAGS", "//go:build slow\n", False),
    ("go test", "//go:build !slow && (linux || darwin)\n", True),
    ("GOOS=js go test", "//go:build linux\n", False),
    ("go test", "//go:build go1.18\n", False),  # that depends on the Go
    ("go test", "// +build linux,!cgo darwin\n\n", False),
    ("go test", "// +build linux windows\n// +build !slow\n\n", True),
    ("cargo test", "#![cfg(unix)]\n", True),
    ("cargo test", '#![allow(dead_code)]\n#![cfg(feature = "fancy")]\n', False),
    ("cargo test -F 'fancy wide'", '#![cfg(all(test, feature = "fancy"))]\n', True),
    ("cargo test --all-features", '#![cfg(feature = "fancy")]\n', True),
    ("cargo test", '#![cfg(not(any(windows, target_os = "macos")))]\n', True),
    ("cargo test", "#![cfg(not(\n", False),
    ("cargo test", f"#![cfg({'not(' * 999}unix{')' * 999})]\n", False),
]


@each(("cmd", "head", "runs"), CONDITIONS)
def test_conditions_of_whole_files(cmd: str, head: str, runs: object) -> None:
    path, text = ("kit_test.go", f"{head}{GO}") if "cargo" not in cmd else ("tests/a.rs", head)
    assert selection(cmd).runs(path, text) is runs


NAMES = [
    ("go test -run TestAdd", "kit_test.go", GO, "TestAdd", "func TestAdd_c0ffeex0("),
    ("go test -run 'Add$'", "kit_test.go", GO, "TestAdd", "func TestC0ffeex0_TestAdd("),
    ("go test -run '^TestAdd$'", "kit_test.go", GO, "TestAdd", ') { defer t.Run("c0ffeey0", func('),
    ("go test -run '^TestAdd$/one'", "kit_test.go", GO, "TestAdd", None),
    ("go test -skip=Sub", "kit_test.go", GO, "TestAdd", "func TestC0ffeex0("),
    ("go test -run '['", "kit_test.go", GO, "", None),
    ("cargo test adds", "tests/a.rs", RUST, "adds", "fn c0ffeex0_adds("),
    ("cargo test -- adds subs", "tests/a.rs", RUST, "adds subs", "fn c0ffeex0_adds("),
    ("cargo test deep::adds", "src/a.rs", RUST, "", None),
    ("cargo test -- --skip subs --test-threads 1", "tests/a.rs", RUST, "adds", "fn c0ffeex0("),
    ("cargo test -- --exact adds", "tests/a.rs", RUST, "adds", None),
    ("cargo test -- --ignored", "tests/a.rs", RUST, "", "#[ignore]\nfn c0ffeex0("),
    ("npx jest -t adds", "a.test.js", JS, "adds", "'c0ffeex0 adds'"),
    ("npx jest --testNamePattern='^adds$'", "a.test.js", JS, "", None),
]


@each(("cmd", "path", "text", "wanted", "planted"), NAMES)
def test_names_that_a_command_picks(
    cmd: str, path: str, text: str, wanted: str, planted: str | None
) -> None:
    """They are missed where nothing was heard of them, and the canary is one of them."""
    chosen = selection(cmd)
    authors = read_authors(
        {path: text}, Workspace(path="/nowhere"), console=None, junit=False, selection=chosen
    )
    assert authors.count({}, canaries=False).missing == tuple(wanted.split())
    changed = plant_canary(path, text, CANARY, selection=chosen)
    assert (planted or "") in (changed or "")
    assert (changed is None) is (planted is None)


PERHAPS = [
    ("go test", f"//go:build go1.18 && !race\n\n{GO}", True),
    ("go test example.com/kit", GO, True),
    ("go test", f"//go:build windows\n\n{GO}", False),
    ("cargo test", f'#![cfg(feature = "std")]\n{RUST}', True),
    ("cargo test", f'#[cfg(feature = "std")]\nmod more {{ {RUST} }}', True),
    ("cargo test", f"#![cfg(windows)]\n{RUST}", False),
]


@each(("cmd", "text", "planted"), PERHAPS)
def test_a_file_that_may_be_run_has_a_canary(cmd: str, text: str, planted: object) -> None:
    path = "tests/a.rs" if "cargo" in cmd else "kit_test.go"
    assert (plant_canary(path, text, CANARY, selection=selection(cmd)) is not None) is planted


@each(
    ("told", "is_told"),
    [
        (["kit::TestAdd"], True),
        (["kit::TestAdd/one"], True),
        (["kit::TestBoth"], False),  # of the other file, which is run
        (["kit::TestOwn"], False),
        (["passed 1"], True),  # of whichever
        ([], False),
    ],
)
def test_a_report_tells_of_a_file_of_which_no_canary_was_heard(
    told: list[str], is_told: object
) -> None:
    both = "func TestBoth(t *testing.T) {}\n"
    hidden = {"cgo_test.go": f"//go:build cgo\n\n{GO}{both}", "kit_test.go": GO[:29] + both}
    authors = read_authors(hidden, Workspace(path="/nowhere"), console="go-json", junit=False)
    outcomes = {one: TestOutcome(id=one, outcome="passed") for one in told}
    assert authors.tell_of({"cgo_test.go"}, outcomes) is is_told
    assert not authors.tell_of((), outcomes)


def test_a_test_behind_a_condition_counts_where_it_is_heard_of_and_is_missed_nowhere(
    tmp_path: Path,
) -> None:
    text = (
        "#[cfg(windows)] #[test] fn there() {}\n#[cfg(unix)] #[test] fn here() {}\n"
        'pub mod fancy { #[test] #[cfg(feature = "x")] fn perhaps() {} }\n'
        "#[cfg(windows)]\npub(crate) mod more { #[test] fn too() {} }\n"
        "#[test] #[cfg_attr(miri, ignore)] fn ignored() {}\n"
    )
    nothing = Workspace(path=str(tmp_path), source=str(tmp_path))
    authors = read_authors({"tests/a.rs": text}, nothing, console="cargo", junit=False)
    assert authors.count({}, canaries=False).missing == ("here",)
    heard = {
        "here": TestOutcome(id="here", outcome="passed"),
        "fancy::perhaps": TestOutcome(id="fancy::perhaps", outcome="failed"),
        "ignored": TestOutcome(id="ignored", outcome="skipped"),
    }
    assert authors.left_out(heard) == {"ignored"}
    assert authors.count(heard, canaries=False).missing == ()
    assert authors.count({"fancy::perhaps": heard["fancy::perhaps"]}, canaries=True).missing == (
        "here",
    )


@pytest.mark.parametrize("path", ["", "/opt/tools:/bin"])
@pytest.mark.parametrize("cmd", ["go test", "PATH=$PWD:$PATH go test"])
def test_a_test_that_looks_for_a_program_that_is_not_there_is_missed_by_none(
    tmp_path: Path, cmd: str, path: str
) -> None:
    """But where the command, the image or the work could have it, by which a test is left out."""
    (tmp_path / "present").touch()
    mounts = ((str(tmp_path), "/opt/tools"),) if path else ()
    there = Workspace(path="/nowhere", env={"PATH": path} if path else {}, mounts=mounts)
    for program, is_left_out in (
        ("absent-program", cmd == "go test"),
        ("present", cmd == "go test" and not path),
        ("./absent", False),
    ):
        skip = f'_, err := exec.LookPath("{program}")\nif err != nil {{ t.Skip("no") }}\n'
        text = GO.replace("TestAdd(t *testing.T) {", f"TestAdd(t *testing.T) {{\n{skip}")
        authors = read_authors(
            {"kit_test.go": text}, there, console=None, junit=False, selection=selection(cmd)
        )
        heard = {"kit::TestAdd": TestOutcome(id="kit::TestAdd", outcome="skipped")}
        assert authors.left_out(heard) == ({"kit::TestAdd"} if is_left_out else set()), program


def test_a_test_that_a_short_run_leaves_out_is_missed_by_none_that_is_short() -> None:
    text = GO.replace(
        "func TestAdd(t *testing.T) {",
        "func TestAdd(t *testing.T) {\nif testing.Short() { t.Skip() }",
    )
    for cmd, left_out in (("go test -short", {"kit::TestAdd"}), ("go test", set[str]())):
        nowhere = Workspace(path="/nowhere")
        authors = read_authors(
            {"kit_test.go": text}, nowhere, console=None, junit=False, selection=selection(cmd)
        )
        heard = {"kit::TestAdd": TestOutcome(id="kit::TestAdd", outcome="skipped")}
        assert authors.left_out(heard) == left_out


def test_modules_below_are_found_in_the_source_and_among_hidden_files(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/go.mod").touch()
    files = ["tools/a/b_test.go", "more/go.mod", "c_test.go"]
    assert modules_of(str(tmp_path), files) == {"tools", "more"}
