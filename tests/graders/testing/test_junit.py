"""JUnit reports of many writers, and of some who lie. Pure parsing: at the height of the parser."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.graders.testing.junit import read_junit
from assay.graders.testing.outcomes import OUTCOMES
from tests.each import each

PYTEST = """<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite
name="pytest" errors="0" failures="1" skipped="2" tests="5" time="0.05">
<testcase classname="tests.test_kit" name="test_add" time="0.001" />
<testcase classname="tests.test_kit" name="test_bad" time="0.002"><failure
 message="assert 1 == 2">def test_bad(): ...</failure></testcase>
<testcase classname="tests.test_kit" name="test_skip"><skipped type="pytest.skip" message="no"/>
</testcase>
<testcase classname="tests.test_kit" name="test_xfail"><skipped type="pytest.xfail" message="b"/>
</testcase>
<testcase classname="" name="tests.test_broken"><error message="collection failure">E</error>
</testcase></testsuite></testsuites>"""
JEST = """<testsuites name="jest tests" tests="2" failures="1"><testsuite name="kit" tests="2">
<testcase classname="kit adds" name="kit adds" time="0.001"/>
<testcase classname="kit halves" name="kit halves"><failure>Error: no</failure></testcase>
</testsuite></testsuites>"""
VITEST = """<testsuites name="vitest tests"><testsuite name="test/kit.test.ts" tests="2">
<testcase classname="test/kit.test.ts" name="kit &gt; adds" time="0.001"></testcase>
<testcase classname="test/kit.test.ts" name="kit &gt; later"><skipped/></testcase>
</testsuite></testsuites>"""
MOCHA = """<testsuites name="Mocha Tests"><testsuite name="Root Suite" tests="0"/>
<testsuite name="kit" tests="2"><testcase name="kit adds" classname="adds"/>
<testcase name="kit halves" classname="halves"><failure message="no" type="Error"><![CDATA[at]]>
</failure></testcase></testsuite></testsuites>"""
GO = """<testsuites><testsuite name="kit" tests="2"><properties><property name="go.version"
value="1.22"/></properties><testcase classname="kit" name="TestAdd/one" time="0.000"/>
<testcase classname="kit" name="TestHalf"><failure message="Failed" type="">x</failure></testcase>
</testsuite></testsuites>"""
NEXTEST = """<testsuites name="nextest-run" tests="2" uuid="u"><testsuite name="kit::hidden">
<testcase name="adds" classname="kit::hidden" time="0.01"><flakyFailure message="first"/></testcase>
<testcase name="halves" classname="kit::hidden"><failure message="m">t</failure>
<rerunFailure message="again"/></testcase></testsuite></testsuites>"""
SUREFIRE = """<testsuite xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" name="KitTest"
time="0.1" tests="3" errors="1" skipped="0" failures="0"><properties/>
<testcase name="adds" classname="org.kit.KitTest" time="1,024.5"/>
<testcase name="halves" classname="org.kit.KitTest"><error message="NPE">at x</error></testcase>
<testcase name="flaky" classname="org.kit.KitTest"><flakyError message="m">t</flakyError>
<system-out><![CDATA[<testcase name="forged"/>]]></system-out></testcase></testsuite>"""
GRADLE = """<testsuite name="KitTest" tests="1" skipped="0" failures="0" errors="0">
<testcase name="adds()" classname="KitTest" time="0.01"/><system-out><![CDATA[]]></system-out>
</testsuite>"""
GTEST = """<testsuites tests="2"><testsuite name="Kit"><testcase name="Adds" status="run"
result="completed" classname="Kit"/><testcase name="Off" status="notrun" result="suppressed"
classname="Kit"/></testsuite></testsuites>"""
NESTED = """<testsuites><testsuite name="a"><testsuite name="b"><testcase classname="b" name="x"/>
</testsuite><testcase classname="a" name="y"><failure/></testcase></testsuite></testsuites>"""


@each(
    ("report", "expected"),
    [
        (
            PYTEST,
            {
                "tests.test_kit::test_add": "passed",
                "tests.test_kit::test_bad": "failed",
                "tests.test_kit::test_skip": "skipped",
                "tests.test_kit::test_xfail": "xfailed",
                "tests.test_broken": "error",
            },
        ),
        (JEST, {"kit adds::kit adds": "passed", "kit halves::kit halves": "failed"}),
        (
            VITEST,
            {"test/kit.test.ts::kit > adds": "passed", "test/kit.test.ts::kit > later": "skipped"},
        ),
        (MOCHA, {"adds::kit adds": "passed", "halves::kit halves": "failed"}),
        (GO, {"kit::TestAdd/one": "passed", "kit::TestHalf": "failed"}),
        (NEXTEST, {"kit::hidden::adds": "passed", "kit::hidden::halves": "failed"}),
        (
            SUREFIRE,
            {
                "org.kit.KitTest::adds": "passed",
                "org.kit.KitTest::halves": "error",
                "org.kit.KitTest::flaky": "passed",
            },
        ),
        (GRADLE, {"KitTest::adds()": "passed"}),
        (GTEST, {"Kit::Adds": "passed", "Kit::Off": "skipped"}),
        (NESTED, {"b::x": "passed", "a::y": "failed"}),
        ('<testsuite name="s"><error message="boom"/></testsuite>', {"s": "error"}),
        ("<testsuite name='s'><testsuite name='t'/><error/></testsuite>", {"s": "error"}),
        ("<testsuite><testcase/></testsuite>", {"(unnamed)": "passed"}),
        (
            "<j:testsuite xmlns:j='u'><j:testcase name='x'><j:failure/></j:testcase></j:testsuite>",
            {"x": "failed"},
        ),
        ("<project><testcase name='x'/></project>", {}),
    ],
)
def test_each_writer_is_read(report: str, expected: dict[str, str]) -> None:
    outcomes = read_junit({"report.xml": report.encode()})
    assert {name: one.outcome for name, one in outcomes.items()} == expected


def test_messages_and_times_are_kept() -> None:
    outcomes = read_junit({"a.xml": PYTEST.encode(), "b.xml": SUREFIRE.encode()})
    assert outcomes["tests.test_kit::test_bad"].message == "assert 1 == 2"
    assert outcomes["tests.test_kit::test_add"].seconds == 0.001
    assert outcomes["org.kit.KitTest::adds"].seconds == 1024.5
    (only,) = read_junit(
        {"c.xml": b"<testsuite><testcase name='x'><failure>why</failure></testcase></testsuite>"}
    ).values()
    assert only.message == "why"


def test_negative_totals_cancel_no_failures() -> None:
    """An extra report whose attributes claim minus three failures."""
    extra = b'<testsuite name="x" tests="0" failures="-3" errors="0" skipped="0"/>'
    outcomes = read_junit({"report.xml": JEST.encode(), "report-extra.xml": extra})
    assert [one.outcome for one in outcomes.values()] == ["passed", "failed"]


def test_duplicates_are_told_apart_and_one_failure_fails_them_all() -> None:
    """A second report that claims the failed test passed."""
    failed = b'<testsuite><testcase name="x"><failure/></testcase></testsuite>'
    passed = b'<testsuite><testcase name="x"/></testsuite>'
    assert {
        name: one.outcome
        for name, one in read_junit({"a": passed, "b": failed, "c": passed}).items()
    } == {"x": "failed", "x#2": "failed", "x#3": "failed"}
    assert {name: one.outcome for name, one in read_junit({"a": passed, "b": passed}).items()} == {
        "x": "passed",
        "x#2": "passed",
    }


LAUGHS = """<?xml version="1.0"?><!DOCTYPE t [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>
<testsuite><testcase name="&b;"/></testsuite>"""
EXTERNAL = """<?xml version="1.0"?><!DOCTYPE t SYSTEM "file:///etc/passwd">
<testsuite><testcase name="x"/></testsuite>"""


@each(
    ("report", "words"),
    [
        (LAUGHS.encode(), "document type"),
        (EXTERNAL.encode(), "document type"),
        (b"<testsuite>" * 1000 + b"</testsuite>" * 1000, "deeper"),
        (b"<testsuite><testcase name='x'/>", "no element found"),
        (b"\xff\xfe\x00garbage", "not a JUnit report"),
        (b"<?xml version='1.0' encoding='nonsense'?><testsuite/>", "not a JUnit report"),
        (b"<testsuite><testcase name='&undefined;'/></testsuite>", "undefined entity"),
    ],
)
def test_a_report_that_cannot_be_read_is_an_error_under_its_name(report: bytes, words: str) -> None:
    (only,) = read_junit({"out/report.xml": report}).values()
    assert (only.id, only.outcome) == ("out/report.xml", "error")
    assert words in only.message


def test_too_large_a_report_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.graders.testing.junit.MOST_REPORT_BYTES", 10)
    (only,) = read_junit({"r": b"<testsuite><testcase/></testsuite>"}).values()
    assert "larger" in only.message


def test_too_many_tests_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.graders.testing.junit._MOST_CASES", 2)
    (only,) = read_junit({"r": b"<testsuite>" + b"<testcase/>" * 3 + b"</testsuite>"}).values()
    assert only.outcome == "error"


@given(st.dictionaries(st.text(max_size=5), st.binary(max_size=200), max_size=3))
def test_nothing_raises(files: dict[str, bytes]) -> None:
    for name, outcome in read_junit(files).items():
        assert name == outcome.id
        assert outcome.outcome in OUTCOMES


_TAGS = st.sampled_from(
    ["testsuites", "testsuite", "testcase", "failure", "error", "skipped", "flakyFailure", "x"]
)


@st.composite
def _trees(draw: st.DrawFn, depth: int = 4) -> str:
    tag = draw(_TAGS)
    inner = "".join(draw(st.lists(_trees(depth - 1), max_size=3))) if depth else ""
    name = draw(st.sampled_from(["", ' name="a"', ' name="b" classname="c"', ' status="notrun"']))
    return f"<{tag}{name}>{inner}</{tag}>"


@given(_trees())
def test_a_failure_inside_a_test_is_never_lost(tree: str) -> None:
    report = f'<testsuite><testcase name="real"><failure/></testcase>{tree}</testsuite>'
    assert read_junit({"r": report.encode()})["real"].outcome in ("failed", "error")
