"""The JSON report: exactly one valid object, whatever the cells hold, written as they come."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from assay.errors import InputError
from assay.reports.explain import tidy
from assay.reports.json_report import cells_json
from assay.reports.summary import summarize
from assay.scoring.results import SubScore
from assay.store.records import CellRecord, RunRecord
from tests.each import each
from tests.reports.made import RUN, cell
from tests.wrong_input import nested


def written(*cells: CellRecord, run: RunRecord = RUN, **options: Any) -> dict[str, Any]:
    """The report, read as strictly as possible."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    file = io.StringIO()
    cells_json(file, run, iter(cells), **options)
    assert file.getvalue().isascii()
    report = json.loads(file.getvalue(), parse_constant=refuse)
    json.dumps(report, ensure_ascii=False).encode()  # no lone surrogates, which JSON could spell
    return report


def test_it_holds_run_cells_and_summary(snapshot: SnapshotAssertion) -> None:
    node = SubScore("tests", 1.0)
    report = written(cell(subscores=(node.to_dict(),), flags=("odd",), seconds=2.0, tokens=5))
    assert list(report) == ["run", "cells", "changes", "matrix", "overview"]
    assert report == snapshot


def test_the_summary_is_that_of_the_same_cells_also_of_none() -> None:
    cells = [cell(), cell("b", reward=0.0, passed=False)]
    assert written()["cells"] == []
    file = io.StringIO()
    assert cells_json(file, RUN, cells) == summarize(cells, run=RUN)
    assert [each["case"] for each in json.loads(file.getvalue())["cells"]] == ["sort", "b"]


def test_labels_and_the_bar_are_passed_on() -> None:
    report = written(cell(reward=0.5, passed=False, notes={"label": False}), fail_under=0.4)
    assert report["overview"]["agreement"]["tn"] == 1
    assert report["overview"]["code"] == 0
    file = io.StringIO()
    with pytest.raises(InputError):
        cells_json(file, RUN, [cell()], fail_under=7)
    assert file.getvalue() == "", "a wrong bar is refused before anything is written"


def test_cells_are_written_one_by_one() -> None:
    file = io.StringIO()
    seen: list[int] = []

    def cells() -> Iterator[CellRecord]:
        for n in range(3):
            seen.append(file.getvalue().count('"ended"'))
            yield cell(f"c{n}")

    cells_json(file, RUN, cells)
    assert seen == [0, 1, 2]


@each("number", [nan, inf, -inf])
def test_numbers_that_json_lacks_become_null_and_a_reward_an_error(number: float) -> None:
    stored = {"name": "n", "value": number, "metadata": {"deep": [number]}}
    fields: dict[str, Any] = {"subscores": (stored,), "seconds": number, "cost_usd": number}
    (only,) = written(cell(**fields))["cells"]
    assert only["seconds"] is None
    assert only["cost_usd"] is None
    assert only["record"]["subscores"][0]["metadata"] == {"deep": [None]}
    (without,) = written(cell(reward=number))["cells"]
    assert (without["ended"], without["reward"]) == ("error", None)
    assert "not a reward" in without["why"]


@each(
    "hostile",
    [
        "\ud800",
        {"\udfff": 1},
        10**5000,  # of more digits than Python converts
        nested(5000),  # deeper than the stack
        object(),
        '"}],"summary":{}}',  # ends the object
    ],
)
def test_nothing_that_was_stored_can_break_the_object(hostile: Any) -> None:
    stored: dict[str, Any] = {"name": "n", "metadata": {"x": hostile}}
    text = hostile if isinstance(hostile, str) else ""
    report = written(cell(case=text or "a", answer=text, subscores=(stored,)))
    assert len(report["cells"]) == 1
    assert report["overview"]["totals"]["total"] == 1


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=())),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=())), inner)
    ),
)


@given(JSON)
def test_a_tidy_copy_is_json_and_tidying_it_again_changes_nothing(value: object) -> None:
    copy = tidy(value)
    text = json.dumps(copy, allow_nan=False, ensure_ascii=False).encode()
    assert json.loads(text) == copy
    assert tidy(copy) == copy
