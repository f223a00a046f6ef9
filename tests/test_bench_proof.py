"""``python -m bench.proof``: what it says of material, on clones made here of the same shape."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from bench.proof import suites
from bench.proof.__main__ import PROOFS, load, main

from tests.written_files import committed

_PAGE = Path(__file__).parents[1] / "docs" / "proof.md"
_NO_NUMBER = {"description": "a number", "schema": {"type": "integer"}}


def _clone(place: Path, files: Mapping[str, object]) -> str:
    for name, content in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        (place / name).write_text(text, "utf-8")
    return str(place)


class Proofs:
    """The command, on material that is made here, and what it says.

    The page says so many agree as are given, as if it were of this material.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], place: Path
    ) -> None:
        self.patch, self._capsys, self.place = monkeypatch, capsys, place
        self.error = ""

    def of(
        self,
        name: str,
        files: Mapping[str, object] | None = None,
        says: tuple[int, int] = (0, 0),
        status: int = 0,
    ) -> str:
        """What a proof says of files, and in `error` what it complains of."""
        if says != (0, 0):
            self.patch.setattr(load(name), "AGREE", says[0])
            self.patch.setattr(load(name), "OF", says[1])
        clone = _clone(self.place, files or {})
        assert main([name] if files is None else [name, clone]) == status
        said = self._capsys.readouterr()
        self.error = said.err
        return said.out


@pytest.fixture
def proofs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Proofs:
    return Proofs(monkeypatch, capsys, tmp_path)


def _is_at(monkeypatch: pytest.MonkeyPatch, name: str, commit: str) -> None:
    source = load(name).SOURCE
    monkeypatch.setattr(load(name), "SOURCE", replace(source, commit=commit))


def _schema_test(*, valid: bool) -> dict[str, object]:
    test = {**_NO_NUMBER, "tests": [{"description": "a", "data": "x", "valid": valid}]}
    return {"tests/draft7/type.json": [test]}


def test_material_that_agrees_proves_and_a_clone_at_another_commit_nothing(proofs: Proofs) -> None:
    said = proofs.of("json_schema", _schema_test(valid=False), says=(1, 1))
    assert said.startswith("json_schema: 1 of 1; differences: none")
    committed(proofs.place)
    proofs.of("json_schema", _schema_test(valid=False), says=(1, 1), status=1)
    assert f"git -C {proofs.place} checkout 44401e0c0467" in proofs.error


def test_a_difference_fails_without_a_known_reason_and_where_the_page_says_more(
    proofs: Proofs,
) -> None:
    said = proofs.of("json_schema", _schema_test(valid=True), says=(0, 1), status=1)
    assert "| 1 | unexplained | valid expected, invalid | `draft7/type/a number/a` |" in said
    twice = {"test_parsing/y_object_duplicated_key.json": '{"a": 1, "a": 2}'}
    said = proofs.of("json_parsing", twice, says=(1, 1), status=1)
    assert "0 of 1; differences: 1 by design" in said
    assert "docs/proof.md has 1 of 1, and here are 0 of 1." in proofs.error
    more = {"test_parsing/n_array_comma.json": "[1,]", "test_parsing/i_any.json": "whatever"}
    assert "1 of 2; differences: 1 by design" in proofs.of("json_parsing", more, says=(1, 2))


def test_another_directory_proves_nothing(
    proofs: Proofs, capsys: pytest.CaptureFixture[str]
) -> None:
    proofs.of("json_schema", {}, status=1)
    assert "has no case. Is it a clone of json-schema-org/" in proofs.error
    assert main(["json_schema", str(proofs.place / "gone")]) == 2
    assert "git clone https://github.com/json-schema-org/" in capsys.readouterr().err


_TRAJECTORIES = """
import json
import pytest
from agentevals.trajectory.match import create_trajectory_match_evaluator as evaluator


def said(**args):
    call = {"name": "find", "arguments": json.dumps(args)}
    return [{"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": call}]}]


@pytest.mark.parametrize("mode, city", [("exact", "Paris"), ("ignore", "Rome"), ("exact", "Rome")])
def test_is_a_match(mode, city):
    match = evaluator(tool_args_match_mode=mode)
    assert match(outputs=said(city=city), reference_outputs=said(city="Paris"))["score"]


def test_left_out():
    pytest.skip("not here")


def test_by_a_function():
    match = evaluator(tool_args_match_overrides={"find": lambda one, other: True})
    assert match(outputs=said(city="Rome"), reference_outputs=said(city="Paris"))["score"]
"""


def test_tests_of_others_are_run_with_assay_in_place_of_what_they_test(proofs: Proofs) -> None:
    files = {"python/tests/test_trajectory.py": _TRAJECTORIES}
    said = proofs.of("agentevals", files, status=1)
    assert "agentevals: 2 of 5; differences: 1 by design, 2 unexplained" in said
    assert "`test_trajectory:test_is_a_match:2`" in said
    assert not {"agentevals", "test_trajectory"} & sys.modules.keys()


def test_gold_calls_pass_and_each_thing_made_wrong_in_them_fails(proofs: Proofs) -> None:
    box = [{"width": [2, 3], "unit": ["m", ""]}]
    asked = {"a": [1, 1.5], "b": ["x", ""], "on": [True], "of": [["c"]], "box": box}
    truth: list[object] = [{"draw": asked}, {"rest": {}}]
    file = "bfcl_eval/data/possible_answer/BFCL_v4_parallel.json"
    said = proofs.of("bfcl", {file: {"id": "parallel_0", "ground_truth": truth}}, says=(46, 46))
    # A right answer, 6 other right ones, 16 wrong ones; each is graded twice.
    assert "bfcl: 46 of 46; differences: none" in said
    assert "pip download --no-deps bfcl-eval==" in proofs.of("bfcl")


_ROUGE = """
from absl.testing import parameterized
from rouge import rouge_scorer
from rouge import test_util

class ScorerTest(parameterized.TestCase):
    def setUp(self):
        with open(test_util.TARGETS_FILE) as file:
            self.target = file.read()

    @parameterized.parameters(["rouge1", "rouge2", "rougeLsum"])
    def testFMeasure(self, kind):
        result = rouge_scorer.RougeScorer([kind]).score(self.target, "a c")
        self.assertAlmostEqual(4 / 5, result[kind].fmeasure)
        self.assertAlmostEqual(1, result[kind].precision)

    def testInside(self):
        self.assertEqual([], rouge_scorer._union([]))
"""


def test_classes_of_tests_are_set_up_for_each(proofs: Proofs) -> None:
    files = {"rouge/rouge_scorer_test.py": _ROUGE, "rouge/testdata/target.txt": "a b c"}
    said = proofs.of("rouge", files, status=1)
    assert "rouge: 1 of 4; differences: 1 assay, 1 cannot be asked, 1 unexplained" in said
    assert "`rouge_scorer_test:testFMeasure:1`" in said
    assert "sparse-checkout set rouge" in proofs.of("rouge")


_ASSERTIONS = """
import { runAssertion } from '../../src/assertions';
import * as fs from 'fs';
import type { Assertion } from '../../src/types';

const run = (type: string, output: unknown, value?: unknown) => {
  const assertion = { type, value } as Assertion;
  const test = { vars: { city: 'Rome' } };
  return runAssertion({ assertion, test, providerResponse: { output } });
};

describe('assertions', () => {
  it.each([['equals', 'Rome'], ['icontains', 'ROME!']])('pass', async (type, output) => {
    expect(await run(type, output, '{{city}}')).toMatchObject({ pass: true });
  });
  it('fail', async () => {
    const result = await run('is-json', { a: 1 }, { required: ['b'] });
    expect(result.pass).toBe(false);
    expect(result.pass).toBe(true);
  });
  it('throw', async () => {
    await expect(run('latency', 'a')).rejects.toThrow();
  });
  it('read a file', async () => {
    jest.mocked(fs.readFileSync).mockReturnValue('Rome');
    expect(await run('equals', 'Rome', 'file://rome.txt')).toMatchObject({ pass: true });
  });
});
"""


def test_assertions_of_others_are_imported_and_graded(proofs: Proofs) -> None:
    said = proofs.of("promptfoo", {"test/assertions/runAssertion.test.ts": _ASSERTIONS}, status=1)
    assert "promptfoo: 4 of 6; differences: 1 by design, 1 unexplained" in said
    assert "`runAssertion:assertions/fail#2`" in said


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_solution_that_fails_its_own_tests_is_seen(proofs: Proofs) -> None:
    files: dict[str, object] = {}
    for name, right in (("double", "2 * n"), ("triple", "n")):
        place = f"exercises/practice/{name}"
        told = {"solution": [f"{name}.py"], "test": [f"{name}_test.py"]}
        files |= {
            f"{place}/.meta/config.json": {"files": {**told, "example": [".meta/example.py"]}},
            f"{place}/.meta/example.py": f"def of(n):\n    return {right}\n",
            f"{place}/{name}.py": "def of(n):\n    pass\n",
            f"{place}/{name}_test.py": f"from {name} import of\n\n\ndef test_it():\n"
            f"    assert of(2) == {4 if name == 'double' else 6}\n",
        }
    said = proofs.of("exercism_python", files, status=1)
    assert "`triple/reference reference`" in said
    assert "`double/" not in said


@pytest.mark.slow
def test_hud_tests_of_a_version_run_on_the_graders_here(proofs: Proofs) -> None:
    file = "hud/tests/test_graders.py"
    test = """
from hud.graders import contains_any, exact_match

class TestContainsAny:
    def test_found(self):
        assert contains_any("In Rome.", ["Rome"]) == 1.0

    def test_empty_list(self):
        assert contains_any("In Rome.", []) == 0.0

async def test_patched(monkeypatch):
    monkeypatch.setattr("hud.utils.gateway.client", None)
"""
    _clone(proofs.place, {file: test})
    commit = committed(proofs.place)
    _is_at(proofs.patch, "hud_graders", commit)
    versions = {"0.6.8": (commit, (file, "gone.py"))}
    proofs.patch.setattr(load("hud_graders"), "_VERSIONS", versions)
    said = proofs.of("hud_graders", {}, says=(1, 3))
    assert "hud_graders: 1 of 3; differences: 1 by design, 1 cannot be asked" in said
    assert "`0.6.8/TestContainsAny::test_empty_list`" in said


def test_an_exercise_whose_tests_are_not_steady_is_not_left_out() -> None:
    steady = {"name": "repeats on no-op", "verdict": "held", "said": "once", "reward": None}
    unsteady = {**steady, "name": "repeats on reference", "verdict": "failed", "said": "differs"}
    told = {"cases": [{"case": "a", "checks": [steady, unsteady], "isolation": []}]}
    assert [(one.id, one.agrees) for one in suites.cases_of(told)] == [
        ("a/repeats on reference", False)
    ]


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_repaired_bug_is_told_by_the_tests_that_came_with_the_repair(proofs: Proofs) -> None:
    module, tests = "boltons/kit.py", "tests/test_kit.py"
    old = "import boltons.kit\n\ndef test_old():\n    assert False\n"
    new = "class TestKit:\n    def test_new(self):\n        assert boltons.kit.of(2) == 4\n"
    bug = {module: "def of(n):\n    return n\n", "boltons/__init__.py": "", tests: old}
    _clone(proofs.place, bug)
    committed(proofs.place)
    mended = {module: "def of(n):\n    return 2 * n\n", tests: f"{old}\n{new}"}
    _clone(proofs.place, mended)
    fix = committed(proofs.place)
    _is_at(proofs.patch, "bug_fixes", fix)
    proofs.patch.setattr(load("bug_fixes"), "_FIXES", (fix, "0" * 40))
    assert "bug_fixes: 6 of 6; differences: none" in proofs.of("bug_fixes", {}, says=(6, 6))


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_long_proof_goes_on_where_it_was_interrupted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load("quixbugs"), "AGREE", 6)
    monkeypatch.setattr(load("quixbugs"), "OF", 6)
    test = "from python_programs.gcd import of\n\n"
    files = {
        "python_programs/gcd.py": "def of(n):\n    return n\n",
        "correct_python_programs/gcd.py": "def of(n):\n    return 2 * n\n",
        "python_testcases/test_gcd.py": f"{test}\ndef test_it():\n    assert of(2) == 4\n",
        "conftest.py": "",
    }
    clone = _clone(tmp_path / "clone", files)
    monkeypatch.setattr(suites, "_KEPT", tmp_path / "kept")
    with monkeypatch.context() as interrupted:
        interrupted.setattr(shutil, "rmtree", sys.exit)
        with pytest.raises(SystemExit):
            main(["quixbugs", clone])
    capfd.readouterr()
    assert main(["quixbugs", clone]) == 0
    said = capfd.readouterr()
    assert "quixbugs: 6 of 6; differences: none" in said.out
    assert "1 case from " in said.err
    assert not any((tmp_path / "kept").iterdir())


def test_exercises_that_need_what_is_not_here_are_named(proofs: Proofs) -> None:
    needs_crates = '[package]\nname = "dice"\n\n[dependencies]\nrand = "0.8"\n'
    files = {
        "rust/exercises/practice/dice/Cargo.toml": needs_crates,
        "go/exercises/practice/maze/.meta/.skip_tests": "",
        "cpp/exercises/practice/day/CMakeLists.txt": "find_package(Boost)",
        "javascript/exercises/practice/grep/grep.js": "",
    }
    proofs.of("polyglot", files, status=1)
    for name in ("dice", "maze", "day", "grep"):
        assert f": 1 ({name})" in proofs.error


def test_the_page_has_every_proof_with_its_commit() -> None:
    page = _PAGE.read_text("utf-8")
    for name in PROOFS:
        source = load(name).SOURCE
        assert f"`{name}`" in page
        assert source.commit[:7] in page
        assert source.licence in page
