"""``harnesses.yaml``: agents that are commands, and where the file is looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.tasks.blocks import HarnessSpec, find_harnesses_file, load_harnesses
from assay.tasks.case import load_cases
from assay.tasks.document import DocumentError


def write(file: Path, text: str) -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return str(file)


def test_harnesses_are_read(tmp_path: Path) -> None:
    file = write(
        tmp_path / "harnesses.yaml",
        'mine:\n  argv: [agent, --model, "{model}", "{prompt}", "{{literal}}"]\n'
        "  timeout_s: 60\n  env: {A: b}\nother: {argv: [x]}\n",
    )
    assert load_harnesses(file) == {
        "mine": HarnessSpec(
            argv=("agent", "--model", "{model}", "{prompt}", "{{literal}}"),
            timeout_s=60.0,
            env={"A": "b"},
        ),
        "other": HarnessSpec(argv=("x",)),
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: {argv: []}", "argv names no program"),
        ("a: {}", "'argv' is required"),
        ("a: {argv: [x], timout_s: 3}", "did you mean 'timeout_s'?"),
        ("a: {argv: [x], timeout_s: 0}", "more than 0"),
        (
            'a: {argv: [x, "{promt}"]}',
            "a.argv[1]: {promt} stands for nothing (did",
        ),
        ('a: {argv: [x, "{prompt!r}"]}', "takes no format"),
        ('a: {argv: [x, "{prompt.__class__}"]}', "stands for nothing"),
        ('a: {argv: [x, "{prompt"]}', "write a brace twice"),
        ('a: {argv: [x, "{}"]}', "stands for nothing"),
        ("[a]", "expected a mapping"),
    ],
)
def test_a_wrong_harness_is_refused(text: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as caught:
        load_harnesses(write(tmp_path / "harnesses.yaml", text))
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("place", "given", "found"),
    [
        ("p/evals/c1", "p/evals/c1", True),
        ("p/evals", "p/evals/c1", True),
        ("p", "p/evals/c1", True),
        ("p", "p/evals", True),
        ("p", "p", True),
        (".", "p", True),
        (".", "p/evals", False),
        (".", "p/evals/c1", False),
    ],
)
def test_it_is_looked_for_no_higher_than_the_user_pointed(
    place: str, given: str, *, found: bool, tmp_path: Path
) -> None:
    case = tmp_path / "p" / "evals" / "c1"
    case.mkdir(parents=True)
    file = write(tmp_path / place / "harnesses.yaml", "a: {argv: [x]}")
    assert find_harnesses_file(str(case), str(tmp_path / given)) == (file if found else "")


def test_a_case_outside_of_evals_does_not_reach_above_its_parent(tmp_path: Path) -> None:
    """A file planted in a shared directory must not become somebody's agent."""
    case = tmp_path / "work" / "c1"
    case.mkdir(parents=True)
    write(tmp_path / "harnesses.yaml", "a: {argv: [evil]}")
    assert find_harnesses_file(str(case), str(case)) == ""


def test_a_case_knows_its_harnesses(tmp_path: Path) -> None:
    file = write(tmp_path / "harnesses.yaml", "a: {argv: [x]}")
    write(
        tmp_path / "evals" / "c1" / "case.yaml",
        "id: c1\ntask: {prompt: x}\nmatrix: {harnesses: [a], models: [m]}\n"
        "graders: [{type: command, cmd: x}]\n",
    )
    assert load_cases([str(tmp_path / "evals")])[0].harnesses_file == file
