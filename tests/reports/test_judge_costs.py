"""What judges cost: summed from what they left in the score trees, and never a guess."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from assay.errors import GraderError
from assay.eval.costs import JudgeCosts, judge_costs
from assay.graders.base import AskedNode
from assay.graders.kinds import kind_of
from assay.models import ModelClient, ModelSettings, using
from assay.reports.html import write_html
from assay.reports.review import review, run_summary
from assay.reports.statistics import statistics
from assay.reports.summary import summarize
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.store.records import CellRecord, RunRecord
from assay.store.runs import Store
from assay.testing import FakeJudge
from assay.types.thread import StringThread
from tests.each import each
from tests.openai_model_graders import gives, graded, label_model, only, score_model
from tests.report_files import ReportFile

_THREAD = StringThread(
    [
        ("document", "Canberra is the capital of Australia."),
        ("user", "What is the capital of Australia?"),
        ("assistant", "Canberra is the capital of Australia."),
    ]
)
_ANSWER = "Canberra is the capital of Australia."
_RUBRIC = "rubric.md"


def cell(*subscores: Mapping[str, Json], **more: Any) -> CellRecord:
    fields: dict[str, Any] = {"case": "a", "status": "graded", "reward": 1.0, "passed": True}
    return CellRecord(run_id="r1", subscores=subscores, **{**fields, **more})


def left(**metadata: Json) -> Mapping[str, Json]:
    return SubScore("judge", 1.0, metadata=metadata).to_dict()


def call(cost: Json = 0.5, **more: Json) -> dict[str, Json]:
    return {"model": "m", "request": "abc", "cost_usd": cost, **more}


_PROBED: dict[str, object] = {"canary": 1.0}
_JURY: dict[str, object] = {"canary": 0.0, "repeats": 3}
KINDS: list[tuple[str, dict[str, object]]] = [
    ("llm_judge", {"answer": _ANSWER, "criteria": ["names Canberra", "is short"], **_PROBED}),
    ("llm_judge", {"answer": _ANSWER, "criteria": ["names Canberra"], **_JURY}),
    ("binary_judge", {"thread": _THREAD, "criteria": "names Canberra", **_PROBED}),
    ("binary_judge", {"thread": _THREAD, "criteria": "names Canberra", **_JURY}),
    ("model_judge", {"answer": _ANSWER, "rubric": _RUBRIC, **_PROBED}),
    ("model_judge", {"answer": _ANSWER, "rubric": _RUBRIC, **_JURY}),
    ("faithfulness", {"thread": _THREAD}),
    ("context_relevancy", {"thread": _THREAD}),
    ("answer_relevancy", {"thread": _THREAD}),
    ("answer_relevancy", {"thread": _THREAD, "repeats": 3}),
    ("pairwise", {"answer": _ANSWER, "other": "It is Sydney."}),
]


@pytest.mark.parametrize(("kind", "options"), KINDS)
async def test_every_call_of_every_kind_is_found(
    kind: str, options: dict[str, object], tmp_path: Path
) -> None:
    if options.get("rubric") == _RUBRIC:
        (tmp_path / _RUBRIC).write_text("The answer names Canberra.", "utf-8")
        options = {**options, "rubric": str(tmp_path / _RUBRIC)}
    with FakeJudge() as fake, using(ModelClient(ModelSettings())):
        empty: AskedNode = {"name": "judge", "weight": 1.0, "gate": False}
        given = {"model": fake.model, **options}
        (found,) = await kind_of(kind).grader.score_each(empty, [given], {}, explained=True)
        node = cast("SubScore", found.subscore) if isinstance(found, GraderError) else found
        assert fake.count > 0
        costs = judge_costs(cell(node.to_dict()))
        assert (costs.asked, costs.unknown, costs.usd) == (fake.count, fake.count, None)


async def test_openais_kinds_alone_and_in_a_formula() -> None:
    with FakeJudge([gives(0.5)]) as fake, using(ModelClient(ModelSettings())):
        node = only(await graded(score_model(fake.model)))
    assert judge_costs(cell(node.to_dict())).asked == 1
    with FakeJudge(lambda asked: gives("rude")) as fake, using(ModelClient(ModelSettings())):
        parts: Json = {"a": label_model(fake.model), "b": label_model(fake.model)}
        formula: dict[str, Json] = {"type": "multi", "graders": parts, "calculate_output": "a + b"}
        node = only(await graded(formula))
        assert judge_costs(cell(node.to_dict())).asked == fake.count == 2


_LATE: Json = {"model": "m", "error": "late", "error_kind": "timeout"}
_BROKE: Json = {"model": "m", "error": "no money", "error_kind": "budget"}
VOTES: list[tuple[list[Json], JudgeCosts]] = [
    ([call(0.5), call(0.25)], JudgeCosts(asked=2, usd=0.75)),
    ([call(None)], JudgeCosts(asked=1, unknown=1)),
    ([call(0.5), call(None)], JudgeCosts(asked=2, usd=0.5, unknown=1)),
    ([call(0.0, from_cache=True)], JudgeCosts(cached=1, usd=0.0)),
    ([call(0.0)], JudgeCosts(asked=1, usd=0.0)),
    ([call("0.5"), call(True), call(-1.0)], JudgeCosts(asked=3, unknown=3)),
    ([_LATE], JudgeCosts(asked=1, unknown=1)),
    ([_BROKE], JudgeCosts()),
    ([{"model": "m", "calls": [call(0.5), call(0.5)]}], JudgeCosts(asked=2, usd=1.0)),
    (["nonsense", None, {}], JudgeCosts()),
]


@each(("votes", "costs"), VOTES)
def test_a_price_that_is_not_known_is_no_zero(votes: list[Json], costs: JudgeCosts) -> None:
    assert judge_costs(cell(left(votes=votes))) == costs
    inner = SubScore("outer", 1.0, children=[SubScore("judge", 1.0, metadata={"votes": votes})])
    assert judge_costs(cell(inner.to_dict())) == costs


def test_attack_an_answer_that_poses_as_a_call_of_a_judge() -> None:
    posing: Json = {"votes": [call(1e9)], **call(1e9)}
    told = left(actual=posing, expected=[posing], answer=posing)
    assert judge_costs(cell(told)) == JudgeCosts()


def test_reports_say_it_everywhere(tmp_path: Path) -> None:
    judged = cell(left(votes=[call(0.5), call(None)]), cost_usd=0.0, tokens=0)
    again = cell(left(votes=[call(0.0, from_cache=True)]), case="b", cost_usd=0.0, tokens=0)
    summary = summarize([judged, again])
    numbers = summary.totals
    assert (numbers.judge_cost_usd, numbers.judge_cost_unknown) == (0.5, 1)
    assert (numbers.judgements, numbers.judgements_cached) == (2, 1)
    lines = {label: "".join(map(str, parts)) for label, parts in statistics(summary)}
    assert lines["Judge cost"] == (
        "$0.50 + 1 judgement unknown; 2 judgements asked, 1 from the cache"
    )
    page = tmp_path / "report.html"
    write_html(page, review(RunRecord(id="r1", created_at=""), [judged, again]))
    found = ReportFile(page)
    totals = found.data["run"]["overview"]["totals"]
    assert (totals["judge_cost_usd"], totals["judge_cost_unknown"]) == (0.5, 1)
    assert "Judge cost: $0.50 + 1 judgement unknown" in found.text
    without = summarize([cell(SubScore("tests", 1.0).to_dict())])
    assert (without.totals.judgements, without.totals.judge_cost_usd) == (0, None)
    assert "Judge cost" not in dict(statistics(without))


def test_a_stored_run_comes_to_the_same_without_its_answers_and_other_score_trees(
    tmp_path: Path,
) -> None:
    run = RunRecord(id="r1", created_at="2026-11-20T10:00:00+00:00", planned=3, finished=True)
    plain = SubScore("tests", 0.5, metadata={"output": "x" * 100}).to_dict()
    cells = [
        cell(left(votes=[call(0.25), call(None)]), plain),
        cell(plain, case="b", reward=0.5, passed=False, answer="It is 4."),
        cell(plain, case="c", status="error", reward=None, passed=None, error="judge: away"),
    ]
    with Store.open(str(tmp_path)) as store:
        store.create_run(run)
        for one in cells:
            store.add_cell(one, {})
        found = run_summary(store, run)
    assert found.totals == summarize(cells, run=run).totals
    assert found.causes == summarize(cells, run=run).causes
    assert (found.totals.judgements, found.totals.judge_cost_usd) == (2, 0.25)
