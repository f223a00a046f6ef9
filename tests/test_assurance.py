"""How far a score can be trusted: who says so, what a whole is worth, and where it is shown."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.documents import DocumentError
from assay.errors import GraderError, ScoreError
from assay.eval.proofs.proof import reference_check
from assay.graders.apply import grade_many, grade_submission
from assay.graders.base import Grader, Score
from assay.graders.kinds import KINDS, kind_of
from assay.graders.spec import GraderSpec
from assay.graders.testing.outcomes import Channel, TestRun
from assay.reports.explain import heading, sentence
from assay.reports.html import write_html
from assay.reports.json_report import cells_json
from assay.reports.junit import write_junit
from assay.reports.page import TextPage
from assay.reports.review import review
from assay.reports.table import render
from assay.sandbox import CommandResult
from assay.scoring.combine import combine_all, combine_any, combine_scores
from assay.scoring.graded import Grade, Graded
from assay.scoring.json_safe import Json
from assay.scoring.results import (
    ASSURANCES,
    Assurance,
    EvaluationResult,
    SubScore,
    reaches,
    weakest,
)
from assay.store import Database, ScoreRecord, Scores, Store
from assay.store.records import CellRecord, RunRecord
from assay.tasks.case import load_case
from assay.types.run import Run
from assay.types.submission import Submission, Workspace
from tests.command_line import write_case
from tests.each import each
from tests.report_files import ReportFile

RUN = RunRecord(id="r1", created_at="2026-11-21T09:08:30Z")

# One word per kind

_WORD: dict[str, Assurance] = {
    **dict.fromkeys(("audit", "files", "implemented", "trace"), "read"),
    **dict.fromkeys(("tool_correctness", "efficiency"), "read"),
    **dict.fromkeys(("llm_judge", "binary_judge", "agent_judge", "model_judge"), "model"),
    **dict.fromkeys(("faithfulness", "context_relevancy", "answer_relevancy", "pairwise"), "model"),
    **dict.fromkeys(("score_model", "label_model"), "model"),
    "command": "status",
}
"""All others are judged apart from what they judge."""

_SCORED: Json = {"model": "m", "input": [{"role": "user", "content": "{{sample.output_text}}"}]}
_YES: Json = {"labels": ["yes"], "passing_labels": ["yes"]}
_CHECK: Json = {"type": "string_check", "input": "a", "reference": "a", "operation": "eq"}
_JUDGED: Json = {"type": "score_model", **cast("dict[str, Json]", _SCORED)}

OPTIONS: dict[str, Json] = {
    "score_model": _SCORED,
    "label_model": {**cast("dict[str, Json]", _SCORED), **cast("dict[str, Json]", _YES)},
    "string_check": {"input": "a", "reference": "a", "operation": "eq"},
    "text_similarity": {"input": "a", "reference": "a", "evaluation_metric": "bleu"},
    "openai_python": {"source": "def grade(sample, item):\n    return 1.0\n"},
    "multi": {"graders": {"a": _CHECK}, "calculate_output": "a"},
}


@each("kind", KINDS)
def test_every_kind_says_what_its_scores_are_at_best(kind: str) -> None:
    options = cast("Mapping[str, Json]", OPTIONS.get(kind, {}))
    assert kind_of(kind).grader.best_assurance(options) == _WORD.get(kind, "separate")


@each(
    ("kind", "options", "word"),
    [
        ("tests", {"cmd": "python3 -m pytest"}, "separate"),
        ("tests", {"cmd": "npm test", "junit_xml": "r.xml"}, "separate"),  # it may run node
        ("tests", {"cmd": "cargo test", "format": "cargo"}, "reported"),
        ("tests", {"cmd": "mvn test", "junit_xml": "target/*.xml"}, "reported"),
        ("pytest", {"isolation": "shared"}, "shared"),
        ("swebench", {"isolation": "shared"}, "shared"),
        ("multi", {"graders": {"a": _CHECK, "b": _JUDGED}, "calculate_output": "a"}, "model"),
    ],
)
def test_options_can_make_the_best_word_weaker(
    kind: str, options: dict[str, Json], word: Assurance
) -> None:
    assert kind_of(kind).grader.best_assurance(options) == word


_ENDED = CommandResult(
    status="exited", exit_code=0, stdout="", stderr="", truncated=False, seconds=0.1, tier="bwrap"
)


def test_a_test_run_is_trusted_by_how_its_outcomes_were_learnt() -> None:
    words: dict[Channel, Assurance] = {"apart": "separate", "private": "shared"}
    words |= {"junit": "reported", "console": "reported"}
    for channel, word in words.items():
        run = TestRun(outcomes={}, expected=(), channel=channel, result=_ENDED)
        assert run.assurance == word


ANSWERED = Submission(answer="4", question="2+2?", expected="4")
SPECS: list[tuple[str, dict[str, Json], Assurance]] = [
    ("exact_match", {}, "separate"),
    ("multi", cast("dict[str, Json]", OPTIONS["multi"]), "separate"),
    ("files", {"patterns": ["4"]}, "read"),
]


@each(("kind", "options", "word"), SPECS)
async def test_what_a_kind_scores_has_its_word(
    kind: str, options: dict[str, Json], word: Assurance, tmp_path: Path
) -> None:
    submission = replace(ANSWERED, workspace=Workspace(path=str(tmp_path)))
    spec = GraderSpec(type=kind, options=options)
    result = await grade_submission([spec], submission)
    node = next(iter(result.subscores or ()))
    assert (node.status, node.assurance, result.assurance) == ("scored", word, word)
    (graded,) = await grade_many([spec], [("1", submission)])
    assert graded.assurance == word


async def test_a_judge_that_refuses_an_empty_answer_is_a_models_word_still() -> None:
    spec = GraderSpec(type="llm_judge", options={"criteria": ["It answers."], "model": "none"})
    result = await grade_submission([spec], replace(ANSWERED, answer=""))
    assert (result.reward, result.assurance) == (0.0, "model")


# Graders of one's own


class Plain(Grader):
    name = "plain"
    nodes: ClassVar[tuple[Assurance | None, ...] | None] = None

    @classmethod
    def compute_score(cls, value: float = 1.0) -> Score:
        if cls.nodes is None:
            return value
        children = [SubScore(f"c{n}", value, assurance=word) for n, word in enumerate(cls.nodes)]
        return SubScore("x", value, children=children)


class Modest(Plain):
    assurance = "status"


class Mixed(Plain):
    nodes = ("shared", None, "read")


class Silent(Plain):
    assurance = None


class Composed(Plain):
    assurance = None
    nodes = ("shared", "separate")


class Outspoken(Plain):
    assurance = "model"

    @classmethod
    def compute_score(cls, value: float = 1.0) -> Score:
        return SubScore("x", value, assurance="read")


class Broken(Plain):
    @classmethod
    def compute_score(cls, value: float = 1.0) -> Score:
        return SubScore.error("x", f"cannot judge {value}")


async def test_a_class_says_its_word_unless_a_node_does() -> None:
    words: dict[type[Grader], Assurance | None] = {Plain: "separate", Modest: "status"}
    words |= {Mixed: "read", Silent: None, Composed: "shared", Outspoken: "read"}
    for grader, word in words.items():
        assert (await grader.grade(value=0.5)).assurance == word
    with pytest.raises(GraderError) as raised:
        await Broken.grade()  # what is no score has no word
    assert cast("SubScore", raised.value.subscore).assurance is None


# What a whole is worth


def _node(word: Assurance | None = "shared", value: float = 1.0, **more: Any) -> SubScore:
    return SubScore("n", value, assurance=word, **more)


_SKIPPED = SubScore("s", status="skipped", assurance="model")
_NO_CREDIT = [_node("model", weight=0.0), _node("status", weight=-1.0)]


@each(
    ("nodes", "word"),
    [
        ([_node("separate"), _node("read", 0.0)], "read"),
        ([_node(), _node(None)], "shared"),
        ([_node(None)], None),
        ([_node(), _node("model", gate=True)], "shared"),
        ([_node(), *_NO_CREDIT, SubScore.skipped("d", "not here")], "shared"),
        ([_node(None, children=[_SKIPPED, _node("read")])], "read"),
        ([combine_any(1.0, [_node("read"), _node(None)])], "read"),
        ([_node(), SubScore.error("b", "broken")], None),  # there is no reward
    ],
)
def test_a_result_is_as_strong_as_the_weakest_score_that_gives_it_credit(
    nodes: list[SubScore], word: Assurance | None
) -> None:
    result = combine_scores(nodes)
    assert result.assurance == word
    assert Graded.of_result("1", result).assurance == word
    assert Grade.from_result(result).result.assurance == word


_WORDS = st.none() | st.sampled_from(ASSURANCES)


def _trees(below: st.SearchStrategy[SubScore]) -> st.SearchStrategy[SubScore]:
    """Nodes with some children, a few of them skipped."""
    node = st.builds(SubScore, st.just("n"), st.just(1.0), assurance=_WORDS)
    parts = st.lists(below, max_size=3)
    parents = st.builds(SubScore, st.just("n"), st.just(1.0), children=parts, assurance=_WORDS)
    status = st.just("skipped")
    skipped = st.builds(SubScore, st.just("n"), children=parts, status=status, assurance=_WORDS)
    return node | parents | skipped


_TREES = st.recursive(st.builds(SubScore, st.just("n"), st.just(1.0)), _trees, max_leaves=12)


def _said(node: SubScore) -> list[Assurance]:
    """Every word that counts for a node, found in another way than the rule's own."""
    if node.assurance is not None:
        return [node.assurance]
    return [word for c in node.children or () if c.status == "scored" for word in _said(c)]


@given(st.lists(_TREES, min_size=1, max_size=4))
def test_the_weakest_of_what_is_said_is_the_word_of_the_whole(trees: list[SubScore]) -> None:
    said: list[Assurance] = [
        word for tree in trees if tree.status == "scored" for word in _said(tree)
    ]
    result = EvaluationResult(reward=1.0, subscores=trees)
    if result.assurance is None:
        assert not said
    else:
        assert result.assurance in said
        assert all(reaches(word, result.assurance) for word in said)
    assert EvaluationResult.from_dict(result.to_dict()).assurance == result.assurance
    scored = [tree for tree in trees if tree.status == "scored"]
    if scored:
        assert combine_all(1.0, scored).assurance == result.assurance


@given(st.lists(_WORDS), _WORDS)
def test_a_word_reaches_what_is_no_stronger(
    words: list[Assurance | None], other: Assurance | None
) -> None:
    word: Assurance | None = weakest(words)
    assert reaches(word, None)
    assert not reaches(None, other) or other is None
    assert weakest([*words, other]) in (word, other)
    if word is not None and other is not None:
        assert reaches(word, other) == (weakest([word, other]) == other)


# Written down and read back


def test_an_unknown_word_is_refused_and_a_misspelt_one_told_the_nearest() -> None:
    wrong: list[Any] = ["seperate", "", "Shared", 1, ["read"], {"a": 1}]
    for word in wrong:
        with pytest.raises(ScoreError, match="unknown assurance"):
            SubScore("tests", 1.0, assurance=word)
        with pytest.raises(ScoreError, match="unknown assurance"):
            SubScore.from_dict({"name": "tests", "value": 1.0, "assurance": word})
        with pytest.raises(ScoreError, match="unknown assurance"):
            Graded(id="1", status="scored", score=1.0, assurance=word)
    with pytest.raises(ScoreError, match="separate"):
        SubScore("tests", 1.0, assurance=wrong[0])


def _cell(word: Assurance | None, least: Assurance | None = None, **more: Any) -> CellRecord:
    node = SubScore("tests", more.get("reward", 1.0), assurance=word)
    fields: dict[str, Any] = {"case": "kit", "status": "graded", "reward": 1.0, **more}
    return CellRecord(
        run_id="r1",
        passed=fields["reward"] >= 1.0 and reaches(word, least),
        subscores=(node.to_dict(),),
        assurance=word,
        min_assurance=least,
        **fields,
    )


def test_stored_scores_keep_their_words_and_those_of_an_older_assay_have_none(
    tmp_path: Path,
) -> None:
    found = [_cell("read", "separate", notes={"dropped": ["a: b"]}), _cell(None, case="old")]
    graded = Graded(id="1", status="scored", score=1.0, assurance="model")
    records = [
        ScoreRecord(item="1", graded=one) for one in (graded, replace(graded, assurance=None))
    ]
    with Database.open(str(tmp_path)) as database:
        store, scores = Store(database), Scores(database)

        def kept() -> list[Assurance | None]:
            return [score.graded.assurance for score in scores.page("default")]

        store.create_run(RUN)
        for cell in found:
            store.add_cell(cell, {})
        scores.add("default", records)
        assert list(store.cells("r1")) == found
        assert ("{}",) in database.rows("SELECT notes FROM result")  # as it always was
        assert kept() == ["model", None]
        columns = "project, item, source, grader_key, digest, status, score, created_at"
        older = "json_remove(evidence, '$.assurance')"
        copy = f"INSERT INTO score ({columns}, evidence) SELECT {columns}, {older} FROM score"
        with database.writing():
            database.change(copy)
        assert kept() == ["model", None, None, None]


# Shown


def test_the_word_stands_with_every_score_in_every_report(tmp_path: Path) -> None:
    words: dict[str, Assurance | None] = {"a": "shared", "b": "status", "c": None}
    rewards = {"a": 0.5}
    found = [_cell(words[c], case=c, reward=rewards.get(c, 1.0)) for c in words]
    assert heading(SubScore("judge", 0.4, weight=0.3, assurance="model")) == (
        "✗ 0.40 judge (model, weight 0.30)"
    )
    text = io.StringIO()
    render(TextPage(text, width=200), review(RUN, found))
    printed = text.getvalue()
    assert "✗ 0.50 tests (shared)" in printed
    assert "1 shared · 1 status" in printed
    write_html(str(tmp_path / "r.html"), review(RUN, found))
    views = [one["view"] for one in ReportFile(tmp_path / "r.html").data["run"]["opened"]]
    assert [view["assurance"] for view in views] == ["shared", "status", ""]
    assert [view["scores"][0]["assurance"] for view in views] == ["shared", "status", ""]
    write_junit(tmp_path / "r.xml", RUN, found)
    properties = [
        {p.get("name"): p.get("value") for p in case.iter("property")}
        for case in ET.parse(tmp_path / "r.xml").iter("testcase")
    ]
    assert [p.get("assurance") for p in properties] == ["shared", "status", None]
    assert [p.get("assurance.tests") for p in properties] == ["shared", "status", None]
    file = io.StringIO()
    cells_json(file, RUN, iter(found))
    report = json.loads(file.getvalue())
    assert [c["assurance"] for c in report["cells"]] == ["shared", "status", ""]
    assert report["overview"]["totals"]["assurance"] == {"shared": 1, "status": 1}


@each(
    ("cell", "said"),
    [
        (
            _cell("status", "separate"),
            "needs 1.00 → fail: passed its tests, but assurance `status` is below `separate`",
        ),
        (_cell("read", "shared", reward=0.5), "fail; assurance `read` is below `shared`"),
        (_cell(None, "shared"), "nothing says its assurance, which must be `shared`"),
        (_cell("shared", "shared"), "needs 1.00 → pass"),
        (_cell("separate", "shared", reward=0.5), "needs 1.00 → fail"),
    ],
)
def test_a_cell_below_the_least_assurance_says_so(cell: CellRecord, said: str) -> None:
    shown = sentence(cell)
    assert said in shown
    assert ("assurance" in shown) == ("assurance" in said)


# Asked for by a case


def test_right_work_that_cannot_pass_fails_its_selftest() -> None:
    run = Run()
    run.grade = Grade.from_result(combine_scores([_node("status")]))
    assert reference_check("reference", [run]).verdict == "held"
    assert reference_check("reference", [run], "status").verdict == "held"
    check = reference_check("reference", [run], "shared")
    assert check.verdict == "failed"
    assert check.said == "right work cannot pass: its assurance is status, below shared"


_CASE = """
    id: asks
    task: {{prompt: "hello"}}
    matrix: {{harnesses: [echo], models: [m]}}
    graders:
      - {{type: files, patterns: ["hello"]}}
      - {{type: command, cmd: "true", gate: true}}
      - {{type: llm_judge, criteria: ["It greets."], model: m, weight: -1}}
    expect: {{min_assurance: {word}}}
"""


def test_validate_warns_where_no_cell_could_pass_and_refuses_a_misspelt_minimum(
    tmp_path: Path,
) -> None:
    for word, warned in (("separate", True), ("status", True), ("read", False), ("model", False)):
        case = load_case(str(write_case(tmp_path, _CASE.format(word=word))))
        said = (
            f"expect.min_assurance is {word}, but a score of 'files' (files) is read at best: "
            "no cell can pass"
        )
        assert case.doubts() == ((said,) if warned else ())
    with pytest.raises(DocumentError) as raised:
        load_case(str(write_case(tmp_path, _CASE.format(word="seperate"))))
    assert "case.yaml:9" in str(raised.value)
    assert "did you mean 'separate'?" in str(raised.value)
