"""Labels and cards: appended, found again, and the same in every kind of database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.errors import InputError, NotFoundError
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.store import Database, Projects
from assay.store.cards import CardRecord, Cards
from assay.store.labels import LabelRecord, Labels


def _label(item: str, label: str, rater: str = "ada", field: str = "label") -> LabelRecord:
    return LabelRecord(item=item, field=field, rater=rater, label=label)


def test_the_last_label_of_each_rater_counts_unless_it_was_taken_back(database: Database) -> None:
    labels = Labels(database)
    for item, label, rater in (
        ("a", "PASS", "ada"),
        ("b", "FAIL", "ada"),
        ("a", "FAIL", "bo"),
        ("a", "NA", "ada"),
    ):
        labels.add("default", _label(item, label, rater), {"answer": item})
    found = labels.current("default", "label")
    said = {item: {name: one.label for name, one in by.items()} for item, by in found.items()}
    assert said == {"a": {"ada": "NA", "bo": "FAIL"}, "b": {"ada": "FAIL"}}
    assert list(labels.current("default", "label", rater="bo")) == ["a"]
    # Fields and projects are apart.
    Projects(database).create("other")
    assert labels.current("default", "tone") == labels.current("other", "label") == {}
    with pytest.raises(NotFoundError):
        labels.current("othr", "label")
    labels.add("default", _label("b", ""), {"answer": "b"})
    assert list(labels.current("default", "label")) == ["a"]
    assert [one.row for one in labels.items("default", "label")] == [{"answer": "a"}]
    assert database.rows("SELECT label FROM label WHERE label <> 'NA'")[-2:] == [("FAIL",), ("",)]


def test_an_item_comes_back_with_its_row_and_everything_said(database: Database) -> None:
    labels = Labels(database)
    row: dict[str, Json] = {"answer": "näher \ud800 \0", "metadata": {"a": [1, None]}}
    record = LabelRecord(
        item="d", field="ok", rater="ada", label="PASS", note="why", criterion="is kind"
    )
    labels.add("default", record, row)
    labels.add("default", _label("d", "FAIL", "bo", "ok"), {"answer": "another row"})
    (item,) = labels.items("default", "ok")
    assert item.row == row
    assert item.labels["ada"] == replace(record, created_at="2026-11-21T12:00:00.000Z")


def test_what_cannot_be_a_label_is_refused(database: Database) -> None:
    for record in (
        _label("", "PASS"),
        _label("a", "PASS", " "),
        _label("a", "PASS", field=""),
        _label("a", "x" * 201),
    ):
        with pytest.raises(InputError):
            Labels(database).add("default", record, {})
    assert database.rows("SELECT 1 FROM label_item") == []


def test_a_card_is_found_by_id_by_grader_and_as_the_latest(database: Database) -> None:
    cards = Cards(database)
    first = cards.add("default", CardRecord(grader="g", digest="1", body={"kappa": 0.5}))
    second = cards.add("default", CardRecord(grader="g", digest="2", alias="3", labels="4"))
    other = cards.add("default", CardRecord(grader="h", digest="5"))
    assert cards.get("default", first.id) == first
    assert cards.get("default", "g") == second
    assert cards.get("default", "latest") == other
    assert cards.newest("default") == [other, second, first]
    assert (first.created_at, first.project) == ("2026-11-21T12:00:00.000Z", "default")
    with pytest.raises(NotFoundError):
        cards.get("default", "i")


def test_judgements_wait_for_their_card_and_are_its_evidence(database: Database) -> None:
    cards = Cards(database)
    judged = Graded(id="a", status="scored", score=0.25, reason="so", details={"n": 1})
    failed = Graded.failed("b", "the judge is down")
    cards.keep("default", "w", [("a:plain:0", judged), ("b:plain:0", failed)])
    cards.keep("default", "v", [("c:plain:0", judged)])
    assert list(cards.unfinished("default", "w")) == [("a:plain:0", judged), ("b:plain:0", failed)]
    card = cards.add("default", CardRecord(grader="g", digest="1"), work="w")
    assert list(cards.unfinished("default", "w")) == []
    assert len(list(cards.unfinished("default", "v"))) == 1
    assert [unit for unit, _ in cards.evidence(card, "w")] == ["a:plain:0", "b:plain:0"]


def test_evidence_of_a_judgement_is_bounded(database: Database) -> None:
    cards = Cards(database)
    more: list[Json] = ["z" * 9_000] * 9_000
    details: dict[str, Json] = {"log": "y" * 9_000_000, "more": more}
    wild = Graded(id="a", status="scored", score=1.0, reason="x" * 9_000_000, details=details)
    cards.keep("default", "w", [("u", wild)])
    ((_, kept),) = cards.unfinished("default", "w")
    assert len(kept.reason) == 4_096
    assert len(str(kept.details)) < 1 << 20
