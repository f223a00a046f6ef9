"""Labels and calibrations, asked of the operations: what the web page labels and measures with."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from assay.errors import InputError, NotFoundError
from assay.models import Request
from assay.registry.policy import ForbiddenError, Permissions
from assay.scoring.json_safe import Json
from assay.scoring.records import as_json
from assay.service import calibrations, graders, labels
from assay.service.labels import QueueItem
from assay.service.local import ask, do
from assay.service.operation import LOCAL, Desk, Identity
from assay.store.cards import Cards
from assay.store.database import Database
from assay.store.datasets import Datasets
from assay.store.records import RunRecord
from assay.store.runs import Store
from tests.calibrated_graders import SAYS_YES, says_yes
from tests.judge_models import model
from tests.stored_cells import graded_cell

ROWS: list[dict[str, Json]] = [
    {
        "id": f"r{n}",
        "question": f"Yes or no, {n}?",
        "answer": "yes" if n % 2 else "no",
        "documents": [f"page {n}"],
        "label": "PASS",
        "grade": {"score": 0.75, "reason": "a secret verdict"},
        "metadata": {"judge": "a secret verdict", "label": "PASS"},
    }
    for n in range(12)
]
ADA = Identity("k1", "ada", "editor", "default")
BO = Identity("k2", "bo", "editor", "default")


@pytest.fixture
def desk(database: Database) -> Desk:
    Datasets(database).create("default", "rows", "", ROWS)
    return Desk(database, "default", ADA, Permissions())


def _next(desk: Desk, **more: Any) -> list[QueueItem]:
    return list(do(labels.next_to_label, desk, dataset="rows", **more).items)


def _say(desk: Desk, item: QueueItem, label: str, **more: str) -> None:
    do(labels.add_label, desk, item.item, label, dataset="rows", place=item.place, **more)


def _all_labelled(desk: Desk, *, wrong: int = 2) -> None:
    """Label every row by whether it says yes, some of them otherwise."""
    for number, item in enumerate(_next(desk, limit=50)):
        says = {part.name: part.text for part in item.parts}["answer"] == "yes"
        _say(desk, item, "PASS" if says != (number < wrong) else "FAIL")


def test_attack_the_queue_tells_nothing_that_a_grader_or_anybody_said(desk: Desk) -> None:
    Datasets(desk.database).create("default", "scored", "", [{**ROWS[0], "score": 0.987}])
    assert "0.987" not in json.dumps(as_json(do(labels.next_to_label, desk, dataset="scored")))
    queue = do(labels.next_to_label, desk, dataset="rows", limit=50)
    told = json.dumps(as_json(queue))
    assert "secret" not in told
    assert "0.75" not in told
    assert [part.name for part in queue.items[0].parts] == ["question", "documents", "answer"]
    assert (queue.total, queue.done, queue.size, queue.rater) == (12, 0, 12, "ada")
    assert [(one.key, one.label) for one in queue.keys] == [
        ("p", "PASS"),
        ("f", "FAIL"),
        ("n", "NA"),
    ]


def test_what_is_labelled_comes_no_more_and_what_was_taken_back_comes_again(desk: Desk) -> None:
    first, second, third = _next(desk)
    _say(desk, first, "PASS", note="clear", criterion="It says yes.")
    assert [one.item for one in _next(desk, limit=2)] == [second.item, third.item]
    queue = do(labels.next_to_label, desk, dataset="rows")
    assert (queue.done, queue.criterion) == (1, "It says yes.")
    _say(desk, first, "")
    assert _next(desk)[0].item == first.item, "the order is the same"
    assert do(labels.next_to_label, desk, dataset="rows").done == 0
    later = do(labels.next_to_label, desk, dataset="rows", limit=2)
    rest = do(labels.next_to_label, desk, dataset="rows", limit=2, after=later.next)
    assert [one.item for one in rest.items] == [one.item for one in _next(desk, limit=4)[2:]]


def test_two_people_label_the_same_items_apart(desk: Desk) -> None:
    bo = replace(desk, who=BO)
    first, second, third = _next(desk)
    for who, said in ((desk, "PPF"), (bo, "PFF")):
        for item, letter in zip((first, second, third), said, strict=True):
            _say(who, item, "PASS" if letter == "P" else "FAIL")
    (found,) = do(labels.list_labels, desk).items
    assert (found.field, found.items, found.several) == ("label", 3, 3)
    assert (found.agreed.value, found.agreed.n) == (2 / 3, 3)
    assert found.labels == {"FAIL": 3, "PASS": 3}
    assert [(one.rater, one.items) for one in found.raters] == [("ada", 3), ("bo", 3)]
    (odd,) = do(labels.list_labelled, desk, which="disagreed").items
    assert (odd.item, [one.label for one in odd.said]) == (second.item, ["PASS", "FAIL"])
    assert len(do(labels.list_labelled, desk, which="several", limit=2).items) == 2
    rows = [one.row for one in do(labels.export_labels, desk).items]
    assert rows[0]["label"] == {"ada": True, "bo": True}


def test_attack_nobody_labels_under_another_name(desk: Desk) -> None:
    (item, *_) = _next(desk)
    with pytest.raises(ForbiddenError, match="name of the key, 'ada'"):
        _say(desk, item, "PASS", rater="bo")
    _say(replace(desk, who=LOCAL), item, "PASS", rater="bo")  # on a machine of one's own
    assert do(labels.list_labels, desk).items[0].raters[0].rater == "bo"


def test_a_label_is_of_the_item_that_stands_at_its_place(desk: Desk) -> None:
    first, second, _ = _next(desk)
    with pytest.raises(InputError, match="does not hold the item"):
        do(labels.add_label, desk, first.item, "PASS", dataset="rows", place=second.place)
    with pytest.raises(InputError, match="from a dataset or from a run"):
        do(labels.add_label, desk, first.item, "PASS", place=first.place)
    with pytest.raises(NotFoundError):
        do(labels.next_to_label, desk, dataset="rowz")


def test_of_a_large_dataset_a_sample_is_labelled(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.eval.calibration.sources.MOST_ITEMS", 5)
    queue = do(labels.next_to_label, desk, dataset="rows", limit=50, field="sampled")
    assert (queue.total, queue.size, len(queue.items)) == (5, 12, 5)
    again = do(labels.next_to_label, desk, dataset="rows", limit=50, field="sampled")
    assert [one.item for one in again.items] == [one.item for one in queue.items]


def test_answers_of_a_run_are_labelled_without_their_rewards(desk: Desk) -> None:
    store, run = Store(desk.database), "20261121-090000-aaaa"
    store.create_run(RunRecord(id=run, created_at="2026-11-21T09:00:00+00:00", planned=2))
    for number in (1, 2):
        cell = graded_cell(run, f"c{number}", 0.625, harness="h", model="m")
        row: dict[str, Json] = {"id": "x", "question": "Q?", "answer": f"A{number}"}
        store.add_cell(cell, {"row": {**row, "grade": {"score": 0.625}}})
    queue = do(labels.next_to_label, desk, run=run, limit=5)
    assert {one.id for one in queue.items} == {"c1 h m", "c2 h m"}
    assert "0.625" not in json.dumps(as_json(queue))
    item = queue.items[0]
    do(labels.add_label, desk, item.item, "PASS", run=run, place=item.place)
    assert do(labels.next_to_label, desk, run=run).done == 1


async def test_a_stored_grader_is_calibrated_in_stretches_and_goes_on_where_it_ended(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ask(graders.create_grader, desk, "says", "declared", SAYS_YES)
    with pytest.raises(InputError, match="has no labels 'label'"):
        do(calibrations.plan_calibration, desk, grader="says")
    _all_labelled(desk)
    planned = do(calibrations.plan_calibration, desk, grader="says")
    assert (planned.rows, planned.judgements, planned.done, planned.models) == (12, 12, 0, ())

    monkeypatch.setattr(calibrations, "_STRETCH", 5)
    monkeypatch.setattr(calibrations, "_SECONDS", 0.0)
    told = [await ask(calibrations.calibrate_grader, desk, "says") for _ in range(2)]
    assert [(one.done, one.card) for one in told] == [(5, ""), (10, "")]
    assert do(calibrations.plan_calibration, desk, grader="says").done == 10
    last = await ask(calibrations.calibrate_grader, desk, "says")
    assert (last.done, last.errors, last.usd) == (12, 0, None)

    (card,) = do(calibrations.list_calibrations, desk).items
    assert (card.id, card.n, card.state, card.changed) == (last.card, 12, "current", ())
    assert card.words.startswith("good agreement; of so few rows it may be ")
    shown = do(calibrations.show_calibration, desk, last.card)
    assert shown.confusion == ((5, 1), (1, 5))
    assert shown.comparison is None
    assert {shown.said[one.item][0].rater for one in shown.disagreements} == {"ada"}
    assert {(one.label, one.verdict) for one in shown.disagreements} == {
        ("yes", "no"),
        ("no", "yes"),
    }


async def test_a_card_stands_beside_the_one_before_and_goes_stale_with_its_grader(
    desk: Desk,
) -> None:
    await ask(graders.create_grader, desk, "says", "declared", SAYS_YES)
    _all_labelled(desk, wrong=0)
    first = await ask(calibrations.calibrate_grader, desk, "says")
    contrary: dict[str, Json] = {"graders": [{"type": "contains", "substring": "no"}]}
    await ask(graders.update_grader, desk, "says", "declared", contrary, expected=1)
    (card,) = do(calibrations.list_calibrations, desk).items
    assert (card.state, card.changed) == ("stale", ("graders changed",))
    second = await ask(calibrations.calibrate_grader, desk, "says")
    compared = do(calibrations.show_calibration, desk, second.card).comparison
    assert compared is not None
    assert (compared.id, compared.verdict, compared.same_labels) == (first.card, "worse", True)
    assert "the intervals do not meet" in compared.sentence


async def test_a_grader_that_can_judge_nothing_says_why_and_makes_no_card(desk: Desk) -> None:
    source = (
        "async def grade(thread):\n"
        "    assert thread.completion() == '4', 'out of order'\n"
        "    return 1.0\n"
    )
    await ask(graders.create_grader, desk, "broken", "function", {"source": source})
    _all_labelled(desk)
    with pytest.raises(InputError, match=r"could judge none of 12 rows.*out of order"):
        await ask(calibrations.calibrate_grader, desk, "broken")
    assert Cards(desk.database).newest("default") == []


async def test_a_judge_without_a_model_is_told_before_anything_is_asked(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    judge: dict[str, Json] = {"criteria": "Says yes.", "judge_model": "anthropic:claude-x"}
    made = replace(desk, who=LOCAL)
    await ask(graders.create_grader, made, "judge", "binary_judge", judge)
    _all_labelled(desk)
    with pytest.raises(InputError, match="cannot ask its model"):
        do(calibrations.plan_calibration, desk, grader="judge")


async def test_what_a_judge_cannot_judge_is_asked_twice_and_an_error(desk: Desk) -> None:
    def judge(request: Request) -> Json:
        said = says_yes(request)
        return "no verdict" if isinstance(said, dict) and said["score"] == "FAIL" else said

    with model(judge) as (name, asked):
        definition: dict[str, Json] = {"criteria": "It says yes.", "judge_model": name}
        await ask(graders.create_grader, desk, "judge", "binary_judge", definition)
        _all_labelled(desk, wrong=0)
        planned = do(calibrations.plan_calibration, desk, grader="judge", repeats=2)
        assert (planned.judgements, planned.models, planned.usd) == (24, (name,), None)
        made = await ask(calibrations.calibrate_grader, desk, "judge")
        card = do(calibrations.show_calibration, desk, made.card)
        assert (made.done, made.errors, card.coverage.errors) == (12, 6, 6)
        assert card.coverage.compared == 6, "an error is no FAIL"
        assert card.summary.asks_models
        assert card.summary.usd_per_thousand is None, "a price that nobody knows is not 0"
        assert len(asked) == 6 + 6 * 2 * 2, "twice, and each time the reply is to be corrected"


async def test_what_could_not_be_judged_is_asked_again_by_whoever_goes_on(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = {"PASS", "FAIL"}

    def judge(request: Request) -> Json:
        said = says_yes(request)
        assert isinstance(said, dict)
        return "no verdict at all" if said["score"] in lost else said

    with model(judge) as (name, _):
        definition: dict[str, Json] = {"criteria": "It says yes.", "judge_model": name}
        await ask(graders.create_grader, desk, "judge", "binary_judge", definition)
        _all_labelled(desk, wrong=0)
        monkeypatch.setattr(calibrations, "_STRETCH", 5)
        for _ in range(2):
            with pytest.raises(InputError, match="could judge none of 5 rows"):
                await ask(calibrations.calibrate_grader, desk, "judge")
        assert do(calibrations.plan_calibration, desk, grader="judge").done == 0
        monkeypatch.setattr(calibrations, "_STRETCH", 8)
        monkeypatch.setattr(calibrations, "_SECONDS", 0.0)
        lost.remove("PASS")
        first = await ask(calibrations.calibrate_grader, desk, "judge")
        assert (first.errors > 0, first.card) == (True, "")
        lost.clear()
        last = await ask(calibrations.calibrate_grader, desk, "judge")
        card = do(calibrations.show_calibration, desk, last.card)
    assert (card.coverage.compared, card.coverage.errors) == (12, 0)
