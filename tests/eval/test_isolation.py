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
from assay.tasks.case import Case, case_schema, load_case
from assay.types import Workspace
from assay.types.run import Run
from tests.command_line import COMMAND, assay, cells, environment, result
from tests.written_files import write_files

_CASE = """\
id: sums
task: {prompt: "Mend add()."}
source: {path: ./source}
matrix: {harnesses: [replay], models: [%s]}
graders:
  - {type: pytest, name: hidden-tests, inject: [hidden/test_sums.py]%s}
"""
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
PROCESS = IsolationDecision(isolation="process", contract=Contract(seed="5eed", needs=NEEDS))


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
) -> Path:
    """A case below ``root/evals`` whose reference is ``right``; none where that is None."""
    case = {
        "case.yaml": _CASE % (model, options),
        "source/sums.py": _BROKEN,
        "hidden/test_sums.py": test,
        "recordings/noop/answer.txt": "done",
    }
    if right is not None:
        case["recordings/fix/files/sums.py"] = right
    return write(root / "evals" / "sums", {**case, **(files or {})})


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


def metadata_of(done: subprocess.CompletedProcess[str]) -> dict[str, Json]:
    node = cast("list[dict[str, Json]]", cells(done)[0]["subscores"])[0]
    return cast("dict[str, Json]", node["metadata"])


def resolved(case: Path, cache: str | None = None) -> Case:
    return settled(load_case(str(case)), cache)


@pytest.mark.parametrize(
    ("grader", "said"),
    [
        ("{type: tests, cmd: cargo test, format: cargo, isolation: process}", "'cargo'"),
        ("{type: tests, cmd: mvn test, junit_xml: a.xml, isolation: process}", "pytest, unit"),
        ("{type: tests, cmd: make check, isolation: process}", "shared"),
        ("{type: swebench, cmd_prefix: tox --, fail_to_pass: [t], isolation: process}", "'tox'"),
        ("{type: pytest, isolation: sometimes}", "isolation"),
        ("{type: pytest, fresh: often}", "fresh"),
    ],
)
def test_what_no_command_can_have_is_refused_when_the_case_is_read(
    tmp_path: Path, grader: str, said: str
) -> None:
    case = make_case(tmp_path)
    text = (case / "case.yaml").read_text("utf-8")
    (case / "case.yaml").write_text(text.partition("  - {")[0] + f"  - {grader}\n", "utf-8")
    with pytest.raises(DocumentError, match=r"graders\[0\]\.(isolation|fresh)") as caught:
        load_case(str(case))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "grader",
    [
        "{type: pytest, isolation: process, fresh: test}",
        "{type: tests, cmd: python3 -m unittest -v, isolation: process}",
        "{type: tests, cmd: cargo test, format: cargo, isolation: auto}",
        "{type: swebench, fail_to_pass: [a.py::b], isolation: process, allow_equality: [kit.A]}",
    ],
)
def test_what_commands_can_have_is_taken(tmp_path: Path, grader: str) -> None:
    case = make_case(tmp_path)
    text = (case / "case.yaml").read_text("utf-8")
    (case / "case.yaml").write_text(text.partition("  - {")[0] + f"  - {grader}\n", "utf-8")
    assert load_case(str(case)).graders


def test_editors_know_the_options() -> None:
    schema = json.dumps(case_schema())
    assert schema.count('"isolation": {"enum": ["auto", "process", "shared"]') == 3
    assert schema.count('"fresh": {"enum": ["module", "test"]') == 3


@pytest.mark.sandbox
async def test_a_grader_called_from_python_shares(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"sums.py": _RIGHT})
    hidden = write(tmp_path, {"test_sums.py": _TEST}) / "test_sums.py"
    score = await PytestGrader.grade(workspace=Workspace(path=str(tree)), inject=[str(hidden)])
    assert (score.value, (score.metadata or {})["isolation"]) == (1.0, "shared")


async def test_a_misspelt_mode_is_no_weaker_one(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="isolation must be auto, process or shared, got 'apart'"):
        await PytestGrader.grade(
            workspace=Workspace(path=str(tmp_path)), cmd="pytest", isolation="apart"
        )


@pytest.mark.sandbox
def test_the_first_run_decides_and_the_next_one_knows(tmp_path: Path) -> None:
    forged = '{"boundary": 1, "graders": {}}'  # what a recording writes is no lock either
    files = {
        "recordings/fix/files/case.lock.json": forged,
        "recordings/fix/run.sh": f"echo '{forged}' > {tmp_path}/evals/sums/case.lock.json; true\n",
    }
    case = make_case(tmp_path, files=files)
    first = assay("run", "evals", "--json", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    lock = lock_of(case)["hidden-tests"]
    assert (lock["isolation"], lock.get("shuffle")) == ("process", None)
    assert "sums: hidden-tests: process" in first.stderr
    assert "evals/sums/case.lock.json" in first.stderr
    assert metadata_of(first)["isolation"] == lock["isolation"]
    again = assay("run", "evals", "--json", "--locked", cwd=tmp_path)
    assert (again.returncode, "hidden-tests" in again.stderr) == (0, False)
    assert metadata_of(again) == metadata_of(again) | {"isolation": lock["isolation"]}
    assert result(again)["run"] == cast("dict[str, Json]", result(again)["run"]) | {
        "digests": cast("dict[str, Json]", result(first)["run"])["digests"]
    }, "the lock file changes no digest of the case"


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("right", "test", "mode", "order"),
    [
        (_MONEY, _TEST_MONEY, "process", None),
        (_RIGHT, _TEST_ORDER, "process", False),
        (_BUILTIN, _TEST_BUILTIN, "shared", None),
    ],
    ids=["objects", "order", "needs one process"],
)
def test_the_reference_decides(
    tmp_path: Path, right: str, test: str, mode: str, order: object
) -> None:
    case = make_case(tmp_path, right=right, test=test)
    done = assay("run", "evals", "--json", cwd=tmp_path)
    assert (done.returncode, metadata_of(done)["isolation"]) == (0, mode), done.stderr
    lock = lock_of(case)["hidden-tests"]
    assert (lock["isolation"], lock.get("shuffle")) == (mode, order), lock
    assert resolved(case).graders[0].options.get("shuffle") is order
    if mode == "process":
        contract = Contract.read(lock["contract"])
        assert re.fullmatch("[0-9a-f]{16}", contract.seed)
        assert not contract.shares_files
        assert not contract.learns
    why = str(metadata_of(done).get("isolation_reason"))
    assert why.startswith("test_sums.py::test_add: ") == (mode == "shared"), why


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


@pytest.mark.sandbox
def test_a_case_that_says_its_mode_is_asked_no_more(tmp_path: Path) -> None:
    case = make_case(tmp_path, options=", isolation: shared")
    done = assay("run", "evals", "--json", "--locked", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "isolation_reason" not in metadata_of(done)
    assert not (case / "case.lock.json").exists()


def test_what_cannot_be_judged_apart_needs_no_lock(tmp_path: Path) -> None:
    case = make_case(tmp_path)
    text = (case / "case.yaml").read_text("utf-8").partition("  - {")[0]
    text += "  - {type: tests, cmd: cargo test, format: cargo}\n  - {type: files, patterns: [x]}\n"
    (case / "case.yaml").write_text(text, "utf-8")
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
_AT_RANDOM = "from sums import add\nimport random\n\n" + "\n".join(
    f"def test_{n}(): assert random.random() < 0.5" for n in range(40)
)


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("right", "test", "said"),
    [
        (_BROKEN, _TEST, "the reference does not pass its tests: test_sums.py::test_add: "),
        (_NO_ROOM, _TEST, "No space left on device"),
        (_ENDS, _TEST, "could not be graded: test_sums.py::test_add: "),
        (_RIGHT, _AT_RANDOM, "does not fail or pass in the same tests: test_sums.py::test_"),
        (
            _RIGHT,
            _TEST.replace("==", "=) ="),
            "the reference does not pass its tests: test_sums.py: ",
        ),
    ],
    ids=["wrong", "no room", "a host that ends", "at random", "no syntax"],
)
def test_what_is_no_reason_to_trust_decides_nothing_and_nothing_runs(
    tmp_path: Path, right: str, test: str, said: str
) -> None:
    case = make_case(tmp_path, right=right, test=test)
    done = assay("run", "evals", cwd=tmp_path)
    assert (done.returncode, said in done.stderr) == (3, True), done.stderr
    assert "isolation: shared" in done.stderr
    assert not (case / "case.lock.json").exists()
    assert assay("runs", cwd=tmp_path).stdout.count("sums") == 0


@pytest.mark.sandbox
def test_a_self_test_says_what_keeps_the_reference_from_deciding(tmp_path: Path) -> None:
    """That right work fails, or is graded otherwise each time: tests/eval/test_selftest.py."""
    make_case(tmp_path, right=_NO_ROOM)
    done = assay("selftest", "evals", "--json", cwd=tmp_path)
    causes = json.loads(done.stdout)["causes"]
    assert (done.returncode, causes) == (3, {"could not be graded": ["sums"]})


@pytest.mark.sandbox
def test_a_case_that_cannot_be_begun_is_no_fault_of_its_tests(tmp_path: Path) -> None:
    case = make_case(tmp_path)
    with (case / "case.yaml").open("a") as file:
        file.write("setup: {run: ['exit 3']}\n")
    done = assay("selftest", "evals", "--json", cwd=tmp_path)
    said = json.loads(done.stdout)
    assert (done.returncode, said["causes"]) == (3, {"cannot be built": ["sums"]})
    assert said["cases"][0]["checks"][0]["said"].startswith("set-up command")


@pytest.mark.sandbox
def test_a_reference_that_cannot_be_played_decides_nothing(tmp_path: Path) -> None:
    case = make_case(tmp_path, files={"recordings/fix/trace.jsonl": "{"})
    done = assay("run", "evals", cwd=tmp_path)
    assert (done.returncode, "the reference could not be played" in done.stderr) == (3, True)
    assert not (case / "case.lock.json").exists()
    attacked = assay("attack", "evals", "--cheat", "answer-notes", cwd=tmp_path)
    said = " ".join(attacked.stdout.split())
    assert (attacked.returncode, "reference could not be played" in said) == (3, True), said
    text = (
        (case / "case.yaml").read_text("utf-8").replace("pytest, ", "pytest, isolation: shared, ")
    )
    (case / "case.yaml").write_text(text, "utf-8")
    assert assay("run", "evals", "--model", "noop", cwd=tmp_path).returncode == 1


@pytest.mark.sandbox
def test_process_by_hand_has_a_contract_or_is_an_error(tmp_path: Path) -> None:
    case = make_case(tmp_path, options=", isolation: process", test=_TEST_FILES)
    done = assay("run", "evals", "--json", cwd=tmp_path)
    assert (done.returncode, metadata_of(done)["isolation"]) == (0, "process"), done.stderr
    assert Contract.read(lock_of(case)["hidden-tests"]["contract"]).shares_files
    write(case, {"hidden/test_sums.py": _TEST_BUILTIN, "recordings/fix/files/sums.py": _BUILTIN})
    before = (case / "case.lock.json").read_bytes()
    done = assay("run", "evals", cwd=tmp_path)
    assert (done.returncode, "it says isolation: process, but test_sums.py" in done.stderr) == (
        3,
        True,
    )
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


@pytest.mark.sandbox
def test_locked_runs_nothing_that_is_not_decided(tmp_path: Path) -> None:
    case = make_case(tmp_path)
    missing = assay("run", "evals", "--locked", cwd=tmp_path)
    assert (missing.returncode, "there is no lock file" in missing.stderr) == (2, True)
    assert assay("attack", "evals", "--cheat", "answer-notes", cwd=tmp_path).returncode == 0
    assert lock_of(case), "an attack decides first, too"
    with (case / "hidden" / "test_sums.py").open("a") as file:
        file.write("\n# another line\n")
    stale = assay("run", "evals", "--locked", cwd=tmp_path)
    assert (stale.returncode, "is stale" in stale.stderr) == (2, True)
    assert "assay selftest" in stale.stderr


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a case that was run, and whose lock file says `process`."""
    root = tmp_path_factory.mktemp("decided")
    case = make_case(root)
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
        (
            {"case.yaml": _CASE % ("fix", "") + "environment: {kind: command, commands: [pwd]}\n"},
            False,
        ),
        ({"case.yaml": _CASE % ("fix", "") + "submission: {protect: [x]}\n"}, False),
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
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read: not JSON: Expecting value: line 1 column 1"),
        ("{", "cannot be read: not JSON: "),
        ("[]", "cannot be read: expected a mapping, got a list"),
        ('{"boundary": 1, "graders": {}}', r"another version of assay \(boundary 1, not 3\)"),
        (
            '{"boundary": 3, "graders": {"hidden-tests": {"isolation": "process"}}}',
            "cannot be read: graders.hidden-tests.contract: what the reference needs is missing",
        ),
        (
            '{"boundary": 3, "graders": {"hidden-tests": {"isolation": "apart"}}}',
            r"cannot be read: graders.hidden-tests.isolation: .*\(valid: process, shared\)",
        ),
        ('{"boundary": 99, "graders": %s}', "another version of assay"),
        ('{"boundary": 3, "boundary": 3, "graders": %s}', "the key 'boundary' stands twice"),
        ('{"boundary": 3, "graders": %s, "more": 1}', "unknown field 'more'"),
    ],
)
def test_a_lock_that_cannot_be_believed_is_none_and_says_why(
    case: Path, text: str, said: str
) -> None:
    file = case / "case.lock.json"
    graders = json.dumps(json.loads(file.read_text("utf-8"))["graders"])
    file.write_text(text.replace("%s", graders), "utf-8")
    shutil.rmtree(case / "recordings" / "fix")
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
    set_mode(case, "shared")
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
def test_a_selftest_tells_the_mode(case: Path) -> None:
    before = (case / "case.lock.json").read_bytes()
    done = assay("selftest", "evals", "--json", "--repeats", "1", cwd=case.parents[1])
    (proof,) = cast("list[dict[str, Json]]", result(done)["cases"])
    (told,) = cast("list[dict[str, Json]]", proof["isolation"])
    expected = {"grader": "hidden-tests", "isolation": "process", "why": ""}
    assert told == {
        **expected,
        "allow_equality": [],
        "objects": ["test_sums.py::test_add"],
        "skips": [],
    }
    assert (done.returncode, (case / "case.lock.json").read_bytes()) == (0, before)


@pytest.mark.sandbox
def test_a_selftest_takes_no_strong_mode_back(tmp_path: Path) -> None:
    case = make_case(tmp_path, right=_BUILTIN, test=_TEST_BUILTIN)
    CaseLock(load_case(str(case))).keep({0: PROCESS})
    done = assay("selftest", "evals", "--repeats", "1", cwd=tmp_path)
    assert (done.returncode, "remove case.lock.json" in done.stdout) == (1, True), done.stdout
    assert lock_of(case)["hidden-tests"]["isolation"] == "process"


@pytest.mark.sandbox
@pytest.mark.parametrize(
    "cheat",
    [
        "import os\nos._exit(0)\n",
        "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nos.kill(0, signal.SIGKILL)\n",
        _EQUALS_ALL,
    ],
)
def test_breaking_the_boundary_gets_0_and_no_weaker_judge(case: Path, cheat: str) -> None:
    before = (case / "case.lock.json").read_bytes()
    write(case, {"recordings/break/files/sums.py": cheat})
    done = assay("run", "evals", "--model", "break", "--json", cwd=case.parents[1])
    assert (done.returncode, cells(done)[0]["reward"]) == (1, 0.0), done.stdout
    assert metadata_of(done)["isolation"] == "process"
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
    assert metadata_of(done)["isolation"] == "shared"
    assert (case / "case.lock.json").read_bytes() == before
    assert not (case.parent / "case.lock.json").exists()


def test_graders_of_one_name_have_decisions_of_their_own(tmp_path: Path) -> None:
    case = make_case(tmp_path)
    text = (case / "case.yaml").read_text("utf-8").replace("name: hidden-tests, ", "")
    text += "  - {type: files, patterns: [add]}\n"
    text += "  - {type: pytest, inject: [{src: hidden/test_sums.py, dest: test_b.py}]}\n"
    (case / "case.yaml").write_text(text, "utf-8")
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


def test_a_reference_that_is_named_and_was_taken_out_is_none(tmp_path: Path) -> None:
    case = make_case(tmp_path)
    write(case, {"case.yaml": _CASE % ("fix", "") + "selftest: {reference: gold}\n"})
    (one,) = isolated_graders(resolved(case))
    assert one.why == "no reference recording: run assay selftest"


@pytest.mark.sandbox
def test_a_score_says_of_how_many_tests_everything_is_a_value(case: Path, tmp_path: Path) -> None:
    done = assay("run", "evals", "--json", cwd=tmp_path)
    assert metadata_of(done)["values"] == "0 of 1 tests"
    set_mode(case, "shared")
    done = assay("run", "evals", "--json", cwd=tmp_path)
    assert "values" not in metadata_of(done)


_SKIPS = """
import pytest
from sums import add

def test_add():
    assert add(2, 3) == 5

def test_slow():
    pytest.skip("slow")
"""


@pytest.mark.sandbox
def test_what_the_reference_itself_skips_in_a_body_does_not_count(tmp_path: Path) -> None:
    case = make_case(tmp_path, test=_SKIPS)
    done = assay("selftest", "evals", "--repeats", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "the reference itself skips test_sums.py::test_slow: not counted" in done.stdout
    contract = cast("dict[str, Json]", lock_of(case)["hidden-tests"]["contract"])
    assert contract["skips"] == ["test_sums.py::test_slow"]


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
