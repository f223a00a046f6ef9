"""Pictures of rows in a store: kept once, as files; shown in a cell, a dataset and a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.eval.records import start_run
from assay.reports import html
from assay.reports.cell_records import CellPictures
from assay.reports.cell_view import cell_pictures, cell_view, steps_of
from assay.reports.html import file_report
from assay.reports.pictures import described
from assay.reports.review import review
from assay.reports.summary import verdict
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.service.datasets import row_detail
from assay.store.blobs import Blobs
from assay.store.datasets import DatasetRow
from assay.store.kept_files import delete_run
from assay.store.records import CellKey, CellRecord
from assay.store.runs import Store
from assay.types.picture import Picture
from assay.types.run import Grade, Run
from tests.command_line import assay
from tests.pictures import png

RED, BLUE = Picture(png()), Picture(png(3, 3, colour=b"\0\0\xff"))
ASKED: dict[str, Any] = {
    "id": "asked",
    "question": "Which?",
    "images": ["red.png"],
    "answer": "red",
}
DRAWN: dict[str, Any] = {
    "id": "drawn",
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Like this"}, {"type": "image"}]},
        {"role": "assistant", "content": [BLUE.part]},
        {"role": "user", "content": "Say it."},
        {"role": "assistant", "content": "blue"},
    ],
    "images": ["red.png"],
}


def graded(directory: Path) -> str:
    """A run of both rows; its id."""
    (directory / "red.png").write_bytes(RED.data)
    rows = "".join(json.dumps({**row, "expected": "red"}) + "\n" for row in (ASKED, DRAWN))
    (directory / "rows.jsonl").write_text(rows)
    (directory / "graders.yaml").write_text("- {type: exact_match}\n")
    done = assay("grade", "rows.jsonl", "graders.yaml", cwd=directory)
    assert done.returncode == 1, done.stderr
    with Store.open(str(directory / ".assay")) as store:
        return store.runs().items[0].id


def key(case: str) -> CellKey:
    return case, "recorded", "", 1


def shown(found: CellPictures) -> list[tuple[str, str, str]]:
    return [(one.name, one.of, one.digest) for one in found.pictures]


def test_a_cell_shows_its_pictures_which_travel_with_it(tmp_path: Path) -> None:
    """Each with its turn and its digest; in the steps it is named, and its data is in no text.

    They are exported and imported as files; one that is missing is said, and the rest is shown.
    """
    run_id = graded(tmp_path)
    with Store.open(str(tmp_path / ".assay")) as store:
        run = store.run(run_id)
        asked = cell_view(store, run, key("asked"))
        assert (asked.prompt.text, asked.steps, asked.pictures) == ("Which?", 0, 1)
        assert shown(cell_pictures(store, run, key("asked"))) == [
            ("picture 1", "user, turn 1", RED.digest)
        ]
        drawn = cell_pictures(store, run, key("drawn"))
        assert shown(drawn) == [
            ("picture 1", "user, turn 1", RED.digest),
            ("picture 2", "assistant, turn 2", BLUE.digest),
        ]
        assert [one.url for one in drawn.pictures] == [RED.url, BLUE.url]
        texts = [one.text.text for one in steps_of(store, run, key("drawn"), 0, 10).steps]
        assert texts[0].startswith("Like this\n[picture 1: image/png, 2 x 2, ")
        assert not any("base64" in text for text in texts)
    assert assay("runs", "export", run_id, "--out", "out", cwd=tmp_path).returncode == 0
    (other := tmp_path / "other").mkdir()
    done = assay("runs", "import", "../out", cwd=other)
    assert done.returncode == 0, done.stderr
    with Store.open(str(other / ".assay")) as store:
        found = cell_pictures(store, store.run(run_id), key("drawn"))
        assert [one.url for one in found.pictures] == [RED.url, BLUE.url]
        (other / ".assay/blobs" / RED.digest[:2] / RED.digest[2:]).unlink()
        view = cell_view(store, store.run(run_id), key("asked"))
    assert view.pictures == 0
    assert any("only the result itself could be read" in note for note in view.notes)


def test_a_picture_is_kept_once_and_freed_with_its_last_run(tmp_path: Path) -> None:
    """As files by their digest, and not in the rows; a row that is graded again has them."""
    first = graded(tmp_path)
    second = graded(tmp_path)
    assert first != second
    home = tmp_path / ".assay"

    def kept(picture: Picture) -> bool:
        return (home / "blobs" / picture.digest[:2] / picture.digest[2:]).exists()

    assert kept(RED)
    assert kept(BLUE)
    (tmp_path / "red.png").unlink()
    with Store.open(str(home)) as store:
        detail = store.detail(first, key("asked"))
        assert detail["row"] == {**ASKED, "images": [RED.url], "expected": "red"}
        done = assay("regrade", first, "graders.yaml", cwd=tmp_path)
        assert done.returncode == 1, done.stderr
        assert store.detail(first, key("asked")) == detail
        delete_run(store, first)
        assert kept(RED)
        assert store.detail(second, key("asked"))["row"] == detail["row"]
        delete_run(store, second)
    assert not kept(RED)
    assert not kept(BLUE)


def test_a_report_in_a_file_holds_as_many_as_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As data URLs; what is left out is said."""
    run_id = graded(tmp_path)

    def held() -> tuple[list[bool], tuple[str, ...]]:
        with Store.open(str(tmp_path / ".assay")) as store:
            found = review(store.run(run_id), store.cells(run_id))
            report = file_report(found, verdict(found.summary), store=store)
        each = [one for cell in report.opened if cell.pictures for one in cell.pictures.pictures]
        return [bool(one.url) for one in each], report.left_out

    assert held() == ([True, True, True], ())
    monkeypatch.setattr(html, "_MOST_PICTURED", len(BLUE.url) + len(RED.url))
    urls, left_out = held()
    assert sorted(urls) == [False, True, True]
    assert left_out[0].startswith("1 of 3 pictures are not in this file")


def test_a_row_of_a_dataset_shows_its_pictures() -> None:
    """The data stands once, and not in the JSON as it came."""
    data: dict[str, Json] = {"question": "Which?", "images": [RED.url], "answer": "red"}
    found = row_detail(DatasetRow(number=1, id="1", data=data))
    assert [(one.digest, one.url) for one in found.pictures] == [(RED.digest, RED.url)]
    assert (found.question, found.turns) == ("Which?", ())
    long = f"data:image/png;base64,{'A' * 1_000}"
    assert described({"images": [long]}) == {"images": [f"{long[:40]}... (1,022 characters)"]}


def test_a_picture_that_an_agent_left_is_shown_where_a_judge_saw_it(tmp_path: Path) -> None:
    """By the digest that the score names; one that is gone is no reason to show nothing."""
    with Store.open(str(tmp_path)) as store:
        run = start_run(store, config={}, digests={}, planned=1)
        with Blobs(tmp_path / "blobs") as blobs:
            blobs.put(RED.data)
        seen: list[Json] = [
            {**one.told, "of": "the files that were left", "file": name}
            for name, one in (("chart.png", RED), ("gone.png", BLUE))
        ]
        node = SubScore("model_judge", 1.0, metadata={"images": seen})
        cell = CellRecord(
            run_id=run.id,
            case="chart",
            harness="agent",
            status="graded",
            reward=1.0,
            passed=True,
            subscores=(node.to_dict(),),
        )
        store.add_cell(cell, Run(grade=Grade(reward=1.0)).to_dict())
        found = cell_pictures(store, run, cell.key)
    assert shown(found) == [("picture 1", "the file chart.png", RED.digest)]
