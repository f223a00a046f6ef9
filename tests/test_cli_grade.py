"""`assay grade`: recorded answers, labels, malformed rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from assay.scoring.json_safe import Json
from tests.command_line import assay, cells, summary

_GRADERS = "- {type: numeric_match, pick: last}\n"


def write(root: Path, rows: list[dict[str, Json]], graders: str = _GRADERS) -> None:
    """Write a dataset and its graders."""
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (root / "rows.jsonl").write_text(text, "utf-8")
    (root / "graders.yaml").write_text(graders, "utf-8")


def graded(root: Path, *more: str) -> tuple[int, dict[str, dict[str, Json]], dict[str, Json]]:
    """Grade, and give the exit status, the cells by row id and the summary."""
    done = assay("grade", "rows.jsonl", "-g", "graders.yaml", "--json", *more, cwd=root)
    assert done.stdout, done.stderr
    return done.returncode, {str(c["case"]): c for c in cells(done)}, summary(done)


def test_rows_are_graded_against_what_they_expect(tmp_path: Path) -> None:
    write(
        tmp_path,
        [
            {"id": "a", "answer": "it is 42", "expected": 42},
            {"id": "b", "answer": "it is 41", "expected": 42},
            {
                "id": "c",
                "expected": 7,
                "messages": [
                    {"role": "user", "content": "3 + 4?"},
                    {"role": "assistant", "content": "7"},
                ],
            },
        ],
    )
    code, found, numbers = graded(tmp_path)
    assert code == 1
    assert {key: cell["reward"] for key, cell in found.items()} == {"a": 1.0, "b": 0.0, "c": 1.0}
    assert (numbers["graded"], numbers["skipped"], numbers["errors"]) == (3, 0, 0)


def test_a_null_answer_and_a_missing_reference_are_errors_not_zeros(tmp_path: Path) -> None:
    write(tmp_path, [{"id": "a", "answer": None, "expected": 1}, {"id": "b", "answer": "1"}])
    code, found, numbers = graded(tmp_path)
    assert code == 3
    assert [cell["status"] for cell in found.values()] == ["error", "error"]
    assert "needs 'expected'" in str(found["b"]["error"])
    assert numbers["errors"] == 2


def test_an_empty_answer_is_graded(tmp_path: Path) -> None:
    write(tmp_path, [{"id": "a", "answer": "", "expected": 1}])
    assert graded(tmp_path)[1]["a"]["reward"] == 0.0


def test_labels_give_agreement_with_intervals(tmp_path: Path) -> None:
    rows: list[dict[str, Json]] = [
        {"answer": str(n % 3), "expected": 1, "correct": n % 3 == 1 or n == 0} for n in range(12)
    ]
    write(tmp_path, rows)
    _, _, numbers = graded(tmp_path, "--label", "correct")
    agreement = cast("dict[str, Json]", numbers["agreement"])
    assert (agreement["tp"], agreement["fp"], agreement["tn"], agreement["fn"]) == (4, 0, 7, 1)
    assert cast("float", agreement["kappa"]) == pytest.approx(0.8235, abs=0.0001)
    assert "kappa" in str(agreement)


def test_out_keeps_every_row_with_its_grade(tmp_path: Path) -> None:
    write(tmp_path, [{"id": "a", "answer": "1", "expected": 1, "source": "quiz"}])
    graded(tmp_path, "--out", "graded.jsonl")
    row = json.loads((tmp_path / "graded.jsonl").read_text("utf-8"))
    assert (row["source"], row["grade"]["reward"]) == ("quiz", 1.0)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "rows.jsonl:2"),
        ('{"answer": 5}', "'answer' must be text"),
        ('{"question": "?"}', "needs 'answer' or 'messages'"),
        ('{"answer": "x", "expected": NaN}', "NaN is not"),
        ("[]", "must be a JSON object"),
    ],
)
def test_a_malformed_row_is_named_and_nothing_is_graded(
    tmp_path: Path, line: str, said: str
) -> None:
    write(tmp_path, [{"answer": "1", "expected": 1}])
    with (tmp_path / "rows.jsonl").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    done = assay("grade", "rows.jsonl", "-g", "graders.yaml", "--json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "rows.jsonl:2" in done.stderr


def test_a_mistyped_grader_option_is_refused_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, [{"answer": "1", "expected": 1}], "- {type: numeric_match, pik: last}\n")
    done = assay("grade", "rows.jsonl", "-g", "graders.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "graders.yaml:1:" in done.stderr
    assert "did you mean 'pick'?" in done.stderr


def test_extract_and_pick_work_in_yaml(tmp_path: Path) -> None:
    graders = "- {type: exact_match, extract: boxed, pick: only}\n"
    rows: list[dict[str, Json]] = [
        {"id": "one", "answer": r"so \boxed{x+1}", "expected": "x+1"},
        {"id": "many", "answer": r"\boxed{x+1} or \boxed{x-1}", "expected": "x+1"},
        {"id": "empty", "answer": r"x+1 \boxed{}", "expected": "x+1"},
    ]
    write(tmp_path, rows, graders)
    found = graded(tmp_path)[1]
    assert {key: c["reward"] for key, c in found.items()} == {"one": 1.0, "many": 0.0, "empty": 0.0}
