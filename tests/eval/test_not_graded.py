"""Nothing passes unjudged: what was skipped is said beside the verdict, and can be refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.tasks import DocumentError, load_case
from tests.command_line import assay, cells, summary, write_case
from tests.each import each

KEYLESS = {"ANTHROPIC_API_KEY": ""}
_ANYTHING = "gives 1 whatever is answered, even to an empty answer"

_CASE = """
    id: half-judged
    task: {{prompt: "hello"}}
    matrix: {{harnesses: [echo], models: [m]}}
    graders:
      - {{type: contains, substring: hello, weight: 0.01}}
      - {{type: model_judge, rubric: ./rubric.md, weight: 0.99}}
    {expect}
"""
SAID = "0.99 of the weight was not graded"


def suite(root: Path, expect: str = "") -> Path:
    file = write_case(root, _CASE.format(expect=expect))
    (file / "rubric.md").write_text("Is it kind?")
    return root


def test_attack_a_forgotten_key_is_said_in_the_verdict_s_own_line(tmp_path: Path) -> None:
    done = assay("run", "evals", "--junit", "out.xml", cwd=suite(tmp_path), env=KEYLESS)
    assert done.returncode == 0
    (line,) = [one for one in done.stdout.splitlines() if "PASS" in one]
    assert f"PASS, BUT {SAID} (model_judge" in line
    assert "ANTHROPIC_API_KEY" in " ".join(done.stdout.split())
    junit = (tmp_path / "out.xml").read_text()
    assert 'name="not_graded" value="0.99 of the weight: model_judge"' in junit
    shown = assay("report", "--json", cwd=tmp_path, env=KEYLESS)
    (cell,) = cells(shown)
    assert cell["passed"]
    left_out = cell["notes"]["not_graded"]
    assert (left_out["share"], list(left_out["graders"])) == (0.99, ["model_judge"])
    assert str(summary(shown)["not_graded"]).startswith("0.99 of the weight was not graded")
    strict = assay("report", "--strict", cwd=tmp_path, env=KEYLESS)
    assert strict.returncode == 3
    assert f"NO VERDICT: {SAID}" in " ".join(strict.stdout.split())


def test_a_cell_passes_only_if_enough_of_its_weight_was_graded_also_by_a_gate(
    tmp_path: Path,
) -> None:
    """How much is enough: tests/eval/test_records.py."""
    suite(tmp_path, "expect: {min_coverage: 0.5}")
    done = assay("run", "evals", "--json", cwd=tmp_path, env=KEYLESS)
    (cell,) = cells(done)
    assert (cell["reward"], cell["passed"], done.returncode) == (1.0, False, 1)
    said = " ".join(assay("report", cwd=tmp_path, env=KEYLESS).stdout.split())
    assert "0.01 of the weight was graded, and" in said
    (again,) = cells(assay("regrade", "latest", "--json", cwd=tmp_path, env=KEYLESS))
    assert (again["passed"], again["notes"]["min_coverage"]) == (False, 0.5)
    gated = _CASE.format(expect="expect: {min_coverage: 1}").replace(
        "{type: model_judge, rubric: ./rubric.md, weight: 0.99}",
        "{type: trace, gate: true, require_no_denied: true}",
    )
    write_case(tmp_path, gated)
    done = assay("run", "evals", cwd=tmp_path)
    assert done.returncode == 1
    assert "a gate or penalty was not graded (trace" in " ".join(done.stdout.split())


def test_where_all_is_graded_nothing_is_said_and_no_more_can_be_asked_for(tmp_path: Path) -> None:
    suite(tmp_path)
    text = _CASE.format(expect="expect: {min_coverage: 1.0}")
    write_case(tmp_path, "\n".join(line for line in text.splitlines() if "judge," not in line))
    done = assay("run", "evals", "--strict", cwd=tmp_path)
    assert (done.returncode, "not graded" in done.stdout) == (0, False)
    file = write_case(tmp_path, _CASE.format(expect="expect: {min_coverage: 1.5}"))
    with pytest.raises(DocumentError, match=r"min_coverage: must be between 0 and 1, got 1\.5"):
        load_case(str(file))


def test_a_gate_may_have_a_weight_and_needs_its_full_value_whatever_its_threshold(
    tmp_path: Path,
) -> None:
    text = """
        id: gated
        task: {prompt: "hello"}
        matrix: {harnesses: [echo], models: [m]}
        graders:
          - {type: contains, substring: hello}
          - {type: f1_score, reference: hello there, gate: true, weight: 2.0}
    """
    write_case(tmp_path, text)
    checked = assay("validate", "evals", cwd=tmp_path)
    assert checked.returncode == 0
    assert "its weight of 2 adds no credit" in checked.stderr
    (cell,) = cells(assay("run", "evals", "--json", cwd=tmp_path))
    assert cell["reward"] == 0.0
    assert "of 1) did not pass" in str(cell["content"])


@each(
    ("grader", "said"),
    [
        ('{type: regex_match, pattern: ".*"}', _ANYTHING),
        ("{type: similarity, reference: foo, threshold: 0}", _ANYTHING),
        ('{type: regex_match, pattern: "[0-9]+"}', ""),
        ("{type: json_schema, schema: {}}", ""),
        ("{type: numeric_match, expected: 3, tolerance: 1e300}", "whatever number is answered"),
        ('{type: files, patterns: ["def add", ".*"]}', "pattern '.*' is found in whatever"),
        ('{type: files, patterns: ["def add"]}', ""),
        ('{type: command, cmd: "true"}', "'true' exits 0 whatever the work is"),
        ('{type: command, cmd: "pytest -q || true"}', "exits 0 whatever the work is"),
        ('{type: command, cmd: "true", expect_exit: 1}', ""),
        ('{type: command, cmd: "grep -q TODO a.py && exit 1 || true"}', ""),
    ],
)
def test_a_grader_that_pays_whatever_the_work_is_is_worth_a_look(
    tmp_path: Path, grader: str, said: str
) -> None:
    (tmp_path / "g.yaml").write_text(f"- {grader}\n", "utf-8")
    checked = assay("validate", "g.yaml", cwd=tmp_path)
    assert checked.returncode == 0
    assert checked.stderr.count("warning: ") == bool(said)
    assert said in checked.stderr


def test_a_case_that_nothing_fails_is_worth_a_look(tmp_path: Path) -> None:
    text = """
        id: one
        task: {prompt: say hello}
        graders: [{type: contains, substring: hello}]
        expect: {pass_threshold: 0}
    """
    write_case(tmp_path, text)
    checked = assay("validate", "evals", cwd=tmp_path)
    assert checked.returncode == 0
    assert "pass_threshold is 0: a cell that earns nothing passes" in checked.stderr
