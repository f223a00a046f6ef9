"""Graders that stand alone: every block that people know from elsewhere loads unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.documents import DocumentError
from assay.tasks.grader_files import load_graders
from tests.each import each
from tests.written_files import write_files

# The forms of declaration in use elsewhere, one after the other; two are only gates.
BLOCKS: dict[str, tuple[str, list[str]]] = {
    "command": (
        '- {type: command, cmd: "pytest -q", weight: 1.0, expect_exit: 0, timeout_s: 300}',
        ["command"],
    ),
    "files": (
        (
            "- type: files\n  weight: 1.0\n  expect_dir: ./graders/expected     # a comment\n"
            '  patterns: ["retry", "backoff"]\n'
        ),
        ["files"],
    ),
    "tests": (
        (
            '- {type: pytest, weight: 4.0, inject: ["./hidden/test_x.py"]}\n'
            '- type: tests\n  weight: 4.0\n  cmd: "node --test hidden.test.js"\n'
            '  inject: ["./hidden/x.test.js"]\n'
            '- {type: tests, gate: true, cmd: "make", junit_xml: "target/TEST-*.xml"}\n'
        ),
        ["pytest", "tests", "tests"],
    ),
    "swebench": (
        (
            "- type: swebench\n  weight: 4.0\n"
            "  inject: [{src: hidden/test_x.py, dest: testing/test_x.py}]\n"
            '  fail_to_pass: ["testing/test_x.py::test_bug"]\n'
            '  pass_to_pass: ["testing/test_x.py::test_unrelated"]\n'
        ),
        ["swebench"],
    ),
    "implemented": (
        '- {type: implemented, gate: true}\n- {type: implemented, gate: true, files: ["a.py"]}\n',
        ["implemented", "implemented"],
    ),
    "model_judge": (
        (
            "- type: model_judge\n  weight: 1.0\n  rubric: ./graders/rubric.md\n"
            "  models: [judge-a, judge-b]\n  pass_threshold: 0.7\n"
        ),
        ["model_judge"],
    ),
    "trace": (
        (
            "- type: trace\n  weight: 1.0\n  require_tools: [{kind: write}]\n"
            "  require_no_denied: true\n"
        ),
        ["trace"],
    ),
    "efficiency": (
        (
            "- type: efficiency\n  weight: 2.0\n  target_cost_usd: 0.30\n  target_tokens: 2000\n"
            "  target_tool_calls: 20\n  pass_threshold: 0.8\n"
        ),
        ["efficiency"],
    ),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    names = ("graders/rubric.md", "graders/expected/a", "hidden/test_x.py", "hidden/x.test.js")
    write_files(tmp_path, dict.fromkeys(names, "x"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@each("name", BLOCKS)
def test_known_blocks_load_from_a_text_a_file_and_a_mapping(name: str, folder: Path) -> None:
    text, types = BLOCKS[name]
    file = folder / "graders.yaml"
    indented = "graders:\n" + "".join(f"  {line}\n" for line in text.splitlines())
    assert [spec.type for spec in load_graders(text)] == types
    for written in (text, indented):
        file.write_text(written)
        assert [spec.type for spec in load_graders(str(file))] == types


def test_paths_are_relative_to_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "graders.yaml").write_text("- {type: model_judge, rubric: ./graders/rubric.md}")
    monkeypatch.chdir("/")
    found = load_graders(str(folder / "graders.yaml"))[0].options["rubric"]
    assert found == str(folder / "graders" / "rubric.md")


@each(
    ("text", "expected"),
    [
        (
            "grader:\n  - {type: command, cmd: x}\n",
            "(did you write 'grader' for it?)",
        ),
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
