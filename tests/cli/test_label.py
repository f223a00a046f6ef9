"""`assay calibrate label`: the page on the rows of a file, and those with labels as a file.

What the page shows of them: tests/service/test_labels.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from assay.eval.calibration.labelled import read_items
from assay.eval.calibration.labelling import kept_row, key_names
from assay.scoring.json_safe import Json
from assay.service import labels
from assay.service.local import do, local_desk
from assay.store.database import Database
from assay.store.labels import LabelRecord, Labels
from tests.cli.opened_pages import opened_place
from tests.command_line import assay
from tests.written_files import write_rows

_ROWS: list[dict[str, Json]] = [
    {"id": "one", "question": "2+2?", "answer": "4"},
    {"id": "two", "question": "2+3?", "answer": "5"},
    {"id": "three", "question": "2+4?", "answer": "7"},
]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A directory with rows."""
    write_rows(tmp_path / "data.jsonl", _ROWS)
    return tmp_path


def _said(here: Path, rater: str, *words: str, field: str = "label") -> None:
    with Database.open(str(here / ".assay")) as database:
        for item, label in zip(read_items(str(here / "data.jsonl")), words, strict=False):
            record = LabelRecord(item=item.digest, field=field, rater=rater, label=label)
            Labels(database).add("default", record, kept_row(item))


def _export(here: Path, *arguments: str) -> list[dict[str, Json]]:
    done = assay("calibrate", "label", "data.jsonl", "--out", "out.jsonl", *arguments, cwd=here)
    assert done.returncode == 0, done.stderr
    lines = (here / "out.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_the_page_asks_about_the_rows_and_goes_on_where_it_stopped(here: Path) -> None:
    options = ("--rater", "ada", "--criterion", "Is it right?", "--shuffle", "7")
    links = [opened_place(here, "calibrate", "label", "data.jsonl", *options) for _ in range(2)]
    assert links[0] == links[1], "the same dataset, once"
    place = urlsplit(links[0])
    asked = {name: value for name, (value,) in parse_qs(place.query).items()}
    dataset = asked.pop("dataset")
    assert place.path == "/p/default/labels/queue"
    assert dataset.startswith("data-")
    assert asked == {
        "field": "label", "classes": "PASS,FAIL,NA", "criterion": "Is it right?",
        "seed": "7", "rater": "ada",
    }  # fmt: skip
    with Database.open(here / ".assay") as database:
        desk = local_desk(database, "default")
        first, *_ = do(labels.next_to_label, desk, dataset=dataset, seed=7, rater="ada").items
        said = {"dataset": dataset, "place": first.place, "rater": "ada"}
        do(labels.add_label, desk, first.item, "PASS", **said)
    (row,) = _export(here)
    assert (row["id"], row["label"]) == (first.id, True)


def test_raters_are_apart_and_export_brings_them_together(here: Path) -> None:
    _said(here, "ada", "PASS", "FAIL", "NA")
    assert [row["label"] for row in _export(here)] == [True, False, None]
    _said(here, "bo", "FAIL")
    assert [row["label"] for row in _export(here)] == [
        {"ada": True, "bo": False}, {"ada": False}, {"ada": None},
    ]  # fmt: skip
    assert [row["label"] for row in _export(here, "--rater", "bo")] == [False]
    _said(here, "ada", "NONE", "SOME", "ALL", field="much")
    assert [row["much"] for row in _export(here, "--label", "much")] == ["NONE", "SOME", "ALL"]


@pytest.mark.parametrize(
    ("classes", "keys"),
    [
        (["PASS", "FAIL", "NA"], "pfn"),
        (["GOOD", "SUPERB"], "12"),
        (["A", "AB"], "12"),
        (["ÄRGER", "B"], "12"),
    ],
)
def test_no_class_takes_the_key_of_a_command_or_of_another(classes: list[str], keys: str) -> None:
    assert "".join(key_names(classes)) == keys
