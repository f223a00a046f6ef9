"""Whether groups of trials would teach a trainer anything: by hand, and on the command line."""

from __future__ import annotations

import asyncio
import csv
import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from assay.client import AsyncClient, Client
from assay.errors import AssayError
from assay.eval.rows.directory_sink import PartDirectory
from assay.eval.rows.recorded import grade_rows, plan_rows
from assay.reports.html import file_report
from assay.reports.review import review
from assay.reports.summary import verdict
from assay.reports.trainability import (
    ENDS,
    Times,
    Trainability,
    trainability,
    trainability_of,
    trainability_of_parts,
)
from assay.scoring.json_safe import Json
from assay.scoring.records import as_json
from assay.store import CellRecord, RunRecord, Store
from assay.tasks.grader_files import load_graders
from assay.tasks.row_files import RowReading
from assay.tasks.rows import read_row
from tests.command_line import assay
from tests.each import each
from tests.written_files import write_rows

RUN = "20261123-040506-ab12"
GROUPS: dict[str, list[float | None]] = {
    "learns": [1.0, 0.0, 0.5, 1.0],
    "half-broken": [1.0, None, 0.0],
    "right": [1.0, 1.0],
    "wrong": [0.0, 0.0, None],
    "alike": [0.5, 0.5 + 1e-9],
    "lone": [0.7],
    "broken": [None, None],
}


def _cells() -> list[CellRecord]:
    return [
        CellRecord(
            run_id=RUN,
            case=case,
            harness="h",
            trial=trial,
            status="error" if reward is None else "graded",
            reward=reward,
            passed=None if reward is None else reward >= 1.0,
            error="it broke" if reward is None else "",
            seconds=float(trial),
            flags=("odd",) if case == "right" else (),
            subscores=({"name": "tests", "value": reward, "metadata": {"seconds": 2.0 * trial}},)
            if reward is not None
            else (),
        )
        for case, rewards in sorted(GROUPS.items())
        for trial, reward in enumerate(rewards, 1)
    ]


def _ends(seen: Trainability) -> dict[str, int]:
    return {end.name: end.groups for end in seen.ends}


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A directory whose store has the run."""
    with Store.open(str(tmp_path / ".assay")) as store:
        store.create_run(RunRecord(id=RUN, created_at="2026-11-23T04:05:06Z", planned=17))
        for cell in _cells():
            store.add_cell(cell, {})
    return tmp_path


def test_groups_come_to_what_a_trainer_would_make_of_them(snapshot: SnapshotAssertion) -> None:
    seen = trainability(_cells(), floors={"learns": 1.0, "half-broken": 0.2, "unknown": 0.0})
    assert _ends(seen) == {
        "learnable": 2, "all_right": 1, "all_wrong": 1, "all_alike": 1, "too_few": 2,
    }  # fmt: skip
    assert set(_ends(seen)) == set(ENDS)
    assert seen.learnable_share == pytest.approx(2 / 7)
    assert seen.spread == pytest.approx((0.5 + 0.41457809879) / 2)
    assert seen.seconds == Times(name="", p50=2.0, p95=4.0)
    assert (seen.unbeaten, seen.floored) == (1, 2)  # of those the floor is known of
    assert as_json(replace(seen, spread=None)) == snapshot  # and all the rest
    of_two = [cell for cell in _cells() if cell.case in ("right", "alike")]
    assert trainability(of_two).sizes == "2 groups of 2 trials", "of one size it is told once"


def test_what_counts_as_equal_is_the_callers_choice_and_a_run_of_nothing_teaches_nothing() -> None:
    seen = trainability([])
    assert (seen.groups, seen.learnable_share, seen.spread, seen.seconds) == (0, None, None, None)
    assert (seen.floored, seen.unbeaten, seen.graders) == (None, None, ())
    assert _ends(trainability(_cells(), tolerance=1e-12))["all_alike"] == 0
    assert _ends(trainability(_cells(), tolerance=1.0))["learnable"] == 0


def test_names_of_any_number_and_length_do_no_harm() -> None:
    names = [f"{number}" + "x" * 9_999 for number in range(200)]
    scores = tuple({"name": name, "value": 0.5, "metadata": {"seconds": 1}} for name in names)
    seen = trainability([replace(_cells()[0], subscores=scores)])
    assert len(seen.graders) == 50
    assert max(len(times.name) for times in seen.graders) <= 120


async def test_all_who_tell_it_tell_the_same(stored: Path) -> None:
    home = str(stored / ".assay")
    with Store.open(home) as store:
        seen = trainability_of(store, RUN, floor=RUN)
        found = review(store.run(RUN), _cells())
        filed = file_report(found, verdict(found.summary)).trainability
    assert (seen.floored, seen.unbeaten) == (6, 6)
    assert filed == trainability(_cells(), run=RUN)  # whatever order the report shows cells in
    async with AsyncClient(store=home) as client:
        assert await client.runs.trainability("latest", floor=RUN) == seen


def test_the_command_shows_it_and_fails_where_too_little_teaches(
    stored: Path, snapshot: SnapshotAssertion
) -> None:
    shown = assay("runs", "trainability", "--floor", RUN, cwd=stored)
    assert shown.returncode == 0, shown.stderr
    assert [line.rstrip() for line in shown.stdout.splitlines()] == snapshot
    told = assay("runs", "trainability", RUN, "--json", "--at-least", "0.5", cwd=stored)
    said = json.loads(told.stdout)
    assert (told.returncode, said["passed"], said["ends"][0]["groups"]) == (1, False, 2)
    enough = assay("runs", "trainability", "--at-least", "0.25", cwd=stored)
    assert enough.returncode == 0


def test_a_run_in_which_nothing_was_graded_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"answer": "4"}\n', "utf-8")
    (tmp_path / "graders.yaml").write_text("- {type: exact_match}\n", "utf-8")
    assert assay("grade", "rows.jsonl", "graders.yaml", cwd=tmp_path).returncode == 3
    told = assay("runs", "trainability", cwd=tmp_path)
    assert (told.returncode, "no cell has a reward" in told.stdout) == (3, True)
    assert "0.9" not in told.stdout  # no empty bars
    counted = assay("runs", "trainability", "--json", cwd=tmp_path)
    assert (counted.returncode, json.loads(counted.stdout)["passed"]) == (3, False)


_SAMPLES = [
    {"prompt_id": 7, "prompt": "2 + 2?", "response": "4", "target": "4"},
    {"prompt_id": 8, "prompt": "3 + 3?", "response": "6", "target": "6"},
    {"prompt_id": None, "prompt": "", "response": "5", "target": "5"},
    {"prompt_id": 7, "prompt": "2 + 2?", "response": "5", "target": "4"},
    {"prompt_id": 8, "prompt": "3 + 3?", "response": "6", "target": "6"},
    {"prompt_id": None, "prompt": "", "response": "5", "target": "6"},
    {"prompt_id": 7, "prompt": "2 + 2?", "response": None, "target": "4"},
]
_MAP = "answer=response,expected=target"


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """A directory with samples of two prompts, as JSONL and CSV, and graders."""
    lines = "".join(json.dumps(row) + "\n" for row in _SAMPLES)
    (tmp_path / "rows.jsonl").write_text(lines, "utf-8")
    with (tmp_path / "rows.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, _SAMPLES[0])
        table.writeheader()
        table.writerows(_SAMPLES)
    (tmp_path / "graders.yaml").write_text("- {type: exact_match}\n", "utf-8")
    return tmp_path


def test_rows_of_one_group_are_compared_wherever_they_stand(samples: Path) -> None:
    assay("grade", "rows.jsonl", "graders.yaml", "--map", _MAP, cwd=samples)
    without = assay("runs", "trainability", cwd=samples).stdout
    assert "Next  assay grade ... --map group=FIELD" in without
    given = f"{_MAP},group=prompt_id"
    assay("grade", "rows.jsonl", "graders.yaml", "--map", given, cwd=samples)
    shown = assay("runs", "trainability", cwd=samples)
    assert "4 groups of trials: 2 of 1 trial, 1 of 2 trials, 1 of 3 trials" in shown.stdout
    assert "no reward  1 of 7 cells, in 1 group: left out, never a 0" in shown.stdout
    told = json.loads(
        assay("runs", "trainability", "--json", "--floor", "latest", cwd=samples).stdout
    )
    ends = {end["name"]: end["groups"] for end in told["ends"] if end["groups"]}
    assert ends == {"learnable": 1, "all_right": 1, "too_few": 2}  # no group is none of its own
    assert (told["unbeaten"], told["floored"]) == (4, 4)  # each group's best is its own floor
    with Store.open(home := str(samples / ".assay")) as store:
        found = review(run := store.run("latest"), list(store.cells(run.id)))
    filed = file_report(found, verdict(found.summary)).trainability
    with Client(store=home) as client:
        assert client.runs.trainability("latest") == filed
    assert filed is not None
    assert _ends(filed) == {name: ends.get(name, 0) for name in ENDS}
    assert assay("regrade", "latest", "graders.yaml", cwd=samples).returncode == 3
    assert (
        assay("runs", "trainability", cwd=samples).stdout.splitlines()[1:]
        == (shown.stdout.splitlines()[1:])
    )


def test_a_prompt_that_is_the_question_too_or_an_id_that_stands_twice_may_be_the_group(
    samples: Path,
) -> None:
    name = "rows.csv"
    file = samples / name
    file.write_text(file.read_text("utf-8").replace("prompt_id", "id"), "utf-8")
    refused = assay("grade", name, "graders.yaml", "--map", _MAP, cwd=samples)
    assert "if rows are samples of one prompt: --map group=id" in refused.stderr
    ways = (("rows.jsonl", "question=prompt,group=prompt"), (name, "group=id"))
    for data, given in ways:
        words = ("grade", data, "graders.yaml", "--map", f"{_MAP},{given}")
        done = assay(*words, cwd=samples)
        assert "7 of 7 rows" in done.stderr
        told = json.loads(assay("runs", "trainability", "--json", cwd=samples).stdout)
        assert told["sizes"].endswith("2 of 1 trial, 1 of 2 trials, 1 of 3 trials")
        parts = assay(*words, "--out", f"{data}-parts/", cwd=samples)
        assert "7 rows" in parts.stdout, parts.stderr


@each("given", ["p" * 201, "\ud800", [{"role": "user", "content": "é"}], 0])
def test_anything_may_name_a_group(given: Json) -> None:
    rows = [read_row({"answer": answer, "group": given}) for answer in ("a", "b")]
    assert rows[0].group == rows[1].group != ""
    assert len(rows[0].group.encode()) <= 200
    assert rows[0].submission.metadata == {"group": given}
    assert rows[0].group != read_row({"answer": "a", "group": [given]}).group
    assert not read_row({"answer": "a", "group": ""}).group


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "rows.parquet"])
def test_rows_in_parts_have_the_groups_that_those_of_a_run_have(samples: Path, name: str) -> None:
    arrow: Any = import_module("pyarrow")
    import_module("pyarrow.parquet").write_table(
        arrow.Table.from_pylist(_SAMPLES), samples / "rows.parquet"
    )
    _into_parts(samples / name, "group=prompt_id")
    seen = trainability_of_parts(samples / "graded", floor=samples / "graded")
    ends = {end: groups for end, groups in _ends(seen).items() if groups}
    assert ends == {"learnable": 1, "all_right": 1, "too_few": 2}
    ungraded = 0 if name == "rows.csv" else 1  # an empty cell is an empty answer, and null is none
    assert (seen.cells, seen.ungraded, seen.seconds, seen.graders) == (7, ungraded, None, ())
    assert (seen.unbeaten, seen.floored) == (4, 4)  # each group's best is its own floor


def test_what_names_a_group_in_parts_may_be_any_json_also_inside_of_a_field(
    samples: Path,
) -> None:
    names: list[Json] = [[{"role": "user"}], "a", "", None, [{"role": "user"}], "a", True]
    rows = [{**row, "meta": {"p": one}} for row, one in zip(_SAMPLES, names, strict=True)]
    write_rows(samples / "deep.jsonl", rows)
    _into_parts(samples / "deep.jsonl", "group=meta.p")
    seen = trainability_of_parts(samples / "graded")
    assert seen.sizes == "5 groups of trials: 3 of 1 trial, 2 of 2 trials"


def _into_parts(data: Path, group: str) -> None:
    graders = load_graders(str(data.parent / "graders.yaml"), alone=True)
    reading = RowReading(mapping=dict(one.split("=") for one in f"{_MAP},{group}".split(",")))
    to = PartDirectory(str(data.parent / "graded"), rows=2)
    with plan_rows(str(data), graders, to, reading=reading) as plan:
        asyncio.run(grade_rows(plan))


def test_the_command_shows_what_parts_could_teach(samples: Path) -> None:
    _into_parts(samples / "rows.jsonl", "group=prompt_id")
    shown = assay("runs", "trainability", "graded/", "--floor", "graded", cwd=samples)
    assert "floor      4 of 4 groups never beat it" in shown.stdout, shown.stderr
    assert "a cell" not in shown.stdout  # of times, which parts have not
    told = assay("runs", "trainability", "graded", "--json", "--at-least", "0.5", cwd=samples)
    assert (told.returncode, json.loads(told.stdout)["run"]) == (1, "graded")
    wrong = assay("runs", "trainability", "graded", "--floor", "latest", cwd=samples)
    assert (wrong.returncode, "latest is no directory of parts" in wrong.stderr) == (2, True)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("manifest.json", "{}", "graded cannot be read"),
        ("manifest.json", '{"shards": [], "options": {"parts": "exe", "map": {}}}', "cannot be"),
        ("part", '{"answer": "4"}', "is damaged"),
        ("part", '{"grade": {"reward": NaN}}', "is damaged"),
        ("part", "", "graded has not the rows that summary.json tells of"),
        ("summary.json", None, "graded has 4 of 4 parts"),
        ("part", None, "graded has 3 of 4 parts"),
    ],
)
def test_attack_parts_that_others_wrote_teach_nothing(
    samples: Path, file: str, text: str | None, said: str
) -> None:
    _into_parts(samples / "rows.jsonl", "group=prompt_id")
    place = samples / "graded"
    target = min((place / "parts").iterdir()) if file == "part" else place / file
    target.unlink() if text is None else target.write_text(text)
    with pytest.raises(AssayError, match=said):
        trainability_of_parts(place)
