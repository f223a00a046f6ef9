"""`assay selftest`: what it proves of cases, and what it finds wrong with them.

At the level of whole cases, in the real sandbox: what matters is what an author is told.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import tempfile
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from assay.errors import InputError
from assay.eval.proofs.isolation import reference_of
from assay.eval.proofs.kept import KeptProofs
from assay.eval.proofs.proof import CaseProof, Proof, ProofCheck, Verdict
from assay.eval.proofs.selftest import plan_selftest
from assay.eval.proofs.stuffing import example_of
from assay.eval.proofs.weights import left_open
from assay.reports.proofs import selftest_line
from assay.store.records import CellRecord
from assay.tasks.case import load_case
from assay.tasks.task import case_task
from assay.text.pattern import compile_pattern
from tests.cases_to_prove import ANSWER, CHANCY, played, write, write_set
from tests.children import Children, until
from tests.command_line import COMMAND, assay, environment, result
from tests.each import each

_REPAIR = Path(__file__).parents[2] / "examples" / "repair" / "parse-number-base"
_STAND_IN = Path(__file__).parents[1] / "standins" / "parse.py"


def prove(root: Path, *, repeats: int | None = None, rows: list[CellRecord] | None = None) -> Proof:
    plan = plan_selftest([case_task(load_case(str(root)))], repeats=repeats)
    proof, seen = played(plan, root)
    if rows is not None:
        rows += seen
    return proof


def checks(proof: Proof) -> dict[str, ProofCheck]:
    return {check.name: check for check in proof.cases[0].checks}


def failed(proof: Proof) -> list[str]:
    return [check.name for check in proof.cases[0].checks if check.verdict != "held"]


def test_a_sound_case_is_proven(tmp_path: Path) -> None:
    recordings = {"recordings/reference/answer.txt": "42", "recordings/wrong/answer.txt": "41"}
    rows: list[CellRecord] = []
    proof = prove(write(tmp_path, ANSWER, recordings), rows=rows)
    assert (proof.code, failed(proof)) == (0, [])
    assert list(checks(proof)) == [
        "reference reference",
        *("floor no-op", "floor emptied", "floor echo", "floor keywords"),
        "bad wrong",
        *("repeats on reference", "repeats on no-op"),
    ]
    assert all(row.passed for row in rows), "progress counts what came out as it has to"
    for name in ("reference", "honest", "fix", "solution", "gold"):
        root = write(tmp_path / name, ANSWER, {f"recordings/{name}/answer.txt": "42"})
        assert reference_of(load_case(str(root))) == name


def test_a_reference_below_full_names_the_grader(tmp_path: Path) -> None:
    text = ANSWER + "      - {type: contains, name: polite, substring: please, weight: 0.1}\n"
    text += "    expect: {pass_threshold: 0.5}\n"
    proof = prove(write(tmp_path, text, {"recordings/reference/answer.txt": "42"}))
    said = checks(proof)["reference reference"]
    assert (said.verdict, said.reward) == ("failed", pytest.approx(1 / 1.1))
    assert "polite" in said.said


@pytest.mark.parametrize(
    ("graders", "floor"),
    [
        ('- {type: files, patterns: ["the number only"]}', "floor echo"),
        ('- {type: files, patterns: ["max_retries\\\\s*=\\\\s*\\\\d+"]}', "floor keywords"),
        ("- {type: command, cmd: 'true'}", "floor no-op"),
        ("- {type: command, cmd: 'test -f done.txt'}", "floor emptied"),
    ],
)
@pytest.mark.sandbox
def test_a_floor_that_passes_fails_the_proof(tmp_path: Path, graders: str, floor: str) -> None:
    text = ANSWER.replace("- {type: exact_match}", graders)
    recording = {
        "recordings/fix/files/done.txt": "the number only\nmax_retries = 3\n",
        "recordings/fix/answer.txt": "42",
    }
    proof = prove(write(tmp_path, text, recording))
    assert proof.code == 1
    assert floor in failed(proof)
    assert checks(proof)[floor].reward == 1.0
    assert any(floor.removeprefix("floor ") in sentence for sentence in proof.cases[0].open)


def test_a_grader_that_disagrees_with_itself_is_named(tmp_path: Path) -> None:
    text = ANSWER + "      - {type: 'python:./own.py:Chancy', weight: 0.0}\n"
    root = write(tmp_path, text, {"own.py": CHANCY, "recordings/fix/answer.txt": "42"})
    proof = prove(root)
    assert "repeats on reference" in failed(proof)
    assert "chancy: " in checks(proof)["repeats on reference"].said
    assert "exact_match" not in checks(proof)["repeats on reference"].said


_BAD = """
    id: bad
    task: {{prompt: "Write a.txt and b.txt."}}
    matrix: {{harnesses: [replay], models: [fix]}}
    graders:
      - {{type: files, name: first, patterns: ["alpha"]}}
      - {{type: files, name: second, patterns: ["beta"]}}
      - {{type: 'python:./own.py:Watchful', name: watchful}}
    selftest:
      reference: fix
      repeats: 1
      bad: {{half: "{reason}"}}
"""
_WATCHFUL = """
    from assay.graders import Grader, SubScore

    class Watchful(Grader):
        name = "watchful"

        @classmethod
        async def compute_score(cls, answer: str = "") -> SubScore:
            flags = ["forged report"] if "trust me" in answer else []
            return SubScore(name="watchful", value=0.0 if flags else 1.0, flags=flags)
"""


@pytest.mark.parametrize(
    ("reason", "verdict", "said"),
    [
        ("second: nothing was written", "held", "second"),
        ("caught as a forged report", "held", "second"),
        ("the Second and watchful graders", "held", ""),
        ("first finds nothing", "failed", "first, named as the reason, gave full marks"),
        ("it is just bad", "failed", "names no grader"),
        ("secondly", "failed", "names no grader"),
    ],
)
def test_known_bad_work_fails_for_the_named_reason(
    tmp_path: Path, reason: str, verdict: str, said: str
) -> None:
    files = {
        "own.py": _WATCHFUL,
        "recordings/fix/files/a.txt": "alpha beta",
        "recordings/half/files/a.txt": "alpha",
        "recordings/half/answer.txt": "trust me",
    }
    check = checks(prove(write(tmp_path, _BAD.format(reason=reason), files)))["bad half"]
    assert check.verdict == verdict, check
    assert said in check.said


@each(
    ("block", "said"),
    [
        ("{reference: fxi}", "did you mean 'fix'"),
        ("{bad: {fxi: x}}", "did you mean 'fix'"),
        ("{reference: fix, bad: {fix: x}}", "both its reference and known bad"),
    ],
)
def test_recordings_that_are_not_there_are_bad_input(tmp_path: Path, block: str, said: str) -> None:
    text = ANSWER + f"    selftest: {block}\n"
    root = write(tmp_path, text, {"recordings/fix/answer.txt": "42"})
    with pytest.raises(InputError, match=said):
        plan_selftest([case_task(load_case(str(root)))])


@pytest.mark.sandbox
def test_a_case_that_cannot_begin_and_a_floor_that_cannot_be_graded_have_no_verdict(
    tmp_path: Path,
) -> None:
    text = ANSWER + "    setup: {run: ['exit 3']}\n"
    proof = prove(write(tmp_path / "begin", text, {"recordings/fix/answer.txt": "42"}))
    assert (proof.code, failed(proof)) == (3, ["begin"])
    assert "exit 3" in checks(proof)["begin"].said
    own = """
        from assay.graders import Grader

        class Fragile(Grader):
            name = "fragile"

            @classmethod
            async def compute_score(cls, answer: str = "") -> float:
                return 1.0 / len(answer)
    """
    text = ANSWER + "      - {type: 'python:./own.py:Fragile', weight: 0.0}\n"
    files = {"own.py": own, "recordings/fix/answer.txt": "42"}
    proof = prove(write(tmp_path / "floor", text, files))
    assert proof.code == 3
    broken = checks(proof)["floor no-op"]
    assert broken.verdict == "error"
    assert "where a model or a program was missing, give it and prove again" in broken.fix
    assert checks(proof)["floor echo"].verdict == "held"


_OPEN = """
    id: open
    task: {{prompt: p}}
    matrix: {{harnesses: [echo], models: [m]}}
    expect: {{pass_threshold: {threshold}}}
    graders: [{graders}]
"""
_EXACT = "{type: exact_match, expected: x}"
_EFFICIENT = "{type: efficiency, target_tokens: 9"


OPEN = [
    (f"{_EXACT}, {{type: numeric_match, expected: 1, weight: 0.5}}", 1),  # is sound
    (f"{_EXACT}, {_EFFICIENT}, weight: 3}}", 1),
    (f"{_EXACT}, {_EFFICIENT}}}", 0.5),
    (f"{_EFFICIENT}}}", 1),
    (f"{_EXACT}, {{type: contains, substring: y, weight: 1.5}}", 0.4),
    (_EXACT, 0),
    ("{type: command, cmd: 'true'}", 1),
    ("{type: files, patterns: [x]}", 1),
    ("{type: files, patterns: [x], files: ['*.py']}", 1),
    ("{type: tests, cmd: make}", 1),
    ("{type: tests, cmd: make, format: tap}", 1),
    ("{type: swebench, fail_to_pass: [x]}", 1),
]


def test_what_the_weights_leave_open_is_said(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    said: dict[str, list[str]] = {}
    for graders, threshold in OPEN:
        root = write(tmp_path, _OPEN.format(graders=graders, threshold=threshold))
        said[f"{graders} from {threshold} up"] = list(left_open(load_case(str(root)), {}))
    assert said == snapshot


def test_known_bad_work_that_passes_and_a_gate_that_never_closes_are_told(tmp_path: Path) -> None:
    text = ANSWER + "      - {type: regex_match, pattern: '(?s).*', gate: true, name: wide}\n"
    files = {"recordings/fix/answer.txt": "42", "recordings/cheat-2/answer.txt": "42"}
    proof = prove(write(tmp_path, text, files))
    assert failed(proof) == ["bad cheat-2"]
    assert any("gate wide was open" in sentence for sentence in proof.cases[0].open)


@each(
    ("pattern", "text"),
    [
        ("retry", "retry"),
        (r"max_retries\s*=\s*\d+", "max_retries=1"),
        (r"(?i)def (?:fetch|get)_all\(", "def fetch_all("),
        (r"[a-f]{3}[^x]\.", "aaa ."),
        (r"a|b", "a"),
    ],
)
def test_a_stuffer_finds_what_a_pattern_looks_for(pattern: str, text: str) -> None:
    assert example_of(pattern) == text


@given(st.text(alphabet=r"ab1\.*+?()[]{}|^$-dws2,", min_size=1, max_size=20))
def test_what_a_stuffer_finds_always_matches(pattern: str) -> None:
    found = example_of(pattern)
    if found:
        assert compile_pattern(pattern).search(found) is not None


def test_nothing_is_kept_and_the_json_report_is_one_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "tmp"
    own.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(own))
    root = write(tmp_path / "case", ANSWER, {"recordings/fix/answer.txt": "42"})
    words = ("--case", "sum", "--repeats", "1", "--workers", "2", "--json")
    done = assay("selftest", str(root), *words, cwd=tmp_path)
    assert (done.returncode, list(own.iterdir())) == (0, [])
    assert {path.name for path in (tmp_path / ".assay").glob("*")} <= {"cache", "at-work.lock"}
    data = result(done)
    assert data["proven"] is True
    case = data["cases"][0]
    assert (case["case"], case["verdict"], case["open"]) == ("sum", "held", [])


def test_the_report_tells_every_check_and_the_fix(tmp_path: Path) -> None:
    root = write(tmp_path, ANSWER, {"recordings/partial/answer.txt": "42"})
    done = assay("selftest", str(root), "--workers", "2", cwd=tmp_path)
    assert done.returncode == 1
    told = ("no reference recording", "fix reference: record", "recordings/reference")
    for words in (*told, "✗ bad partial", "FAIL"):
        assert words in done.stdout
    unknown = assay("selftest", str(root), "--case", "summ", cwd=tmp_path)
    assert (unknown.returncode, "did you mean 'sum'" in unknown.stderr) == (2, True)


def test_of_a_set_the_causes_are_told_and_no_bad_case_hides_the_others(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    write_set(tmp_path / "evals")
    done = assay("selftest", "evals", "--json", cwd=tmp_path)
    found = result(done)
    assert (done.returncode, found["proven"]) == (1, False)
    assert len(found["cases"]) == 19
    assert found["causes"] == {
        "right work fails": ["gold"],
        "has no reference": ["unsolved"],
        "is graded differently each time": ["unsteady"],
        "doing nothing passes": ["easy"],
        "work that deserves nothing passes": ["easy"],
        "cannot be loaded": ["lost", "torn"],
        "cannot be built": ["gone"],
    }
    shown = assay("selftest", "evals", cwd=tmp_path).stdout
    assert "sound" not in shown, "of a set what is proven is not shown"
    steady = re.sub(r"chancy: [\d., ]+", "chancy: SCORES ", shown)  # which is as it happens
    assert [" ".join(line.split()) for line in steady.splitlines()] == snapshot


def test_the_only_case_that_is_wrong_is_bad_input(tmp_path: Path) -> None:
    write_set(tmp_path / "evals", sound=1)
    for name in ("torn", "lost"):
        for words in (("evals", "--case", name), (f"evals/{name}",)):
            assert assay("selftest", *words, cwd=tmp_path).returncode == 2, words


def test_what_a_file_of_proofs_keeps_is_not_tried_again_until_the_case_changes(
    tmp_path: Path,
) -> None:
    root = write_set(tmp_path / "evals", sound=4)
    words = ("selftest", "evals", "--out", "proofs.jsonl", "--json")
    first = assay(*words, cwd=tmp_path)
    assert "from proofs.jsonl" not in first.stderr
    again = assay(*words, cwd=tmp_path)
    assert "8 cases from proofs.jsonl" in again.stderr, "what could not be tried is tried again"
    assert (again.returncode, result(again)["causes"]) == (1, result(first)["causes"])

    def before(*more: str) -> int:
        said = assay(*words, *more, cwd=tmp_path).stderr
        return int(said.partition(" case")[0].split()[-1]) if "from proofs" in said else 0

    (root / "sound-1/recordings/reference/answer.txt").write_text("41")
    assert before() == 7
    assert before() == 8
    assert before("--case", "sound-2") == 1
    assert before("--repeats", "2") == 0
    (root / "sound-3/case.lock.json").write_text("{}")
    assert before() == 7, "a lock file decides how the tests of a case are isolated"


def test_a_torn_line_of_a_file_of_proofs_is_dropped_and_another_file_is_left_alone(
    tmp_path: Path,
) -> None:
    write_set(tmp_path / "evals", sound=3)
    words = ("selftest", "evals", "--case", "sound-1", "--case", "sound-2", "--out")
    assert assay(*words, "proofs.jsonl", cwd=tmp_path).returncode == 0
    file = tmp_path / "proofs.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    assert "1 case from" in assay(*words, "proofs.jsonl", cwd=tmp_path).stderr
    keys = [
        [json.loads(line)["key"] for line in text.splitlines()]
        for text in (whole, file.read_bytes())
    ]
    assert sorted(keys[0]) == sorted(keys[1])
    for name, text in (("rows.jsonl", '{"a": 1}\n'), ("notes.txt", "mine"), ("b.txt", "a\nb\n")):
        (tmp_path / name).write_text(text)
        done = assay(*words, name, cwd=tmp_path)
        assert (done.returncode, name in done.stderr) == (2, True), done.stderr
        assert (tmp_path / name).read_text() == text
    done = assay(*words, "evals/sound-1/proofs.jsonl", cwd=tmp_path)
    assert (done.returncode, "lies in the case 'sound-1'" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("grader", "is_kept"),
    [
        ("{type: exact_match}", True),
        ("{type: binary_judge, criteria: It is right., model: 'openai:x'}", False),
    ],
)
def test_what_a_model_judged_is_tried_again(tmp_path: Path, grader: str, *, is_kept: bool) -> None:
    """Another model may answer the next time, and no digest of the case tells."""
    root = write(tmp_path / "sum", ANSWER.replace("{type: exact_match}", grader))
    tasks = [case_task(load_case(str(root)))]
    held = ProofCheck(name="reference fix", verdict="held")
    file = str(tmp_path / "proofs.jsonl")
    with KeptProofs.opened(file, tasks, None) as proofs:
        proofs.add(CaseProof(case="sum", file=str(root), threshold=1.0, checks=(held,)))
    with KeptProofs.opened(file, tasks, None) as proofs:
        assert bool(proofs.before) is is_kept


@pytest.mark.slow
def test_a_self_test_that_was_killed_goes_on(tmp_path: Path) -> None:
    root = write_set(tmp_path / "evals")
    for name in ("easy", "gold", "gone", "lost", "torn", "unsolved", "unsteady"):
        shutil.rmtree(root / name)
    file = tmp_path / "proofs.jsonl"
    words = ("selftest", "evals", "--out", "proofs.jsonl", "--workers", "1", "--json")
    with Children() as children:
        # What is killed cannot remove its directory, and who has swept once sweeps no more.
        env = environment(tmp_path) | {"TMPDIR": str(tmp_path)}
        started = children.start([*COMMAND, *words], cwd=tmp_path, env=env)
        until(lambda: file.exists() and file.read_bytes().count(b"\n") >= 2)
        os.kill(started.pid, signal.SIGSTOP)
        other = assay(*words, cwd=tmp_path)
        assert (other.returncode, "another self-test is writing it" in other.stderr) == (2, True)
        os.kill(started.pid, signal.SIGKILL)
        started.wait()
    kept = file.read_bytes().count(b"\n")
    done = assay(*words, cwd=tmp_path)
    assert (done.returncode, result(done)["proven"]) == (0, True), done.stderr
    assert f"{kept} cases from proofs.jsonl" in done.stderr
    lines = file.read_text().splitlines()
    assert sorted({json.loads(line)["proof"]["case"] for line in lines}) == sorted(
        f"sound-{number}" for number in range(12)
    )
    assert len(lines) == 12


def test_the_worst_case_decides_the_exit_status() -> None:
    def case(*verdicts: str) -> CaseProof:
        found = tuple(
            ProofCheck(name=f"reference {v}", verdict=cast("Verdict", v)) for v in verdicts
        )
        return CaseProof(case="c", file="", threshold=1.0, checks=found)

    floor = ProofCheck(name="floor", verdict="held")
    untried = CaseProof(case="c", file="", threshold=1.0, checks=(floor,))
    assert Proof((case("held"), case("skipped"), untried)).code == 0
    unproven = Proof((untried, case("skipped")))
    assert unproven.code == 3
    assert selftest_line(unproven) == "NO VERDICT: no right work was tried: c (1 skipped)"
    assert Proof((case("skipped"),)).code == 3
    assert Proof((case("held", "error"),)).code == 3
    assert Proof((case("error"), case("held", "failed"))).code == 1


@pytest.mark.slow
@pytest.mark.sandbox
def test_the_repair_example_is_proven(tmp_path: Path) -> None:
    root = tmp_path / "repair"
    shutil.copytree(_REPAIR, root)
    text = (root / "case.yaml").read_text("utf-8")
    begin, end = text.index("source:"), text.index("environment:")
    (root / "case.yaml").write_text(f"{text[:begin]}source: {{path: source}}\n\n{text[end:]}")
    (root / "source").mkdir()
    shutil.copy(_STAND_IN, root / "source" / "parse.py")
    proof = prove(root, repeats=2)
    assert (proof.code, failed(proof)) == (0, []), proof
    assert {"bad cheat", "bad partial"} < set(checks(proof))
