"""Graders that stand alone: every block that people know from elsewhere loads unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.documents import DocumentError
from assay.tasks.grader_files import load_graders
from tests.each import each
from tests.written_files import write_files

# The forms of declaration in use elsewhere, one after the other; two are only gates.
BLOCKS = """\
- {type: command, cmd: "pytest -q", weight: 1.0, expect_exit: 0, timeout_s: 300}
- type: files
  weight: 1.0
  expect_dir: ./graders/expected     # a comment
  patterns: ["retry", "backoff"]
- {type: pytest, weight: 4.0, inject: ["./hidden/test_x.py"]}
- type: tests
  weight: 4.0
  cmd: "node --test hidden.test.js"
  inject: ["./hidden/x.test.js"]
- {type: tests, gate: true, cmd: "make", junit_xml: "target/TEST-*.xml"}
- type: swebench
  weight: 4.0
  inject: [{src: hidden/test_x.py, dest: testing/test_x.py}]
  fail_to_pass: ["testing/test_x.py::test_bug"]
  pass_to_pass: ["testing/test_x.py::test_unrelated"]
- {type: implemented, gate: true}
- {type: implemented, gate: true, files: ["a.py"]}
- type: model_judge
  weight: 1.0
  rubric: ./graders/rubric.md
  models: [judge-a, judge-b]
  pass_threshold: 0.7
- type: trace
  weight: 1.0
  require_tools: [{kind: write}]
  require_no_denied: true
- type: efficiency
  weight: 2.0
  target_cost_usd: 0.30
  target_tokens: 2000
  target_tool_calls: 20
  pass_threshold: 0.8
"""
TYPES = [
    *("command", "files", "pytest", "tests", "tests", "swebench"),
    *("implemented", "implemented", "model_judge", "trace", "efficiency"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    names = ("graders/rubric.md", "graders/expected/a", "hidden/test_x.py", "hidden/x.test.js")
    write_files(tmp_path, dict.fromkeys(names, "x"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_known_blocks_load_from_a_text_a_file_and_a_mapping(folder: Path) -> None:
    file = folder / "graders.yaml"
    indented = "graders:\n" + "".join(f"  {line}\n" for line in BLOCKS.splitlines())
    assert [spec.type for spec in load_graders(BLOCKS)] == TYPES
    for written in (BLOCKS, indented):
        file.write_text(written)
        assert [spec.type for spec in load_graders(str(file))] == TYPES


def test_paths_are_relative_to_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "graders.yaml").write_text("- {type: model_judge, rubric: ./graders/rubric.md}")
    monkeypatch.chdir("/")
    found = load_graders(str(folder / "graders.yaml"))[0].options["rubric"]
    assert found == str(folder / "graders" / "rubric.md")


@each(
    ("text", "expected"),
    [
        ("grader:\n  - {type: command, cmd: x}\n", "(did you write 'grader' for it?)"),
        ("a: 1\n", "or write a list of graders"),
        ("[]", "there are no graders"),
        ("just\ntext", "expected a list of graders"),
        ("- {type: command, cmd: x, a: .nan}\n- {type: x}\n", "1:30: [0].a"),
    ],
)
def test_what_is_no_list_of_graders_is_refused(text: str, expected: str) -> None:
    with pytest.raises(DocumentError) as caught:
        load_graders(text)
    assert expected in str(caught.value)


PENALTY = "- {type: contains, substring: a, weight: -1}\n"


@pytest.mark.parametrize("text", ["- {type: contains, substring: a, gate: true}\n", PENALTY])
def test_graders_alone_have_to_add_credit(text: str) -> None:
    assert load_graders(text), "beside others they may"
    with pytest.raises(DocumentError, match="no grader adds credit"):
        load_graders(text, alone=True)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(DocumentError, match=r"graders\.yaml: cannot be read"):
        load_graders("/nowhere/graders.yaml")
