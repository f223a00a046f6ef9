"""`assay import openai` as a process: the table, the replay, and grading what was written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import assay, cells, result

EXAMPLES = Path(__file__).parents[2] / "examples" / "openai"
EVAL, ITEMS, JOB = (
    str(EXAMPLES / name) for name in ("eval.json", "output_items.jsonl", "rft_job.json")
)


@pytest.mark.sandbox
def test_an_eval_is_imported_replayed_and_graded(tmp_path: Path) -> None:
    done = assay("import", "openai", EVAL, ITEMS, "--out", "tickets", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")  # the judge needs you
    words = " ".join(done.stdout.split())
    for shown in (
        "Support tickets: 4 graders, 10 rows in tickets",
        "Category string_check exact",
        "Summary text_similarity approximate",
        "Tone label_model needs you",
        "Category 10 10 10 of 10 1.00",
        "Tone 10 0 0 of 0",
        "Tone: 10 not replayed: needs a judge model",
        "assay grade tickets/data.jsonl tickets/graders.yaml",
    ):
        assert shown in words
    words = ("grade", "tickets/data.jsonl", "tickets/graders.yaml", "--label", "passed", "--json")
    graded = assay(*words, cwd=tmp_path)
    rows = cells(graded)
    recorded = [
        json.loads(line) for line in (tmp_path / "tickets/data.jsonl").read_text().splitlines()
    ]
    assert len(rows) == len(recorded) == 10
    # The judge's verdict is not among the graders, and it was never the only one to fail.
    assert [row["reward"] == 1.0 for row in rows] == [row["passed"] for row in recorded]
    assert rows[2]["reward"] == 1.0
    stored = assay("graders", "create", "tk", "tickets/graders.yaml", cwd=tmp_path)
    assert (stored.returncode, stored.stderr) == (0, "")
    assert not list((tmp_path / "tickets").glob("*.py"))
    assert [row["case"] for row in rows if row["status"] == "error"] == [
        "outputitem_68f0c3e08",
        "outputitem_68f0c3e09",
    ]
    assert assay("validate", "tickets/needs-you.yaml", cwd=tmp_path).returncode == 0


def test_the_table_as_json(tmp_path: Path) -> None:
    done = assay("import", "openai", EVAL, ITEMS, "--json", "--no-replay", cwd=tmp_path)
    shown = result(done)
    assert shown["directory"] == "openai/support-tickets"
    assert "data.jsonl" in shown["files"]
    (suite,) = shown["suites"]
    assert (suite["rows"], suite["replay"]) == (10, None)
    criteria = suite["criteria"]
    assert [c["fidelity"] for c in criteria] == ["exact", "approximate", "exact", "needs you"]
    assert str(criteria[0]["origin"]).endswith("eval.json: testing_criteria[0]")


@pytest.mark.sandbox
def test_a_grader_alone_is_ready_for_rows_of_ones_own(tmp_path: Path) -> None:
    done = assay("import", "openai", JOB, cwd=tmp_path)
    assert done.returncode == 0
    assert "YOUR_ROWS.jsonl openai/graders/graders.yaml" in " ".join(done.stdout.split())
    item = {"category": "bug", "priority": "high", "summary": "It crashes."}
    answer = {"category": "bug", "priority": "urgent", "summary": "It crashes."}
    row = {"answer": json.dumps(answer), "item": item}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    graded = assay("grade", "rows.jsonl", "openai/graders/graders.yaml", "--json", cwd=tmp_path)
    assert cells(graded)[0]["reward"] == pytest.approx(0.5 + 0.3 * 0.5 + 0.2)


@pytest.mark.sandbox
def test_recorded_results_that_differ_are_listed_and_fail(tmp_path: Path) -> None:
    items = Path(ITEMS).read_text("utf-8")
    wrong = items.replace('"score": 1.0, "passed": true', '"score": 0.0, "passed": false', 1)
    (tmp_path / "items.jsonl").write_text(wrong, "utf-8")
    done = assay("import", "openai", EVAL, "items.jsonl", cwd=tmp_path)
    assert done.returncode == 1
    said = "Category: row outputitem_68f0c3e00: recorded 0 (failed), replayed 1 (passed)"
    assert said in " ".join(done.stdout.split())
