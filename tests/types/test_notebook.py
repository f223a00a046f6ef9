"""How grades, runs and jobs look where they are printed, and in a notebook."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any, Protocol

from syrupy.assertion import SnapshotAssertion

from assay.scoring.graded import Grade
from assay.scoring.notebook import MAX_ROWS
from assay.scoring.results import EvaluationResult, SubScore
from assay.types.run import Job, Run
from assay.types.trace import Trace
from tests.each import each

XSS = (
    "\"'><img src=x onerror=alert(1)><script>alert(1)</script><a href='javascript:x'>\x1b[2J\u202e"
)


class Shown(Protocol):
    """What IPython asks of an object."""

    def _repr_html_(self) -> str: ...


@dataclass
class Reader(HTMLParser):
    """What a browser would make of it."""

    tags: set[str] = field(default_factory=set[str])
    attributes: set[str] = field(default_factory=set[str])
    rows: int = 0
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.rows += tag == "tr"
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def read(one: Shown) -> Reader:
    """Show it as a notebook does."""
    reader = Reader()
    reader.feed(one._repr_html_())
    reader.close()
    return reader


def hostile_tree() -> SubScore:
    inner = [SubScore.error(XSS, XSS), SubScore.skipped(XSS, XSS), SubScore(XSS, 1.0, gate=True)]
    return SubScore(name=XSS, value=0.5, reason=XSS, flags=(XSS,), children=inner)


def hostile_run(slug: str = XSS) -> Run:
    about: dict[str, Any] = {"content": XSS, "info": {"flags": [XSS]}}
    result = EvaluationResult(reward=0.5, subscores=[hostile_tree()], **about)
    named: dict[str, Any] = {"slug": slug, "harness": XSS, "model": XSS}
    return Run(**named, trace=Trace(content=XSS), grade=Grade.from_result(result))


SHOWN: list[Shown] = [
    hostile_tree(),
    EvaluationResult(reward=0.5, content=XSS, subscores=[hostile_tree()]),
    EvaluationResult.from_error(XSS),
    hostile_run(),
    Job(name=XSS, runs=[hostile_run(), hostile_run("b"), Run.failed(XSS, slug=XSS)]),
]


@each("one", SHOWN)
def test_what_was_graded_is_text_in_a_notebook_and_on_a_terminal(one: Shown) -> None:
    found = read(one)
    assert found.tags <= {"table", "tr", "th", "td", "p", "b", "span"}
    assert found.attributes <= {"style", "title"}
    assert "onerror=alert(1)" in found.text
    assert not set("\x1b\u202e") & set(found.text + (str(one) if isinstance(one, Job) else ""))


def test_an_error_is_no_zero_and_a_skip_no_score() -> None:
    tree = SubScore(
        name="all",
        value=0.0,
        children=[SubScore.error("judge", "no answer"), SubScore.skipped("lint", "no files")],
    )
    said = read(EvaluationResult(reward=0.0, subscores=[tree])).text
    assert "reward 0.00" in said
    assert "! error1.00no answer" in said
    assert "\N{EN DASH} skipped1.00no files" in said
    assert read(EvaluationResult.from_error("broke")).text == "! error  broke"
    assert "0.9999" in read(EvaluationResult(reward=0.99996)).text, "never rounded to a 1"


def test_how_a_grade_looks(snapshot: SnapshotAssertion) -> None:
    """Whole, since a notebook shows nothing else: shapes, colours, columns and order."""
    nodes = [
        SubScore("tests", 0.5, 3.0, reason="1 of 2", flags=("canary", "late-report")),
        SubScore("all", 1.0, -0.5, children=[SubScore.error("a", "gone"), SubScore("b", 0.25)]),
        SubScore("safe", 1.0, gate=True, children=[SubScore.skipped("lint", "no files")]),
    ]
    shown = EvaluationResult(reward=0.25, content="half", subscores=nodes)._repr_html_()
    assert shown.replace("<tr", "\n<tr").splitlines() == snapshot
    assert "<table" not in EvaluationResult(reward=None)._repr_html_()


def test_large_jobs_and_deep_trees_are_counted_and_not_shown() -> None:
    job = Job(runs=[Run(slug=f"t{n}") for n in range(10_000)])
    assert read(job).rows == 51
    assert "9,950 more" in read(job).text
    printed = str(job).splitlines()
    assert len(printed) == 23
    assert printed[-1] == "... and 9,980 more"
    deep = SubScore(name="leaf", value=1.0)
    for number in range(500):
        deep = SubScore(name=f"n{number}", value=1.0, children=[deep])
    shown = EvaluationResult(reward=1.0, subscores=[deep])._repr_html_()
    assert shown.count("<tr") == MAX_ROWS + 1
    assert shown.endswith('</table><p style="opacity:.75">\u2026 and 451 more</p>')


def test_an_unknown_cost_is_not_printed_as_nothing() -> None:
    first, second = Run(slug="a", cost_usd=0.0012, seconds=2.0), Run(slug="b")
    printed = str(Job(name="j", runs=[first, second])).splitlines()
    assert printed[1:] == [
        "task  time   cost     reward  why",
        "a     2.0 s  $0.0012  error   not graded",
        "b     0.0 s  unknown  error   not graded",
    ]
    assert "cost" in read(second).text
    assert "unknown" in read(second).text
