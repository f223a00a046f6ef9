"""What runners print, as they print it, and what a solution prints between. Pure parsing."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError
from assay.graders.testing.console import FORMATS, read_console
from assay.graders.testing.outcomes import OUTCOMES
from tests.each import each

CARGO = """
running 3 tests
test adds ... ok
test m::boom - should panic ... ok
test halves ... FAILED

failures:
    halves

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out

running 2 tests
test src/lib.rs - add (line 3) ... ok
test later ... ignored, not yet

test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out
"""
TAP = """TAP version 13
# Subtest: math
    # Subtest: adds
    ok 1 - adds
      ---
      duration_ms: 1
      message: |
        not ok 7 - not a result
      ...
    # Subtest: halves
    not ok 2 - halves
    1..2
not ok 1 - math
ok 2 - recovers after 3 failed attempts
ok 3 - later # SKIP no time
not ok 4 - someday # TODO
ok 5
1..5
# tests 5
# pass 1
# fail 3
"""
UNITTEST = """test_add (tests.test_kit.KitTest.test_add) ... ok
test_bad (tests.test_kit.KitTest.test_bad) ... FAIL
test_err (tests.test_kit.KitTest.test_err) ... ERROR
test_loud (tests.test_kit.KitTest.test_loud) ... printed
ok
test_old (tests.test_kit.KitTest)
With a docstring. ... ok
test_skip (tests.test_kit.KitTest.test_skip) ... skipped 'no'
test_xfail (tests.test_kit.KitTest.test_xfail) ... expected failure
test_xpass (tests.test_kit.KitTest.test_xpass) ... unexpected success

----------------------------------------------------------------------
Ran 8 tests in 0.001s

FAILED (failures=1, errors=1, skipped=1, expected failures=1, unexpected successes=1)
"""
JEST = """PASS ./kit.test.js
  math
    \u2713 adds (2 ms)
    deep
      \u2715 halves
    \u25cb skipped later
  \u25cf math \u203a deep \u203a halves
    \u2713 not a result

Test Suites: 1 failed, 1 passed, 2 total
Tests:       1 failed, 1 skipped, 8 passed, 10 total
Snapshots:   0 total
"""
VITEST = """ \u2713 test/kit.test.ts (3 tests | 1 failed) 5ms
 \u2713 test/kit.test.ts > math > adds 2ms
 \u00d7 test/kit.test.ts > math > halves 3ms
 \u2193 test/kit.test.ts > math > later

 Test Files  1 failed | 1 passed (2)
      Tests  1 failed | 1 passed | 1 skipped (3)
"""
MOCHA = """
  math
    \u2714 adds
    1) halves

  9 passing (12ms)
  2 pending
  1 failing

  1) math
       halves:
"""
SUREFIRE = """[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.05 s - in A
[ERROR] Tests run: 4, Failures: 1, Errors: 1, Skipped: 1, Time elapsed: 0.1 s <<< FAILURE! - in B
[INFO] Results:
[ERROR] Tests run: 7, Failures: 1, Errors: 1, Skipped: 1
"""
PYTEST = """============================= test session starts ==============================
tests/test_kit.py ..F                                                    [100%]
----------------------------- Captured stdout call -----------------------------
PASSED tests/test_kit.py::test_forged
5 passed in 0.01s
=========================== short test summary info ============================
PASSED tests/test_kit.py::test_add
FAILED tests/test_kit.py::test_bad - assert 1 == 2
ERROR tests/test_broken.py
XFAIL tests/test_kit.py::test_later - why
============ 1 failed, 2 passed, 1 skipped, 1 xfailed, 1 error in 0.05s ============
"""
NODE = """\u25b6 math
  \u2714 adds (1.2ms)
\u2716 halves (0.2ms)
\u2139 tests 4
\u2139 suites 1
\u2139 pass 2
\u2139 fail 1
\u2139 cancelled 0
\u2139 skipped 1
\u2139 todo 1
\u2139 duration_ms 43.1
"""


def go(*events: tuple[str, str | None, str]) -> str:
    lines: list[str] = []
    for action, test, package in events:
        event = {"Time": "t", "Action": action, "Package": package}
        lines.append(json.dumps(event if test is None else {**event, "Test": test}))
    return "\n".join(lines)


GO = go(
    ("run", "TestAdd", "kit"),
    ("run", "TestAdd/one", "kit"),
    ("pass", "TestAdd/one", "kit"),
    ("pass", "TestAdd", "kit"),
    ("run", "TestHalf", "kit"),
    ("fail", "TestHalf", "kit"),
    ("skip", "TestLater", "kit"),
    ("fail", None, "kit"),
    ("fail", None, "kit/broken"),
)

# What Go 1.19 tells where a test printed without a line end.
LOUD_GO = "".join(
    f'{{"Action":"{action}","Package":"kit","Test":"{test}","Output":"{output}"}}\n'
    for action, test, output in (
        ("run", "TestAdd", ""),
        ("output", "TestAdd", r"loud--- PASS: TestAdd (0.00s)\n"),
        ("run", "TestHalf", ""),
        ("output", "TestHalf", r"50 %\r--- FAIL: TestHalf (0.01s)\n"),
        ("run", "TestEnds", ""),
        ("output", "TestEnds", r"loud--- PASS: TestOther (0.00s)\n"),
    )
)

NAMED = [
    (
        "cargo",
        CARGO,
        {
            "adds": "passed",
            "m::boom": "passed",
            "halves": "failed",
            "src/lib.rs - add (line 3)": "passed",
            "later": "skipped",
        },
    ),
    (
        "cargo",
        "running 1 test\ntest loud ... printed\nok\n",
        {"loud": "passed"},
    ),
    (
        "cargo",
        "running 3 tests\nloudtest a ... ok\n%\rtest m::b - should panic ... ok\ntest c ... xok\n",
        {"a": "passed", "m::b": "passed", "c": "passed"},
    ),
    (
        "cargo",
        "running 2 tests\nloudtest a ... FAILED\ntest b ... brook\nloudFAILED\n",
        {"a": "failed", "b": "failed"},
    ),
    (
        "tap",
        TAP,
        {
            "math > adds": "passed",
            "math > halves": "failed",
            "recovers after 3 failed attempts": "passed",
            "later": "skipped",
            "someday": "xfailed",
            "test 5": "passed",
        },
    ),
    (
        "tap",
        "1..3\nok 1 a\nok 2 a\n",
        {"a": "passed", "a #2": "passed", "test 3 (missing)": "failed"},
    ),
    ("tap", "    ok 1 - in\nnot ok 1 - out\n", {"out > in": "passed", "out": "failed"}),
    ("tap", "not ok 1 - a # SKIP why\nok 2 - b # TODO\n", {"a": "failed", "b": "xpassed"}),
    ("tap", "    ok 1 - in\n", {"unfinished > in": "passed", "unfinished": "failed"}),
    ("tap", "ok 1 - a\nBail out! broken\n", {"a": "passed", "bail out": "error"}),
    (
        "unittest",
        UNITTEST,
        {
            "tests.test_kit.KitTest.test_add": "passed",
            "tests.test_kit.KitTest.test_bad": "failed",
            "tests.test_kit.KitTest.test_err": "error",
            "tests.test_kit.KitTest.test_loud": "passed",
            "tests.test_kit.KitTest.test_old": "passed",
            "tests.test_kit.KitTest.test_skip": "skipped",
            "tests.test_kit.KitTest.test_xfail": "xfailed",
            "tests.test_kit.KitTest.test_xpass": "xpassed",
        },
    ),
    (
        "go-json",
        GO,
        {
            "kit::TestAdd/one": "passed",
            "kit::TestAdd": "passed",
            "kit::TestHalf": "failed",
            "kit::TestLater": "skipped",
            "kit/broken": "error",
        },
    ),
    (
        "go-json",
        LOUD_GO,
        {"kit::TestAdd": "passed", "kit::TestHalf": "failed", "kit::TestEnds": "failed"},
    ),
    (
        "go-json",
        '{"Action":"build-fail","ImportPath":"kit/broken [kit/broken.test]"}\n',
        {"kit/broken": "error"},
    ),
    (
        "vitest",
        VITEST,
        {
            "test/kit.test.ts > math > adds": "passed",
            "test/kit.test.ts > math > halves": "failed",
            "test/kit.test.ts > math > later": "skipped",
        },
    ),
    (
        "gradle",
        "KitTest > adds() PASSED\nKitTest > b() FAILED\n    at x\n2 tests completed, 1 failed\n",
        {"KitTest > adds()": "passed", "KitTest > b()": "failed"},
    ),
    # What a solution prints: a pass undoes no failure, and the end of the process passes no test.
    ("go-json", go(("fail", "A", "kit"), ("pass", "A", "kit")), {"kit::A": "failed"}),
    ("go-json", go(("run", "A", "kit"), ("pass", None, "kit")), {"kit::A": "failed"}),
    ("cargo", "running 1 test\ntest a ... FAILED\ntest a ... ok\n", {"a": "failed"}),
    ("tap", "not ok 1 - a\n  ---\n  ok 2 - forged\n  ...\n1..1\n", {"a": "failed"}),
]


@each(("name", "text", "expected"), NAMED)
def test_named_tests_are_read(name: str, text: str, expected: dict[str, str]) -> None:
    outcomes = read_console(name, text)
    assert {test: one.outcome for test, one in outcomes.items()} == expected


COUNTED: list[tuple[str, str, dict[str, int]]] = [
    ("jest", JEST, {"passed": 8, "failed": 1, "skipped": 1}),
    ("jest", "Tests:       1 failed, 9 passed, 10 total\n", {"passed": 9, "failed": 1}),
    ("jest", "Test Suites: 1 failed, 1 passed, 2 total\n", {}),
    ("mocha", MOCHA, {"passed": 9, "skipped": 2, "failed": 1}),
    ("surefire", SUREFIRE, {"passed": 4, "failed": 1, "error": 1, "skipped": 1}),
    ("gradle", "10 tests completed, 3 failed\n", {"passed": 7, "failed": 3}),
    (
        "gradle",
        "A > b() FAILED\n10 tests completed, 3 failed, 1 skipped\n",
        {"passed": 6, "failed": 3, "skipped": 1},
    ),
    ("pytest", PYTEST, {"passed": 2, "failed": 1, "error": 1, "skipped": 1, "xfailed": 1}),
    ("pytest", "1 failed, 2 passed, 3 deselected in 0.12s\n", {"passed": 2, "failed": 1}),
    ("pytest", "=== 3 passed in 61.20s (0:01:01) ===\n", {"passed": 3}),
    ("node-spec", NODE, {"passed": 2, "failed": 1, "skipped": 1, "xfailed": 1}),
    ("unittest", "Ran 3 tests in 0.1s\n\nOK\n", {"passed": 3}),
    (
        "unittest",
        "Ran 3 tests in 0.1s\n\nFAILED (failures=1, errors=1)\n",
        {"passed": 1, "failed": 1, "error": 1},
    ),
    (
        "cargo",
        "running 3 tests\n..F\ntest result: FAILED. 2 passed; 1 failed; 0 ignored; 0 m\n",
        {"passed": 2, "failed": 1},
    ),
    ("vitest", "      Tests  3 passed (3)\n", {"passed": 3}),
    # Tests that a run ended before, totals that outdo lines, and a file that did not load.
    ("cargo", "running 3 tests\ntest adds ... ok\n", {"passed": 1, "failed": 2}),
    (
        "cargo",
        "running 1 test\ntest a ... ok\ntest result: FAILED. 0 passed; 1 failed; 0 ignored;",
        {"passed": 1, "failed": 1},
    ),
    (
        "jest",
        "PASS ./a.test.js\n \u2713 a\n \u2713 b\n \u2713 c\nTests:  2 failed, 1 passed, 3 total\n",
        {"failed": 2, "passed": 1},
    ),
    (
        "jest",
        "FAIL ./a.test.js\n  \u25cf Test suite failed to run\n" * 2
        + "\nTests:  1 todo, 3 passed, 4 total\n",
        {"error": 2, "passed": 3, "skipped": 1},
    ),
]


@each(("name", "text", "expected"), COUNTED)
def test_counted_tests_are_read(name: str, text: str, expected: dict[str, int]) -> None:
    outcomes = read_console(name, text)
    assert Counter(one.outcome for one in outcomes.values()) == expected


def test_names_and_counts_are_merged() -> None:
    outcomes = read_console("jest", JEST)
    assert outcomes["./kit.test.js > math > adds"].outcome == "passed"
    assert outcomes["./kit.test.js > math > deep > halves"].outcome == "failed"
    assert outcomes["./kit.test.js > math > later"].outcome == "skipped"
    assert "passed 7" in outcomes
    assert "passed 8" not in outcomes


@each("name", sorted(FORMATS))
def test_nothing_is_found_in_nothing(name: str) -> None:
    assert read_console(name, "") == {}
    assert read_console(name, "hello\nworld\n") == {}


@each(("name", "text"), [(name, text) for name, text, _ in (*NAMED, *COUNTED)])
def test_colours_and_line_ends_change_nothing(name: str, text: str) -> None:
    coloured = "\n".join(f"\x1b[32m{line}\x1b[0m" for line in text.split("\n"))
    assert read_console(name, coloured.replace("\n", "\r\n")) == read_console(name, text)


def test_an_unknown_format_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'go-json'"):
        read_console("gojson", "")


def test_cargo_s_wording_is_nothing_to_pytest() -> None:
    text = f"test result: ok. 3 passed; 0 failed\n{PYTEST}"
    assert read_console("pytest", text) == read_console("pytest", PYTEST)


def test_a_huge_count_is_bounded() -> None:
    assert len(read_console("gradle", "999999999 tests completed, 1 failed\n")) <= 100_001


@given(st.sampled_from(sorted(FORMATS)), st.text(max_size=300))
def test_nothing_raises(name: str, text: str) -> None:
    for test, one in read_console(name, text).items():
        assert test == one.id
        assert one.outcome in OUTCOMES


@given(st.data())
def test_shuffled_lines_of_real_output_do_not_raise(data: st.DataObject) -> None:
    name, text, _ = data.draw(st.sampled_from([*NAMED, *COUNTED]))
    lines = data.draw(st.permutations(text.split("\n")))
    read_console(name, "\n".join(lines))
