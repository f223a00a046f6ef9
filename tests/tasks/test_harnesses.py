"""``harnesses.yaml``: agents that are commands, and where the file is looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.documents import DocumentError
from assay.errors import InputError
from assay.eval.harnesses import declared_harnesses, require_harnesses
from assay.tasks.blocks import HarnessSpec, find_harnesses_file, load_harnesses
from assay.tasks.case import load_case, load_cases
from assay.tasks.task import case_task
from tests.command_line import assay, cells
from tests.each import each
from tests.written_files import write_files


def write(file: Path, text: str) -> str:
    write_files(file.parent, {file.name: text})
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


@each(
    ("text", "expected"),
    [
        ("a: {argv: []}", "argv names no program"),
        ("a: {}", "'argv' is required"),
        ("a: {argv: [x], timout_s: 3}", "did you mean 'timeout_s'?"),
        ("a: {argv: [x], timeout_s: 0}", "more than 0"),
        ('a: {argv: [x, "{promt}"]}', "a.argv[1]: {promt} stands for nothing (did"),
        ('a: {argv: [x, "{prompt!r}"]}', "takes no format"),
        ('a: {argv: [x, "{prompt.__class__}"]}', "stands for nothing"),
        ('a: {argv: [x, "{prompt"]}', "write a brace twice"),
        ("[a]", "expected a mapping"),
        ("a: {argv: [x], mounts: [../tools]}", "a.mounts[0]: '../tools' leads out"),
        ("a: {argv: [x], pass_env: [A-B]}", "a.pass_env[0]: 'A-B' is not a valid variable name"),
        ("a: {argv: [x], env: {K: v}, pass_env: [K]}", "a.pass_env[0]: K is in env, too"),
        ("a: {argv: [x], tools_env: {K: v}}", "a.tools_env: it has no gateway"),
        (
            "a: {argv: [x], gateway: true, tools_env: {K: v}, pass_env: [K]}",
            "a.pass_env[0]: K is in tools_env, too",
        ),
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


_CASE = """\
id: c
task: {prompt: "Say hello."}
matrix: {harnesses: [mine], models: [m]}
expected: hello
graders: [{type: exact_match}]
"""
_SAY = "import os; print('hello' if os.environ.get('ASSAY_TEST_KEY') == 'k' else 'no key')\n"


def suite(root: Path, harness: str) -> Path:
    """A suite whose agent lies in it, under a directory that is not this one."""
    write(root / "agent/say.py", _SAY)
    write(root / "harnesses.yaml", f"mine: {harness}\n")
    write(root / "evals/c/case.yaml", _CASE)
    return root


@pytest.mark.sandbox
def test_a_suite_that_was_moved_still_finds_its_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_TEST_KEY", "k")
    harness = "{argv: [python3, /suite/agent/say.py], mounts: [agent], pass_env: [ASSAY_TEST_KEY]}"
    suite(tmp_path / "here", harness)
    (tmp_path / "here").rename(tmp_path / "there")
    done = assay("run", "there", "--json", cwd=tmp_path)
    assert (done.returncode, cells(done)[0]["reward"]) == (0, 1.0), done.stdout


@pytest.mark.sandbox
def test_a_variable_that_a_harness_needs_and_nobody_set_is_an_error_not_a_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASSAY_TEST_KEY", raising=False)
    suite(tmp_path, "{argv: [python3, -c, '1'], pass_env: [ASSAY_TEST_KEY]}")
    done = assay("run", ".", "--json", cwd=tmp_path)
    assert done.returncode == 3
    assert "is to be given variables that are not set: ASSAY_TEST_KEY" in done.stdout


@pytest.mark.sandbox
def test_a_traceback_of_the_agent_is_told_by_its_last_line(tmp_path: Path) -> None:
    code = "def deep(n):\n    deep(n - 1) if n else 1 / 0\ndeep(40)\n"
    suite(tmp_path, "{argv: [python3, /suite/agent/fail.py], mounts: [agent], trace: auto}")
    write(tmp_path / "agent/fail.py", code)
    done = assay("run", ".", "--json", cwd=tmp_path)
    assert done.returncode == 3
    assert "it printed nothing; the agent ended with exit status 1: ZeroDivision" in done.stdout
    assert "its case gives it no network: `limits: {network: true}`" in done.stdout


def test_an_agent_is_not_shown_the_graders_of_its_case(tmp_path: Path) -> None:
    for mount, expected in (
        (".", "holds the case 'c'"),
        ("evals", "holds the case 'c'"),
        ("agnt", "does not exist"),
    ):
        root = suite(tmp_path, f"{{argv: [x], mounts: [{mount}]}}")
        task = case_task(load_case(str(root / "evals/c")))
        declared = declared_harnesses(task.conditions)
        with pytest.raises(InputError, match=expected):
            require_harnesses(task, {"mine"}, declared)
        require_harnesses(task, {"echo"}, declared)  # nothing is shown to that one
