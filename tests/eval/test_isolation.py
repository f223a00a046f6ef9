"""How the mode of hidden tests is chosen: by the author's reference, and by nothing else.

At the level of whole commands in the real sandbox: what counts is the mode that a score was given
in, what an author is told, and that no submission has a say in it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from assay.documents import DocumentError
from assay.eval.planning import Planned
from assay.eval.proofs.isolation import (
    CaseLock,
    IsolationDecision,
    UndecidedIsolationError,
    Why,
    isolated_graders,
    oracle_digest,
    settled,
)
from assay.eval.proofs.isolation_proof import decide
from assay.eval.proofs.trials import Arena
from assay.graders.digest import grader_digest
from assay.graders.testing.contract import Contract
from assay.graders.tests import PytestGrader
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.tasks.case import Case, load_case
from assay.types import Workspace
from assay.types.run import Run
from tests.command_line import COMMAND, assay, cells, environment, result
from tests.each import each
from tests.written_files import write_files

_CASE = """\
id: sums
task: {prompt: "Mend add()."}
source: {path: ./source}
matrix: {harnesses: [replay], models: [%s]}
graders:
  - {type: pytest, name: hidden-tests, inject: [hidden/test_sums.py]%s}
"""
_PLAIN = _CASE % ("fix", "")
_BROKEN = "def add(a, b):\n    return a - b\n"
_RIGHT = "def add(a, b):\n    return a + b\n"
_TEST = "from sums import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"

_MONEY = """
class Money:
    def __init__(self, cents):
        self.cents = cents

    def __eq__(self, other):
        return isinstance(other, Money) and self.cents == other.cents

    def __hash__(self):
        return hash(self.cents)


def add(a, b):
    return Money(a + b)
"""
_EQUALS_ALL = """
class Any(int):
    def __eq__(self, other):
        return True


def add(a, b):
    return Any()
"""
_TEST_MONEY = "from sums import Money, add\n\n\ndef test_add():\n    assert add(2, 3) == Money(5)\n"
_BUILTIN = "import builtins\n\n\ndef add(a, b):\n    return a + b + builtins.shared_by_all\n"
_TEST_BUILTIN = """\
import builtins
from sums import add

def test_add():
    builtins.shared_by_all = 1
    assert add(2, 3) == 6
"""


_SKIPS = """
import pytest
from sums import add

def test_add():
    assert add(2, 3) == 5

def test_slow():
    pytest.skip("slow")
"""
_TEST_FILES = """
import tempfile
from sums import add

def test_add():
    with tempfile.TemporaryDirectory():
        assert add(2, 3) == 5
"""
_TEST_ORDER = """
from sums import add
seen = []
""" + "\n".join(
    f"def test_{n}(): seen.append({n}); assert seen == [*range({n + 1})], add" for n in range(9)
)

NEEDS = {
    "": ("code:sums.add",),
    "test_sums.py::test_add": ("object:sums.add()", "said:__eq__:sums.add():0"),
}
PROCESS = IsolationDecision(
    isolation="process",
    contract=Contract(seed="5eed", needs=NEEDS, skips=("test_sums.py::test_slow",)),
)


def write(root: Path, files: Mapping[str, str]) -> Path:
    write_files(root, files)
    return root


def make_case(
    root: Path,
    *,
    right: str | None = _RIGHT,
    test: str = _TEST,
    options: str = "",
    model: str = "fix",
    files: Mapping[str, str] | None = None,
    name: str = "sums",
) -> Path:
    """A case below ``root/evals`` whose reference is ``right``; none where that is None."""
    case = {
        "case.yaml": (_CASE % (model, options)).replace("id: sums", f"id: {name}"),
        "source/sums.py": _BROKEN,
        "hidden/test_sums.py": test,
        "recordings/noop/answer.txt": "done",
    }
    if right is not None:
        case["recordings/fix/files/sums.py"] = right
    return write(root / "evals" / name, {**case, **(files or {})})


def lock_of(case: Path) -> dict[str, dict[str, Json]]:
    """The decisions of a lock file, by grader."""
    document = json.loads((case / "case.lock.json").read_text("utf-8"))
    return cast("dict[str, dict[str, Json]]", document["graders"])


def set_mode(case: Path, mode: str, **contract: Json) -> None:
    """Let a lock file say another mode, as if the reference had shown it."""
    file = case / "case.lock.json"
    document = json.loads(file.read_text("utf-8"))
    decision = document["graders"]["hidden-tests"]
    decision["isolation"] = mode
    decision["contract"] |= contract
    file.write_text(json.dumps(document), "utf-8")


def metadata_of(done: subprocess.CompletedProcess[str], of: str = "") -> dict[str, Json]:
    """That of the only cell, or of the one of a case or a model."""
    (cell,) = (one for one in cells(done) if not of or of in (one["case"], one["model"]))
    return cast("dict[str, Json]", cell["subscores"][0]["metadata"])


def resolved(case: Path, cache: str | None = None) -> Case:
    return settled(load_case(str(case)), cache)


def with_graders(case: Path, *graders: str) -> Path:
    """Let a case have these graders alone."""
    text = (case / "case.yaml").read_text("utf-8").partition("  - {")[0]
    (case / "case.yaml").write_text(text + "".join(f"  - {one}\n" for one in graders), "utf-8")
    return case


@each(
    ("grader", "said"),
    [
        ("{type: tests, cmd: cargo test, format: cargo, isolation: process}", "'cargo'"),
        ("{type: tests, cmd: mvn test, junit_xml: a.xml, isolation: process}", "pytest, unit"),
        ("{type: tests, cmd: make check, isolation: process}", "shared"),
        ("{type: tests, cmd: python3 -m unittest -v, isolation: process}", ""),
        ("{type: tests, cmd: cargo test, format: cargo, isolation: auto}", ""),
        ("{type: swebench, fail_to_pass: [a.py::b], isolation: process}", ""),
        ("{type: pytest, isolation: process, fresh: test, allow_equality: [kit.A]}", ""),
        ("{type: swebench, cmd_prefix: tox --, fail_to_pass: [t], isolation: process}", "'tox'"),
        ("{type: pytest, isolation: sometimes}", "isolation"),
        ("{type: pytest, fresh: often}", "fresh"),
    ],
)
def test_what_no_command_can_have_is_refused_when_the_case_is_read(
    tmp_path: Path, grader: str, said: str
) -> None:
    case = with_graders(make_case(tmp_path), grader)
    if not said:
        assert load_case(str(case)).graders
        return
    with pytest.raises(DocumentError, match=r"graders\[0\]\.(isolation|fresh)") as caught:
        load_case(str(case))
    assert said in str(caught.value)


@pytest.mark.sandbox
async def test_a_grader_called_from_python_shares_and_a_misspelt_mode_is_no_weaker_one(
    tmp_path: Path,
) -> None:
    tree = Workspace(path=str(write(tmp_path / "tree", {"sums.py": _RIGHT})))
    hidden = str(write(tmp_path, {"test_sums.py": _TEST}) / "test_sums.py")
    score = await PytestGrader.grade(workspace=tree, inject=[hidden])
    assert (score.value, (score.metadata or {})["isolation"]) == (1.0, "shared")
    with pytest.raises(Exception, match="isolation must be auto, process or shared, got 'apart'"):
        await PytestGrader.grade(workspace=tree, cmd="pytest", isolation="apart")


_DECIDED: dict[str, tuple[str, str, str, str, object]] = {
    "sums": (_RIGHT, _SKIPS, "", "process", None),
    "money": (_MONEY, _TEST_MONEY, "", "process", None),
    "order": (_RIGHT, _TEST_ORDER, "", "process", False),
    "builtin": (_BUILTIN, _TEST_BUILTIN, "", "shared", None),
    "by-hand": (_RIGHT, _TEST_FILES, ", isolation: process", "process", None),
}
"""By case: its reference, its tests, what its author says; and the mode and the order of those."""


@pytest.fixture(scope="module")
def suite(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Cases that were run, which decided how their tests are isolated."""
    root = tmp_path_factory.mktemp("suite")
    forged = '{"boundary": 1, "graders": {}}'  # what a recording writes is no lock either
    script = f"echo '{forged}' > {root}/evals/sums/case.lock.json; true\n"
    for name, (right, test, options, _, _) in _DECIDED.items():
        case = make_case(root, right=right, test=test, options=options, name=name)
        recorded = {"files/case.lock.json": forged, "run.sh": script}
        write_files(case / "recordings" / "fix", recorded if name == "sums" else {})
    done = assay("run", "evals", "--json", cwd=root)
    assert done.returncode == 0, done.stderr
    return root, done


@pytest.mark.slow
@pytest.mark.sandbox
@each("name", _DECIDED)
def test_the_reference_decides(
    suite: tuple[Path, subprocess.CompletedProcess[str]], name: str
) -> None:
    root, done = suite
    *_, mode, order = _DECIDED[name]
    case = root / "evals" / name
    lock, said = lock_of(case)["hidden-tests"], metadata_of(done, name)
    assert (said["isolation"], lock["isolation"], lock.get("shuffle")) == (mode, mode, order), lock
    assert resolved(case).graders[0].options.get("shuffle") is order
    assert f"{name}: hidden-tests: {mode}" in done.stderr
    assert f"evals/{name}/case.lock.json" in done.stderr
    contract = Contract.read(lock["contract"])
    if mode == "process":
        assert re.fullmatch("[0-9a-f]{16}", contract.seed)
        assert not contract.learns
        assert contract.shares_files is (name == "by-hand")
    skipped = ("test_sums.py::test_slow",) if name == "sums" else ()
    assert contract.skips == skipped, "what the reference itself skips in a body does not count"
    why = str(said.get("isolation_reason"))
    assert why.startswith("test_sums.py::test_add: ") == (mode == "shared"), why


@pytest.mark.slow
@pytest.mark.sandbox
def test_the_first_run_decides_and_the_next_one_knows(
    suite: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    shutil.copytree(suite[0], tmp_path, dirs_exist_ok=True)
    again = assay("run", "evals/sums", "--json", "--locked", cwd=tmp_path)
    assert (again.returncode, "hidden-tests" in again.stderr) == (0, False)
    said = metadata_of(again)
    assert (said["isolation"], said["values"]) == ("process", "1 of 1 tests")
    assert metadata_of(suite[1], "money")["values"] == "0 of 1 tests"
    before, after = (result(done)["run"]["digests"] for done in (suite[1], again))
    assert after == {"sums": before["sums"]}, "the lock file changes no digest of the case"


@pytest.mark.sandbox
def test_without_a_reference_the_score_says_why_it_is_shared(tmp_path: Path) -> None:
    case = make_case(tmp_path, right=None, model="noop")
    done = assay("run", "evals", "--json", cwd=tmp_path)
    said = metadata_of(done)
    assert (said["isolation"], said["isolation_reason"]) == (
        "shared",
        "no reference recording: run assay selftest",
    )
    assert not (case / "case.lock.json").exists()
    checked = assay("validate", "evals", cwd=tmp_path)
    assert checked.returncode == 0
    assert "no reference recording" in checked.stderr
    # Nor is there one where it is named, and was taken out.
    named = {"case.yaml": f"{_PLAIN}selftest: {{reference: gold}}\n"}
    (one,) = isolated_graders(resolved(write(case, {**named, "recordings/fix/answer.txt": ""})))
    assert one.why == "no reference recording: run assay selftest"


def test_what_cannot_be_judged_apart_needs_no_lock(tmp_path: Path) -> None:
    cargo = "{type: tests, cmd: cargo test, format: cargo}"
    case = with_graders(make_case(tmp_path), cargo, "{type: files, patterns: [x]}")
    assert CaseLock(load_case(str(case))).undecided == ()
    (one,) = isolated_graders(resolved(case))
    assert (one.grader, one.isolation) == ("tests", "shared")
    assert one.why.startswith("only pytest, unittest and node --test can")


_NO_ROOM = """
import os
def add(a, b):
    if os.getppid():
        raise OSError(28, "No space left on device")
"""
_ENDS = "import os\ndef add(a, b):\n    os._exit(1)\n"


@pytest.mark.slow
@pytest.mark.sandbox
def test_what_is_no_reason_to_trust_decides_nothing_and_nothing_runs(tmp_path: Path) -> None:
    """That the same tests have to fail each time: `_Judge`, below."""
    for name, right in (("wrong", _BROKEN), ("no-room", _NO_ROOM), ("ends", _ENDS)):
        make_case(tmp_path, right=right, name=name)
    with (make_case(tmp_path, name="unbegun") / "case.yaml").open("a") as file:
        file.write("setup: {run: ['exit 3']}\n")
    done = assay("run", "evals", cwd=tmp_path)
    assert done.returncode == 3
    for said in (
        "the reference does not pass its tests: test_sums.py::test_add: ",
        "No space left on device",
        "could not be graded: test_sums.py::test_add: ",
        "isolation: shared",
    ):
        assert said in done.stderr
    assert not list(tmp_path.rglob("case.lock.json"))
    assert "no runs yet" in assay("runs", cwd=tmp_path).stdout
    told = ("--case", "no-room", "--case", "unbegun", "--json")
    found = result(assay("selftest", "evals", *told, cwd=tmp_path))
    assert found["causes"] == {"could not be graded": ["no-room"], "cannot be built": ["unbegun"]}
    case = found["cases"][1]
    assert case["checks"][0]["said"].startswith("set-up command")


@pytest.mark.sandbox
def test_a_reference_that_cannot_be_played_decides_nothing(tmp_path: Path) -> None:
    case = make_case(tmp_path, files={"recordings/fix/trace.jsonl": "{"})
    done = assay("run", "evals", cwd=tmp_path)
    assert (done.returncode, "the reference could not be played" in done.stderr) == (3, True)
    assert not (case / "case.lock.json").exists()
    attacked = assay("attack", "evals", "--cheat", "answer-notes", cwd=tmp_path)
    said = " ".join(attacked.stdout.split())
    assert (attacked.returncode, "reference could not be played" in said) == (3, True), said
    write(case, {"case.yaml": _CASE % ("fix", ", isolation: shared")})
    done = assay("run", "evals", "--model", "noop", "--json", "--locked", cwd=tmp_path)
    assert done.returncode == 1, "a case that says its mode is asked no more"
    assert "isolation_reason" not in metadata_of(done)
    assert not (case / "case.lock.json").exists()


@pytest.mark.sandbox
def test_a_strong_mode_that_the_reference_cannot_have_is_an_error_and_not_taken_back(
    tmp_path: Path,
) -> None:
    case = make_case(tmp_path, right=_BUILTIN, test=_TEST_BUILTIN)
    CaseLock(load_case(str(case))).keep({0: PROCESS})
    before = (case / "case.lock.json").read_bytes()
    done = assay("selftest", "evals", "--repeats", "1", cwd=tmp_path)
    assert (done.returncode, "remove case.lock.json" in done.stdout) == (1, True), done.stdout
    by_hand = {"case.yaml": _CASE % ("fix", ", isolation: process")}
    write(case, {**by_hand, "hidden/test_sums.py": f"{_TEST_BUILTIN}\n"})
    done = assay("run", "evals", cwd=tmp_path)
    said = "it says isolation: process, but test_sums.py"
    assert (done.returncode, said in done.stderr) == (3, True), done.stderr
    assert (case / "case.lock.json").read_bytes() == before


def test_process_without_a_reference_is_refused_when_the_case_is_read(tmp_path: Path) -> None:
    case = make_case(tmp_path, right=None, options=", isolation: process")
    with pytest.raises(DocumentError, match=r"graders\[0\]\.isolation: .*needs a reference"):
        load_case(str(case))
    for given in ('{seed: "00"}', "{}"):
        options = f", isolation: process, contract: {given}"
        (case / "case.yaml").write_text(_CASE % ("noop", options), "utf-8")
        (one,) = isolated_graders(resolved(case))
        assert one.isolation == "process", "a contract was handed in"


def test_locked_runs_nothing_that_is_not_decided(tmp_path: Path) -> None:
    case = make_case(tmp_path)
    missing = assay("run", "evals", "--locked", cwd=tmp_path)
    assert (missing.returncode, "there is no lock file" in missing.stderr) == (2, True)
    CaseLock(load_case(str(case))).keep({0: PROCESS})
    write(case, {"hidden/test_sums.py": f"{_TEST}\n# another line\n"})
    stale = assay("run", "evals", "--locked", cwd=tmp_path)
    assert (stale.returncode, "is stale" in stale.stderr) == (2, True)
    assert "assay selftest" in stale.stderr


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a case that was run, and whose lock file says `process`."""
    root = tmp_path_factory.mktemp("decided")
    case = make_case(root, test=_SKIPS)
    CaseLock(load_case(str(case))).keep({0: PROCESS})
    assert assay("run", "evals", "--locked", cwd=root).returncode == 0
    return root


@pytest.fixture
def case(decided: Path, tmp_path: Path) -> Path:
    root = Path(shutil.copytree(decided, tmp_path, dirs_exist_ok=True))
    return root / "evals" / "sums"


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("change", "holds"),
    [
        ({"hidden/test_sums.py": _TEST + "\n"}, False),
        ({"source/sums.py": _BROKEN + "\n"}, False),
        ({"source/more.py": ""}, False),
        ({"recordings/fix/files/sums.py": _RIGHT + "\n"}, False),
        ({"recordings/fix/files/more.py": ""}, False),
        ({"case.yaml": _CASE % ("fix", ", timeout_s: 9")}, False),
        ({"case.yaml": f"{_PLAIN}environment: {{kind: command, commands: [pwd]}}\n"}, False),
        ({"case.yaml": f"{_PLAIN}submission: {{protect: [x]}}\n"}, False),
        ({"recordings/noop/answer.txt": "something else"}, True),
        ({"case.yaml": (_CASE % ("noop", ", weight: 2")).replace("Mend", "Repair")}, True),
        ({"case.yaml": _CASE % ("fix", ", isolation: auto")}, True),
        ({"notes.md": "more"}, True),
    ],
)
def test_a_decision_holds_as_long_as_what_it_rests_on(
    case: Path, change: Mapping[str, str], *, holds: bool
) -> None:
    write(case, change)
    lock = CaseLock(load_case(str(case)))
    assert (lock.undecided == (), lock.stale) == (holds, not holds)
    if holds:
        (one,) = isolated_graders(lock.resolved())
        assert one.contract == PROCESS.contract
    else:
        with pytest.raises(UndecidedIsolationError, match="stale"):
            lock.resolved()


@pytest.mark.sandbox
def test_a_case_may_be_handed_on_without_its_solution(case: Path, tmp_path: Path) -> None:
    shutil.rmtree(case / "recordings" / "fix")
    (one,) = isolated_graders(resolved(case))
    assert (one.isolation, one.contract) == ("process", PROCESS.contract)
    write(case, {"source/more.py": ""})
    with pytest.raises(UndecidedIsolationError, match="stale, what it held was judged apart"):
        resolved(case)
    done = assay("run", "evals", "--model", "noop", cwd=tmp_path)
    assert done.returncode == 3
    assert "warning: evals/sums/case.lock.json: the lock file is stale" in done.stderr
    assert f"record right work as {case}/recordings/reference and run" in done.stderr
    told = assay("selftest", "evals", cwd=tmp_path).stdout
    assert "hidden-tests: shared" not in told, "nothing is decided"


_FRAMES = """
import sys

def add(a, b):
    frame = sys._getframe()
    while frame:
        frame.f_globals["add"] = lambda *_: 5
        frame = frame.f_back
    return 5
"""


@pytest.mark.sandbox
def test_a_regrade_of_a_stale_lock_is_no_second_chance(case: Path, tmp_path: Path) -> None:
    write(case, {"recordings/cheat/files/sums.py": _FRAMES})
    shutil.rmtree(case / "recordings" / "fix")
    assert assay("run", "evals", "--model", "cheat", "--json", cwd=tmp_path).returncode in (0, 1)
    with (case / "hidden" / "test_sums.py").open("a") as file:
        file.write("# a comment\n")
    done = assay("regrade", "latest", cwd=tmp_path)
    assert (done.returncode, "was judged apart" in done.stderr) == (3, True), done.stderr
    (case / "case.lock.json").unlink()
    done = assay("regrade", "latest", cwd=tmp_path)
    assert (done.returncode, "judged it apart" in done.stderr) == (2, True), done.stderr


@pytest.mark.sandbox
@each(
    ("text", "said"),
    [
        ("", "cannot be read: not JSON: Expecting value: line 1 column 1"),
        ("[]", "cannot be read: expected a mapping, got a list"),
        ('{"boundary": 1, "graders": {}}', r"another version of assay \(boundary 1, not 6\)"),
        (
            '{"boundary": 6, "graders": {"hidden-tests": {"isolation": "process"}}}',
            "cannot be read: graders.hidden-tests.contract: what the reference needs is missing",
        ),
        (
            '{"boundary": 6, "graders": {"hidden-tests": {"isolation": "apart"}}}',
            r"cannot be read: graders.hidden-tests.isolation: .*\(valid: process, shared\)",
        ),
        ('{"boundary": 6, "boundary": 6, "graders": %s}', "the key 'boundary' stands twice"),
        ('{"boundary": 6, "graders": %s, "more": 1}', "unknown field 'more'"),
    ],
)
def test_a_lock_that_cannot_be_believed_is_none_and_says_why(
    case: Path, text: str, said: str
) -> None:
    file = case / "case.lock.json"
    if (case / "recordings" / "fix").exists():
        shutil.move(file, case / "decided.json")
        shutil.rmtree(case / "recordings" / "fix")
    graders = json.dumps(json.loads((case / "decided.json").read_text("utf-8"))["graders"])
    file.write_text(text.replace("%s", graders), "utf-8")
    lock = CaseLock(load_case(str(case)))
    assert lock.stale
    assert re.search(said, lock.problem)
    with pytest.raises(
        UndecidedIsolationError, match=f"{said}.* may have been judged apart"
    ) as caught:
        lock.resolved()
    assert f"{case}/recordings/reference and run assay selftest" in str(caught.value)
    assert f"writes {file} anew" in str(caught.value)


@pytest.mark.sandbox
def test_scores_of_two_modes_do_not_average(case: Path) -> None:
    apart = resolved(case)
    set_mode(case, "shared", skips=[])
    shared = resolved(case)
    assert grader_digest(apart.graders[0]) != grader_digest(shared.graders[0])
    assert oracle_digest(apart) != oracle_digest(shared) == shared.digest == apart.digest
    counted: list[dict[str, Json]] = [{"variants": {}}, {"variants": {"a.py": 2}, "skips": ["a"]}]
    found = {oracle_digest(apart), oracle_digest(shared)}
    for contract in counted:
        set_mode(case, "shared", **contract)
        found.add(oracle_digest(resolved(case)))
    assert len(found) == 4, "what a lock lets count is part of what was graded"


@pytest.mark.sandbox
def test_a_run_is_not_resumed_in_another_mode(case: Path) -> None:
    root = case.parents[1]
    assert assay("run", "--resume", "latest", cwd=root).returncode == 0
    set_mode(case, "shared")
    done = assay("run", "--resume", "latest", cwd=root)
    assert (done.returncode, "cases changed" in done.stderr) == (2, True)


@pytest.mark.sandbox
def test_a_selftest_tells_the_mode_and_what_does_not_count(case: Path, tmp_path: Path) -> None:
    before = (case / "case.lock.json").read_bytes()
    words = ("selftest", "evals", "--repeats", "1", "--out", "proofs.jsonl")
    done = assay(*words, "--json", cwd=tmp_path)
    (proof,) = result(done)["cases"]
    (told,) = proof["isolation"]
    assert told == {
        "grader": "hidden-tests",
        "isolation": "process",
        "why": "",
        "allow_equality": [],
        "objects": ["test_sums.py::test_add"],
        "skips": ["test_sums.py::test_slow"],
    }
    assert (done.returncode, (case / "case.lock.json").read_bytes()) == (0, before)
    shown = assay(*words, cwd=tmp_path).stdout
    assert "the reference itself skips test_sums.py::test_slow: not counted" in shown


_BREAKS = {
    "ends": "import os\nos._exit(0)\n",
    "kills": "import os, signal\n"
    "os.kill(os.getppid(), signal.SIGKILL)\nos.kill(0, signal.SIGKILL)\n",
    "equals": _EQUALS_ALL,
}


@pytest.mark.sandbox
def test_breaking_the_boundary_gets_0_and_no_weaker_judge(case: Path) -> None:
    before = (case / "case.lock.json").read_bytes()
    write(case, {f"recordings/{name}/files/sums.py": text for name, text in _BREAKS.items()})
    models = [word for name in _BREAKS for word in ("--model", name)]
    done = assay("run", "evals", *models, "--json", cwd=case.parents[1])
    rewards = {str(cell["model"]): cell["reward"] for cell in cells(done)}
    assert (done.returncode, rewards) == (1, dict.fromkeys(_BREAKS, 0.0)), done.stdout
    assert all(metadata_of(done, name)["isolation"] == "process" for name in _BREAKS)
    assert (case / "case.lock.json").read_bytes() == before


def test_a_directory_that_cannot_be_written_has_its_lock_in_the_cache(tmp_path: Path) -> None:
    case, cache = make_case(tmp_path), str(tmp_path / "cache")
    (case / "case.lock.json").mkdir()
    kept = CaseLock(load_case(str(case)), cache).keep({0: PROCESS})
    assert kept.startswith(f"{cache}/isolation/")
    assert resolved(case, cache).graders[0].options["isolation"] == "process"
    write(case, {"source/more.py": ""})
    with pytest.raises(UndecidedIsolationError):
        resolved(case, cache)
    assert CaseLock(load_case(str(case))).keep({0: PROCESS}) == "", "and without a cache"


@pytest.mark.sandbox
def test_a_lock_of_the_submission_is_a_file_like_any_other(case: Path, tmp_path: Path) -> None:
    set_mode(case, "shared")
    before = (case / "case.lock.json").read_bytes()
    forged = before.replace(b'"shared"', b'"process"')
    script = f"echo forged > {case}/case.lock.json; cp case.lock.json ../case.lock.json; exit 0\n"
    place = case / "recordings" / "forger"
    write(place, {"files/case.lock.json": forged.decode(), "run.sh": script})
    done = assay("run", "evals", "--model", "forger", "--json", cwd=tmp_path)
    assert (done.returncode, cells(done)[0]["reward"]) == (1, 0.0)
    assert (metadata_of(done)["isolation"], "values" in metadata_of(done)) == ("shared", False)
    assert (case / "case.lock.json").read_bytes() == before
    assert not (case.parent / "case.lock.json").exists()


def test_graders_of_one_name_have_decisions_of_their_own(tmp_path: Path) -> None:
    case = with_graders(
        make_case(tmp_path),
        "{type: pytest, inject: [hidden/test_sums.py]}",
        "{type: files, patterns: [add]}",
        "{type: pytest, inject: [{src: hidden/test_sums.py, dest: test_b.py}]}",
    )
    lock = CaseLock(load_case(str(case)))
    assert lock.undecided == (0, 2)
    assert lock.keep({2: PROCESS}) == str(case / "case.lock.json")
    assert list(lock_of(case)) == ["pytest-2"]
    again = CaseLock(load_case(str(case)))
    why = (Why(test="test_sums.py::test_add", said="no"),)
    again.keep({0: IsolationDecision(isolation="shared", why=why)})
    assert [str(one) for one in isolated_graders(resolved(case))] == [
        "pytest-1: shared, because test_sums.py::test_add: no",
        "pytest-2: process",
    ]


@pytest.mark.slow
@pytest.mark.sandbox
def test_two_that_decide_at_once_do_no_harm(tmp_path: Path) -> None:
    case = make_case(tmp_path)
    runs = [
        subprocess.Popen(
            [*COMMAND, "run", "evals"],
            cwd=tmp_path,
            env={**environment(tmp_path), "ASSAY_DB": str(tmp_path / f".assay{number}")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for number in range(2)
    ]
    assert [run.wait(120) for run in runs] == [0, 0]
    assert CaseLock(load_case(str(case))).undecided == ()
    assert [path.name for path in case.glob("*.lock*")] == ["case.lock.json"]


@pytest.mark.slow
@pytest.mark.sandbox
def test_a_regrade_decides_what_was_never_decided(case: Path) -> None:
    root = case.parents[1]
    (case / "case.lock.json").unlink()
    write(root, {"other.yaml": "- {type: pytest, inject: [evals/sums/hidden/test_sums.py]}\n"})
    done = assay("regrade", "latest", "other.yaml", cwd=root)
    assert (done.returncode, "pytest: process" in done.stderr) == (0, True), done.stderr
    assert not (case / "case.lock.json").exists(), "graders of others leave the case's lock alone"
    done = assay("regrade", "latest", cwd=root)
    assert (done.returncode, "case.lock.json" in done.stderr) == (0, True), done.stderr


class _Judge:
    """In place of an arena: gives what a script says of the options that the reference has.

    While containers are changed, all tests pass, but for the one that is said to look at them.
    """

    workers = 1
    cache = ""

    def __init__(self, said: Sequence[Mapping[str, Sequence[str]] | str], looks: str = "") -> None:
        self.said, self.looks = list(said), looks
        self.asked: list[Mapping[str, Json]] = []

    async def run(self, trials: Sequence[Planned], done: Callable[[Planned, Run], None]) -> None:
        (trial,) = trials
        options = cast("Case", trial.task.work).graders[0].options
        says: Mapping[str, Sequence[str]] | str = self.looks or {}
        if "scrambles:" not in json.dumps(options["contract"]):
            self.asked.append(options)
            says = self.said.pop(0)
        if isinstance(says, str):
            metadata: dict[str, Json] = {"tests": [{"id": says, "outcome": "failed"}]}
        else:
            metadata = {"needs": {test: list[Json](needs) for test, needs in says.items()}}
        node = SubScore("hidden-tests", float(not isinstance(says, str)), metadata=metadata)
        grade = SimpleNamespace(subscores=[node], content="")
        done(trial, cast("Run", SimpleNamespace(grade=grade)))


async def _decided(case: Path, judge: _Judge) -> Case:
    (found,) = await decide([CaseLock(load_case(str(case)))], cast("Arena", judge))
    return found


async def test_a_contract_is_the_union_of_runs_and_is_tried_before_it_is_written(
    tmp_path: Path,
) -> None:
    case = make_case(tmp_path)
    runs: list[Mapping[str, list[str]]] = [
        {"t": ["said:__eq__:kit.a():1", "object:kit.a()"]},
        {"t": ["said:__eq__:kit.a():2", "leaves:kit.b"], "": ["files:"]},
        {"t": ["said:__eq__:kit.a():0", "empty:kit.b"]},
    ]
    judge = _Judge([*runs, "t", {"t": ["object:kit.c()"]}, {}, {}])
    found = await _decided(case, judge)
    union = ["empty:kit.b", "leaves:kit.b", "object:kit.a()", "said:__eq__:kit.a():2"]
    contracts = [Contract.read(options["contract"]) for options in judge.asked]
    assert [one.learns for one in contracts] == [True, True, True, False, True, True, False]
    assert [options.get("shuffle") for options in judge.asked[:4]] == [False, None, None, None]
    assert contracts[3].needs == {"": ("files:",), "t": tuple(union)}
    grown = contracts[6]
    assert grown.needs["t"] == tuple(sorted([*union, "eager:", "object:kit.c()"]))
    assert {one.seed for one in contracts} == {grown.seed}
    assert Contract.read(found.graders[0].options["contract"]) == grown
    text = (case / "case.lock.json").read_text("utf-8")
    assert f'"t": {json.dumps(list(grown.needs["t"]))}' in text, "a line for each test"
    write(case, {"recordings/fix/files/sums.py": _RIGHT + "\n"})
    again = await _decided(case, _Judge([*reversed(runs), {}]))
    kept = Contract.read(again.graders[0].options["contract"])
    assert kept == Contract(seed=grown.seed, needs=contracts[3].needs), "another draw is no other"


_ALL: Mapping[str, list[str]] = {}


async def test_a_test_that_looks_at_its_containers_is_graded_so(tmp_path: Path) -> None:
    runs: list[Mapping[str, list[str]]] = [{"t": ["object:kit.a()"]}, {}, {}, {}]
    found = await _decided(make_case(tmp_path), _Judge(runs, looks="t[1]"))
    contract = Contract.read(found.graders[0].options["contract"])
    assert contract.needs == {"t": ("keeps:", "object:kit.a()")}


@pytest.mark.parametrize(
    ("said", "mode"),
    [
        (["t", "t", _ALL], "shared"),
        (["t", "u"], ""),
        (["t", _ALL], ""),
        ([_ALL, _ALL, "t", _ALL, _ALL], "process"),
        ([_ALL, _ALL, _ALL, "t", _ALL, _ALL, "t", _ALL], "shared"),
        ([_ALL, _ALL, _ALL, "t", _ALL, _ALL, "u"], ""),
        ([_ALL, _ALL, _ALL, "t", _ALL, "t"], ""),
        (["t", "t", "t", _ALL], "shared"),
        (["t", "t", "t", "t"], ""),
    ],
)
async def test_only_the_same_tests_failing_twice_are_a_need_for_one_process(
    tmp_path: Path, said: list[Mapping[str, list[str]] | str], mode: str
) -> None:
    case = make_case(tmp_path)
    judge = _Judge(said)
    if mode:
        assert (await _decided(case, judge)).graders[0].options["isolation"] == mode
    else:
        with pytest.raises(UndecidedIsolationError, match="isolation: shared"):
            await _decided(case, judge)
    assert judge.said == []
    assert (case / "case.lock.json").exists() is bool(mode)
